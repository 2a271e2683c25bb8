"""What a library logic says, as records: the file's counterpart."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.records import Estimate, ProblemType, Solution, Target

from .units import Unit

FORMAT = 3
"""The number under `tunesmith-logic`, raised when an older tunesmith could not read the file. 2 had no ties."""

READABLE = (2, FORMAT)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where and how the times were taken; `date` is ISO 8601 text."""

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
        """Whether the times were taken on this kind of device."""
        return target.is_called(self.api, self.device, self.architecture)


@dataclass(frozen=True, slots=True)
class Named:
    """A solution with its short name, unique in its logic."""

    name: str
    solution: Solution


@dataclass(frozen=True, slots=True)
class SizeRow:
    """A size that was measured: the place of its solution, the time, and
    10^9 of the document's unit a second. `leading` as in Problem. `others` are
    the places of the document's other solutions that ran there, with their seconds;
    `ties` are those of them that could not be told from the chosen one."""

    sizes: tuple[int, ...]
    leading: tuple[int, ...]
    solution: int
    estimate: Estimate
    rate: float
    others: tuple[tuple[int, float], ...] = ()
    ties: tuple[int, ...] = ()

    def seconds(self, solution: int) -> float:
        """Of a solution that ran there."""
        return self.estimate.seconds if solution == self.solution else dict(self.others)[solution]

    @property
    def where(self) -> tuple[int, ...]:
        """Sizes, then leading dimensions if they are not the natural ones, as in a tuning file's `Exact`."""
        return (*self.sizes, *self.leading)


@dataclass(frozen=True, slots=True)
class Regret:
    """Leave-one-out: for each measured size, the time of what would be chosen had that size not been measured, over
    the best time known there (1 is perfect; infinite where nothing that would be chosen runs).

    `sizes` lists it by size, leading dimensions included where the row has them.
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
    """A whole library logic for one problem type on one device. `fallback` is the place of a solution; `unfinished`
    says what the run that wrote it had not decided yet."""

    origin: Origin
    problem_type: ProblemType
    solutions: tuple[Named, ...]
    rows: tuple[SizeRow, ...]
    fallback: int
    regret: Regret | None = None
    unfinished: str = ""

    @property
    def unit(self) -> Unit:
        """What its rates count. Raises UserError where the type's operation is not installed."""
        return Unit.of(self.problem_type)
