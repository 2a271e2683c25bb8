"""The events that the bench sends to an observer: for progress, and for the account of where the time went."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.records import Measurement, Solution


@dataclass(frozen=True, slots=True)
class WorkerLost:
    """A worker died at a job, or was killed after a timeout: `cause` is a signal's name or "timeout"."""

    pid: int
    cause: str
    stage: str
    key: str


@dataclass(frozen=True, slots=True)
class ModuleCompiled:
    """A module was compiled, or could not be compiled (`reason`). `waiting` modules are not finished yet."""

    digest: str
    seconds: float
    reason: str
    waiting: int


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A job, which is compiled, was sent to the worker to be timed. The worker verifies it before, unless it is
    verified."""

    key: str
    solution: Solution


@dataclass(frozen=True, slots=True)
class JobMeasured:
    """A job has its outcome."""

    key: str
    measurement: Measurement


Event = WorkerLost | ModuleCompiled | Dispatched | JobMeasured
