"""Compiling for a cluster: a text is compiled once, on a host that compiles, and its binary goes to the devices.

The result of a compile task stays in Dask's memory. A portion depends on the tasks of its programs, so Dask starts the
portion when they are ready, brings the binaries to its device, and compiles again what a dead worker held.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from distributed import Future

from tunesmith.bench import Job, Policy
from tunesmith.bench.details import JobDetails
from tunesmith.records import Module, Solution, Target
from tunesmith.toolchains import TOOLCHAINS

from .connection import ClusterConnection
from .messages import COMPILES
from .worker import compile_modules

NO_PORTION = -1

WITHOUT_SECONDS = 10.0
"""If no host compiles for so long, the devices compile for themselves."""


@dataclass
class ProgramTasks:
    """The compile tasks of a run, for one target. Modules that need the device are left to the devices."""

    connection: ClusterConnection
    target: Target
    policy: Policy
    compilers: int = 0
    """The number of hosts that compile now."""
    _since: float = field(default_factory=lambda: -WITHOUT_SECONDS)
    _modules: dict[Solution, dict[str, Module]] = field(default_factory=dict)
    _task_of: dict[str, Future | None] = field(default_factory=dict)
    _charged: set[str] = field(default_factory=set)

    def count(self, compilers: int) -> None:
        """To be called with the number of hosts that compile, whenever a worker joins or leaves."""
        if self.compilers and not compilers:
            self._since = time.monotonic()
        self.compilers = compilers

    @property
    def are_lost(self) -> bool:
        """Whether no host has compiled for so long that tasks must not wait any longer."""
        return not self.compilers and time.monotonic() - self._since >= WITHOUT_SECONDS

    def tasks_for(self, jobs: Iterable[Job]) -> tuple[list[Future], frozenset[str]]:
        """The tasks that jobs depend on, submitted if they are new, and the digests of the modules that these jobs are
        the first to depend on."""
        needed = self.begin(jobs)
        found = (self._task_of[digest] for digest in needed)
        new = frozenset(needed - self._charged)
        self._charged |= new
        return list({future.key: future for future in found if future is not None}.values()), new

    def begin(self, jobs: Iterable[Job]) -> set[str]:
        """Let what jobs need be compiled, the first job's first, a task for each job with modules that no other has.
        Returns the digests of all that they need; none if no host compiles."""
        needed: set[str] = set()
        for job in jobs if not self.are_lost else ():
            modules = self._modules_of(job)
            needed |= modules.keys()
            if new := {digest: module for digest, module in modules.items() if digest not in self._task_of}:
                key = f"compile-{self.connection.topic}-{next(self.connection.numbers)}"
                arguments = compile_modules, tuple(new.values()), self.target, self.policy
                future = self.connection.submit(NO_PORTION, *arguments, resources={COMPILES: 1}, key=key)
                self._task_of.update(dict.fromkeys(new, future))
        return needed

    def give_up(self, jobs: Iterable[Job]) -> None:
        """Leave the modules of jobs to the devices: Dask could not compile them."""
        for job in jobs:
            self._task_of.update(dict.fromkeys(self._modules_of(job), None))

    def _modules_of(self, job: Job) -> dict[str, Module]:
        if job.solution not in self._modules:
            self._modules[job.solution] = {
                digest: module
                for digest, module in JobDetails(job, self.target).modules
                if compiles_anywhere(module, self.target)
            }
        return self._modules[job.solution]


def compiles_anywhere(module: Module, target: Target) -> bool:
    """Whether a module can be compiled on another host than the device's. A CPU compiles for itself: nothing else may
    run there while it times, and its programs are finished by their first launch."""
    return not target.shares_the_host and target.architecture in TOOLCHAINS[module.language].architectures()
