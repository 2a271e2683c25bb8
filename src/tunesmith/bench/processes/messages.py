"""The messages between the parent and its processes, over a socket pair.

A compiler also receives `Module` records. A UserError may take the place of any answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tunesmith.records import Binary, Measurement, Plan, Problem, Target, pickled_by_fields

from ..details import JobPlans
from ..job import Policy

Stage = Literal["opening the device", "preparing", "verifying", "timing"]


@dataclass(frozen=True, slots=True)
class Start:
    """The first message to a worker or compiler."""

    target: Target
    policy: Policy


@dataclass(frozen=True, slots=True)
class CompilerReady:
    """A compiler has started. From now on its time counts against its task."""


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Candidate:
    """A job as a worker sees it. `verify` is False if the same candidate was verified before, in this run.

    `first` is the candidate with whose result this one's must agree, if there is such a candidate.
    """

    binaries: tuple[Binary, ...]
    problem: Problem
    plans: JobPlans
    verify: bool = True
    first: Candidate | None = None


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Verify and time one candidate; without `times` verify it only. Stop early if it is provably slower than
    `race_above` seconds. Take fewer samples if it has lost to `rival`, the upper end of another candidate's interval in
    seconds (`timing.time_plan`).

    `ahead` are problems that later candidates will be verified on. The worker prepares them while the device is busy.
    """

    candidate: Candidate
    race_above: float
    rival: float = math.inf
    ahead: tuple[Problem, ...] = ()
    times: bool = True


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class PrepareRequest:
    """Bring the problems on which the next candidate will be verified to the device. There is no answer."""

    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class InterleaveRequest:
    """Time candidates of one problem in alternating blocks. `until_clear` ends them early once a winner is clear."""

    candidates: tuple[Candidate, ...]
    until_clear: bool = False


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class StageEntered:
    """The worker enters a stage with a candidate (`index` in an InterleaveRequest). The timeout starts anew."""

    stage: Stage
    index: int = 0


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Done:
    """The answer to MeasureRequest (one measurement) or InterleaveRequest (one for each candidate). Without
    measurements it says that the worker has its device open.

    `poisoned` is the index of a candidate that broke the context; the process ends after this message.
    """

    measurements: tuple[Measurement, ...]
    poisoned: int | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """The request to launch a plan once, for compilers that finish at the first launch."""

    binaries: tuple[Binary, ...]
    problem: Problem
    plan: Plan


@dataclass(frozen=True, slots=True)
class Running:
    """A compiler's launch runs (`now`), so the timeout of a launch applies; or it is over, and the next launch may have
    to be compiled first."""

    now: bool


@dataclass(frozen=True, slots=True)
class Built:
    """The answer to a Module, with its binary, or to a Probe. `reason` is empty if nothing failed."""

    seconds: float
    binary: Binary | None = None
    reason: str = ""
    detail: str = ""
    poisoned: bool = False
