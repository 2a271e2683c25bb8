"""A measurement: the outcome, times and cost of running a solution on a problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from ._pickled import pickled_by_fields
from ._program import CompiledFacts


class Outcome(StrEnum):
    """How a measurement ended. Only a solution with OK can win."""

    OK = "ok"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile error"
    LAUNCH_ERROR = "launch error"
    WRONG_RESULT = "wrong result"
    TIMEOUT = "timeout"
    CRASH = "crash"


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Estimate:
    """A time with its uncertainty, in seconds: the median of `count` samples, and the ends of its 95 % interval."""

    seconds: float
    low: float
    high: float
    count: int


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Cost:
    """The wall time that a measurement took, by activity, in seconds."""

    compile: float = 0.0
    verify: float = 0.0
    timing: float = 0.0


@pickled_by_fields
@dataclass(frozen=True, slots=True)
class Measurement:
    """One solution on one problem in one round.

    `samples` are seconds for one execution of the whole plan, in the order taken. In an interleaved round, sample i of
    every finalist comes from the same block. `raced` says that sampling stopped early because the solution was provably
    slower than the best of its step. `reason` is a constant by which reports count; `detail` is for people. If the
    outcome is OK and this measurement compared the result with the reference, `detail` states the error. `started` is
    in seconds since the epoch. `host` names the host and its device that measured ("node7 CUDA:0"), empty if unknown.
    `device` names the device within its run if the run has several. It is not stored, and two measurements that differ
    only in it are equal.
    """

    outcome: Outcome
    reason: str = ""
    detail: str = ""
    samples: tuple[float, ...] = ()
    estimate: Estimate | None = None
    raced: bool = False
    facts: tuple[CompiledFacts, ...] = ()
    cost: Cost = Cost()
    started: float = 0.0
    host: str = ""
    device: str = field(default="", compare=False)

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def error(self) -> float | None:
        """The Euclidean norm of the error divided by that of the reference, from `detail`; None if `detail` has
        none."""
        number = self.detail.removeprefix(_ERROR)
        try:
            return float(number) if self.ok and number != self.detail else None
        except ValueError:
            return None


_ERROR = "relative error "


def error_detail(error: float | None) -> str:
    """The `detail` of a measurement with outcome OK; empty if the error is unknown."""
    return "" if error is None else f"{_ERROR}{error:.3g}"
