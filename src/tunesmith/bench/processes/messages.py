"""What the parent and its processes say to each other, over a socket pair. A compiler is sent modules besides, and a
UserError may take the place of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tunesmith.records import Binary, Measurement, Plan, Problem, Target

from ..details import Bound
from ..job import Policy

Stage = Literal["opening the device", "preparing", "verifying", "timing"]


@dataclass(frozen=True, slots=True)
class Start:
    """The first word to a worker or compiler: what it works for."""

    target: Target
    policy: Policy


@dataclass(frozen=True, slots=True)
class CompilerReady:
    """A compiler has started: from now on time is counted against what it compiles."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job as a worker sees it. `verify` is off when this very candidate was found right before, in this run."""

    binaries: tuple[Binary, ...]
    problem: Problem
    bound: Bound
    verify: bool = True


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """Verify and time one candidate; stop early when it is provably slower than `race_above` seconds.

    `ahead` are problems that later candidates will be verified on: to be made ready while the device is busy.
    """

    candidate: Candidate
    race_above: float
    ahead: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class InterleaveRequest:
    """Time candidates of one problem in alternating blocks; `until_clear` ends them where a winner is clear before."""

    candidates: tuple[Candidate, ...]
    until_clear: bool = False


@dataclass(frozen=True, slots=True)
class At:
    """The worker enters a stage with a candidate (its index in an Interleave): the clock of the timeout starts anew."""

    stage: Stage
    index: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The answer to Measure (one measurement) or Interleave (one each); without any, the worker has its device open.

    When `poisoned`, the process ends with it.
    """

    measurements: tuple[Measurement, ...]
    poisoned: int | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """Launch a small plan once, for compilers that finish at the first launch."""

    binaries: tuple[Binary, ...]
    problem: Problem
    plan: Plan


@dataclass(frozen=True, slots=True)
class Running:
    """A compiler's launch runs, so that the time of a launch is counted, or (`now` False) is over: the next one may
    have to be compiled first."""

    now: bool


@dataclass(frozen=True, slots=True)
class Built:
    """The answer to a Module or a Probe: a binary for the former; `reason` is empty when it went well."""

    seconds: float
    binary: Binary | None = None
    reason: str = ""
    detail: str = ""
    poisoned: bool = False
