"""The requests to a bench: jobs, races and batches of jobs, and the policy by which they are measured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tunesmith.devices import NOT_SUPPORTED
from tunesmith.records import Outcome, Problem, Solution


@dataclass(frozen=True, slots=True)
class Job:
    """A complete solution on one problem of its type. `key` is the caller's name for the job.

    `first` is the solution whose result this one's must agree with, if the operation compares solutions
    (`Operation.agreement`); without it, the solution's runs must agree with each other.
    """

    key: str
    solution: Solution
    problem: Problem
    first: Solution | None = None


@dataclass(frozen=True, slots=True)
class Race:
    """Jobs that compete. `rivals` are times to beat from the start: upper ends of intervals in seconds, by problem.
    `step` names the step of the run: a bench of several devices measures all jobs of one problem in one step on one
    device."""

    jobs: tuple[Job, ...]
    rivals: Mapping[Problem, float] = field(default_factory=dict)
    step: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Jobs to measure once each. With `racing`, a job that is provably slower than the best of its race on the same
    problem is stopped early. `ahead` are problems that later batches will have: they are prepared while candidates of
    this batch are verified and timed."""

    races: tuple[Race, ...]
    racing: bool = False
    ahead: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """How to measure. A tuning file sets it in `GlobalParameters`; the defaults are here and nowhere else.

    Times in seconds. `noise` is the half-width of the 95 % interval of the median, relative to the median, at which
    sampling stops. `cold` rotates operands so that the last-level cache holds none of them.
    """

    noise: float = 0.01
    minimum_samples: int = 7
    maximum_samples: int = 200
    sampling_seconds: float = 1.0
    warm_up_seconds: float = 0.2
    cold: bool = True
    timeout_seconds: float = 60.0
    compile_timeout_seconds: float = 120.0
    compile_processes: int = 0
    confirm_blocks: int = 15
    seed: int = 0

    def key(self) -> str:
        """The fields that could change a measurement's value, as JSON. It is part of a store's keys."""
        return json.dumps({name: getattr(self, name) for name in _KEYED}, sort_keys=True)


_KEYED = (
    *("noise", "minimum_samples", "maximum_samples", "sampling_seconds", "warm_up_seconds", "cold"),
    *("confirm_blocks", "seed"),
)
"""Fields of a policy that are part of keys. A new field must only be written if its value is not the default."""


def launch_outcome(reason: str) -> Outcome:
    """The outcome of a launch that failed. A call that a vendor's library does not support counts as rejected."""
    return Outcome.REJECTED if reason == NOT_SUPPORTED else Outcome.LAUNCH_ERROR
