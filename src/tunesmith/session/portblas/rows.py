"""The results of tuning one problem with portBLAS's parameters: a row for every solution to try."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from tunesmith.formats.portblas.results import (
    CURRENT,
    SYSTEM,
    PortBlasResult,
    combination_of,
    gemm_name,
    heading,
    listing,
    short_name,
)
from tunesmith.protocol import ContestDecision
from tunesmith.records import Estimate, Measurement, Outcome, Problem, Rejection, Solution, value_text

REJECTED = Outcome.REJECTED.value


class RowKind(StrEnum):
    """The role of a row's solution."""

    SYSTEM = "system BLAS"
    CURRENT = "current library"
    CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class SolutionRow:
    """One solution with its measurement or its rejection; with neither, it was not tried yet.

    `toolchain` is the compiler; for the system BLAS, its name and threads. `note` is a remark for a person.
    """

    kind: RowKind
    solution: Solution
    toolchain: str
    measurement: Measurement | None = None
    rejection: Rejection | None = None
    note: str = ""

    @property
    def time(self) -> Estimate | None:
        return self.measurement.estimate if self.measurement and self.measurement.ok else None

    @property
    def failure(self) -> str:
        """The constant reason why the solution did not run, by which reports count; empty if it ran or was not
        tried."""
        if self.rejection:
            return f"{REJECTED}: {self.rejection.reason}"
        if self.measurement and not self.measurement.ok:
            return f"{self.measurement.outcome.value}: {self.measurement.reason}"
        return ""

    @property
    def detail(self) -> str:
        """The message of the failure."""
        return self.rejection.detail if self.rejection else self.measurement.detail if self.measurement else ""

    @property
    def name(self) -> str:
        """The name for tables."""
        if self.kind is RowKind.SYSTEM:
            return self.toolchain
        combination = combination_of(self.solution.configuration)
        name = short_name(combination) if combination else _parameters(self.solution)
        return name if self.kind is RowKind.CANDIDATE else f"{name} ({self.note})"

    @property
    def original_name(self) -> str:
        """The name that the original prints."""
        combination = combination_of(self.solution.configuration)
        name = gemm_name(combination, self.solution.type.fields.word("DataType")) if combination else ""
        return {RowKind.SYSTEM: SYSTEM, RowKind.CURRENT: CURRENT}.get(self.kind, name)

    def result(self, flops: float) -> PortBlasResult | None:
        """The row as the original's result; None if the solution did not run."""
        if self.time is None or self.measurement is None:
            return None
        seconds = self.time.seconds
        return PortBlasResult(self.original_name, flops / seconds / 1e9, seconds * 1e3, self.measurement.error)


@dataclass(frozen=True)
class TunedTransposition:
    """The results of one transposition. `rows` are the system BLAS, the current library, and the candidates in the
    list's order.

    `programs` counts the different programs of the legal candidates. `winner` is the solution that the library shall
    launch, None if nothing ran. `searched` says that a guided search chose which candidates are measured.
    """

    name: str
    problem: Problem
    flops: float
    rows: tuple[SolutionRow, ...]
    programs: int
    decision: ContestDecision | None
    winner: SolutionRow | None
    searched: bool = False

    def row(self, kind: RowKind) -> SolutionRow | None:
        """The row of the system BLAS or of the current library."""
        return next((row for row in self.rows if row.kind is kind), None)

    def ranked(self) -> list[SolutionRow]:
        """The rows that ran, the fastest first."""
        return sorted((row for row in self.rows if row.time), key=lambda row: row.time.seconds if row.time else 0.0)

    def listing(self, device: str) -> str:
        """The list that the original prints: the rows that ran, from the worst to the best."""
        results = [result for row in self.rows if (result := row.result(self.flops))]
        return f"{heading(self.name)}\n{listing(device, results)}"

    def over_system(self, row: SolutionRow) -> float | None:
        """The system BLAS's time over a row's time: above 1, the row is faster. None if either did not run."""
        system = self.row(RowKind.SYSTEM)
        if system is None or system.time is None or row.time is None:
            return None
        return system.time.seconds / row.time.seconds

    def ties(self) -> list[SolutionRow]:
        """The rows that tied with the winner, each once."""
        ties = self.decision.ties if self.decision else ()
        rows = {row.solution.configuration: row for row in reversed(self.rows)}
        return [rows[config] for config in ties if config in rows]

    def failures(self) -> list[tuple[str, int, str]]:
        """For each reason why rows did not run: the reason, the number of rows, and the first one's message."""
        failed = [row for row in self.rows if row.failure]
        counts = Counter(row.failure for row in failed)
        first = {row.failure: f"{row.name}: {row.detail}" for row in reversed(failed)}
        return [(reason, count, first[reason]) for reason, count in counts.most_common()]

    @property
    def left(self) -> int:
        """The number of legal rows that were not tried."""
        return sum(row.measurement is None and row.rejection is None for row in self.rows)


def _parameters(solution: Solution) -> str:
    """The name of a solution of another family: the family's name and its main parameters."""
    shown = solution.configuration.only(["WorkGroup", "ThreadTile", "VectorWidth", "DepthU"])
    return " ".join([solution.kernel, *(f"{name} {value_text(value)}" for name, value in shown.items())])
