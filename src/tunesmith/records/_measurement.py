"""What happened when a solution met a problem."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ._program import CompiledFacts


class Outcome(StrEnum):
    """How a measurement ended; only OK has times that may win."""

    OK = "ok"
    REJECTED = "rejected"
    COMPILE_ERROR = "compile error"
    LAUNCH_ERROR = "launch error"
    WRONG_RESULT = "wrong result"
    TIMEOUT = "timeout"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A time with its doubt, in seconds: median of `count` samples and the ends of its 95 % interval."""

    seconds: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall time that a measurement took, by what it was spent on, in seconds."""

    compile: float = 0.0
    verify: float = 0.0
    timing: float = 0.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """One solution on one problem in one round.

    `samples` are seconds for one execution of the whole plan, in the order taken (for an interleaved round, sample i
    of every finalist comes from the same block). `raced` says that sampling stopped early because the solution was
    provably slower than the best of its step. `reason` is a constant that reports count by; `detail` is for people. Of
    a run that went well, `detail` says how far the result was from the reference, where that was looked at this time.
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

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def error(self) -> float | None:
        """Euclidean norm of the error over that of the reference, as `detail` says it; None where it does not."""
        said = self.detail.removeprefix(_ERROR)
        try:
            return float(said) if self.ok and said != self.detail else None
        except ValueError:
            return None


_ERROR = "relative error "


def error_detail(error: float | None) -> str:
    """The `detail` of a run that went well."""
    return "" if error is None else f"{_ERROR}{error:.3g}"
