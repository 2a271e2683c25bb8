"""The compile processes that the devices of a host share, in a worker process of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tunesmith.bench import Compilation, Policy, Spawner
from tunesmith.bench.processes.compilers import Compilers
from tunesmith.bench.processes.worker_handle import wait_until
from tunesmith.devices import environment
from tunesmith.records import Module, Target
from tunesmith.toolchains import BinaryCache

TURN_SECONDS = 0.02
"""How long the compile processes are watched before those that were started meanwhile are watched as well."""


class CompileService:
    """Compiles modules for several callers at once, each module once. `processes` compile at the same time.

    A thread watches the compile processes as long as there is work, and the callers wait for it.
    """

    def __init__(self, cache: Path, processes: int) -> None:
        self._cache, self._processes = cache, processes
        self._spawner = Spawner(environment(cache))
        self._compilers: dict[tuple[Target, float], Compilers] = {}
        self._watched: list[Compilers] = []
        self._failed: list[tuple[Compilers, Exception]] = []
        self._changed = threading.Condition()

    def compile(self, modules: Sequence[Module], target: Target, policy: Policy) -> tuple[Compilation, ...]:
        """The modules' compilations, in their order. Blocks until all are finished. Raises UserError if compilers
        cannot write."""
        requested = {module.digest(): module for module in modules}
        with self._changed:
            compilers = self._for(target, policy)
            compilers.request(requested.items())
            compilers.hand_out()
            if compilers not in self._watched:
                self._watched.append(compilers)
                threading.Thread(target=self._watch, args=(compilers,), name="tunesmith-compiling", daemon=True).start()
            while True:
                found = [compilers.compilation(digest, module) for digest, module in requested.items()]
                done = tuple(compilation for compilation in found if compilation)
                if len(done) == len(requested):
                    return done
                if failed := next((error for other, error in self._failed if other is compilers), None):
                    raise failed
                self._changed.wait()

    def close(self) -> None:
        for compilers in self._compilers.values():
            with suppress(OSError):
                compilers.close()
        self._spawner.close()

    def _watch(self, compilers: Compilers) -> None:
        """Collect what is compiled and hand out what waits, until nothing does."""
        while True:
            with self._changed:
                try:
                    compilers.pump()
                except Exception as error:  # every caller must hear of it
                    self._failed.append((compilers, error))
                self._changed.notify_all()
                if not compilers.busy or self._failed:
                    self._watched.remove(compilers)
                    return
                connections, deadline = compilers.connections, compilers.deadline
            wait_until(connections, min(deadline, time.monotonic() + TURN_SECONDS))

    def _for(self, target: Target, policy: Policy) -> Compilers:
        key = target, policy.compile_timeout_seconds
        if key not in self._compilers:
            policy = replace(policy, compile_processes=self._processes)
            cache = BinaryCache(self._cache, target)
            self._compilers[key] = Compilers(self._spawner, target, policy, lambda event: None, cache)
        return self._compilers[key]
