"""The compile processes that the devices of a host share, in a worker process of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith.bench import Compilation, Policy, Spawner
from tunesmith.bench.processes.compilers import Compilers
from tunesmith.bench.processes.worker_handle import wait_until
from tunesmith.devices import environment
from tunesmith.records import Module, Target, UserError
from tunesmith.toolchains import BinaryCache

TURN_SECONDS = 0.02
"""How long the compile processes are watched before those that were started meanwhile are watched as well."""


class CompileService:
    """Compiles modules for several callers at once, each module once. `processes` compile at the same time.

    A thread watches the compile processes of a target as long as there is work, and the callers wait for it.
    """

    def __init__(self, cache: Path, processes: int) -> None:
        self._cache, self._processes = cache, processes
        self._spawner = Spawner(environment(cache))
        self._compilers: dict[tuple[Target, float], _Watched] = {}
        self._changed = threading.Condition()

    def compile(self, modules: Sequence[Module], target: Target, policy: Policy) -> tuple[Compilation, ...]:
        """The modules' compilations, in their order. Blocks until all are finished. Raises UserError if compilers
        cannot write."""
        requested = {module.digest(): module for module in modules}
        with self._changed:
            watched = self._for(target, policy)
            watched.compilers.request(requested.items())
            if not watched.has_thread:
                watched.has_thread = True
                threading.Thread(target=self._watch, args=(watched,), name="tunesmith-compiling", daemon=True).start()
            while True:
                found = [watched.compilers.compilation(digest, module) for digest, module in requested.items()]
                done = tuple(compilation for compilation in found if compilation)
                if len(done) == len(requested):
                    return done
                if watched.failure:
                    raise watched.failure
                self._changed.wait()

    def close(self) -> None:
        with self._changed:
            for key in list(self._compilers):
                self._drop(key, UserError("compiling", "the process that compiles has ended", "run the command again"))
        self._spawner.close()

    def _watch(self, watched: _Watched) -> None:
        """Collect what is compiled and hand out what waits, until nothing does. If that fails, every caller hears of
        it, and the next call has new compile processes."""
        compilers = watched.compilers
        try:
            while True:
                with self._changed:
                    if watched.failure:
                        return
                    compilers.pump()
                    self._changed.notify_all()
                    if not compilers.busy:
                        watched.has_thread = False
                        return
                    connections, deadline = compilers.connections, compilers.deadline
                wait_until(connections, min(deadline, time.monotonic() + TURN_SECONDS))
        except Exception as error:
            with self._changed:
                for key in [key for key, other in self._compilers.items() if other is watched]:
                    self._drop(key, error)

    def _drop(self, key: tuple[Target, float], failure: Exception) -> None:
        """End the compile processes of a target, and let those who wait for them raise the failure."""
        watched = self._compilers.pop(key)
        watched.failure = failure
        self._changed.notify_all()
        with suppress(OSError):
            watched.compilers.close()

    def _for(self, target: Target, policy: Policy) -> _Watched:
        key = target, policy.compile_timeout_seconds
        if key not in self._compilers:
            policy = replace(policy, compile_processes=self._processes)
            cache = BinaryCache(self._cache, target)
            self._compilers[key] = _Watched(Compilers(self._spawner, target, policy, lambda event: None, cache))
        return self._compilers[key]


@dataclass(eq=False)
class _Watched:
    """The compile processes of a target, whether a thread watches them, and what has ended them."""

    compilers: Compilers
    has_thread: bool = False
    failure: Exception | None = None
