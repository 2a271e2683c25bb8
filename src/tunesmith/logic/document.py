"""The contents of a library logic file as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tunesmith.records import Estimate, ProblemType, Solution, Target

from .units import Unit

FORMAT = 3
"""The number under `tunesmith-logic`. It is raised when an older tunesmith could not read the file. Format 2 had no
ties."""

READABLE = (2, FORMAT)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and how the times were measured; `date` is ISO 8601 text."""

    api: str
    device: str
    kind: str
    architecture: str
    driver: str
    toolchain: str
    tunesmith: str
    date: str

    @staticmethod
    def of(target: Target, toolchain: str, tunesmith: str, date: str) -> Origin:
        return Origin(
            target.api, target.name, target.kind, target.architecture, target.driver, toolchain, tunesmith, date
        )

    def is_of(self, target: Target) -> bool:
        """Whether the times were measured on this kind of device."""
        return target.is_called(self.api, self.device, self.architecture)


@dataclass(frozen=True, slots=True)
class NamedSolution:
    """A solution with its short name, unique in its logic."""

    name: str
    solution: Solution


@dataclass(frozen=True, slots=True)
class SizeRow:
    """A measured size: the index of its solution, the time, and the `rate`, in 10^9 of the document's unit per second.

    `leading` is as in `Problem`. `others` has the indices of the document's other solutions that ran at this size, with
    their seconds. `ties` are the indices of those that could not be told from the chosen solution.
    """

    sizes: tuple[int, ...]
    leading: tuple[int, ...]
    solution: int
    estimate: Estimate
    rate: float
    others: Mapping[int, float] = field(default_factory=dict)
    ties: tuple[int, ...] = ()

    def seconds(self, solution: int) -> float:
        """The time of a solution that ran at this size, by its index."""
        return self.estimate.seconds if solution == self.solution else self.others[solution]

    @property
    def where(self) -> tuple[int, ...]:
        """The sizes, then the leading dimensions unless they are natural, as in a tuning file's `Exact`."""
        return (*self.sizes, *self.leading)


@dataclass(frozen=True, slots=True)
class Regret:
    """Leave-one-out regret: for each measured size, the time of the solution that would be chosen had the size not been
    measured, over the best time known at the size (1 is perfect; infinite if no solution that would be chosen runs).

    `sizes` has the regret of each size, with leading dimensions if the row has them.
    """

    geomean: float
    worst: float
    worst_at: tuple[int, ...]
    sizes: tuple[tuple[tuple[int, ...], float], ...]

    def __str__(self) -> str:
        worst = "x".join(map(str, self.worst_at))
        return (
            f"leave-one-out regret: {self.geomean:.3f} (geometric mean over {len(self.sizes)} sizes), "
            f"at worst {self.worst:.3f} at {worst}"
        )


@dataclass(frozen=True)
class Document:
    """A whole library logic for one problem type on one device. `fallback` is the index of a solution; `unfinished`
    tells what the run that wrote the logic had not decided yet."""

    origin: Origin
    problem_type: ProblemType
    solutions: tuple[NamedSolution, ...]
    rows: tuple[SizeRow, ...]
    fallback: int
    regret: Regret | None = None
    unfinished: str = ""

    @property
    def unit(self) -> Unit:
        """The unit of the rows' rates. Raises UserError if the type's operation is not installed."""
        return Unit.of(self.problem_type)
