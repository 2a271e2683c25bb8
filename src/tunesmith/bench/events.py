"""What the bench tells an observer while it works: for progress, and for the ledger of where the time went."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.records import Measurement


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A process ended at a job, or was ended for its silence: `cause` is a signal's name or "timeout"."""

    pid: int
    cause: str
    stage: str
    key: str


@dataclass(frozen=True, slots=True)
class ModuleCompiled:
    """A module was compiled, or could not be (`reason`). `waiting` modules are still to come."""

    digest: str
    seconds: float
    reason: str
    waiting: int


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A job is now at the worker: to be verified, then timed."""

    key: str


@dataclass(frozen=True, slots=True)
class JobMeasured:
    """A job has its outcome."""

    key: str
    measurement: Measurement


Event = WorkerLost | ModuleCompiled | Dispatched | JobMeasured
