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
"""How long one caller watches the compilers before another caller gets its turn."""


class CompileService:
    """Compiles modules for several callers at once, each module once. `processes` compile at the same time."""

    def __init__(self, cache: Path, processes: int) -> None:
        self._cache, self._processes = cache, processes
        self._spawner = Spawner(environment(cache))
        self._compilers: dict[tuple[Target, float], Compilers] = {}
        self._lock = threading.Lock()

    def compile(self, modules: Sequence[Module], target: Target, policy: Policy) -> tuple[Compilation, ...]:
        """The modules' compilations, in their order. Blocks until all are finished."""
        requested = {module.digest(): module for module in modules}
        done: dict[str, Compilation] = {}
        with self._lock:
            compilers = self._for(target, policy)
            compilers.request(requested.items())
        while len(done) < len(requested):
            with self._lock:
                compilers.pump()
                for digest, module in requested.items():
                    if digest not in done and (compilation := compilers.compilation(digest, module)):
                        done[digest] = compilation
                if len(done) < len(requested):
                    wait_until(compilers.connections, min(compilers.deadline, time.monotonic() + TURN_SECONDS))
        return tuple(done[digest] for digest in requested)

    def close(self) -> None:
        for compilers in self._compilers.values():
            with suppress(OSError):
                compilers.close()
        self._spawner.close()

    def _for(self, target: Target, policy: Policy) -> Compilers:
        key = target, policy.compile_timeout_seconds
        if key not in self._compilers:
            policy = replace(policy, compile_processes=self._processes)
            cache = BinaryCache(self._cache, target)
            self._compilers[key] = Compilers(self._spawner, target, policy, lambda event: None, cache)
        return self._compilers[key]
