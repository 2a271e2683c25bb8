"""What a tuning with portBLAS's parameters came to on one problem: a row for everything that was to be tried."""

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
    """What a row stands for."""

    SYSTEM = "system BLAS"
    CURRENT = "current library"
    CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class SolutionRow:
    """One solution, and what came of it: a measurement, or the reason why it was not tried, or neither (not yet).

    `toolchain` says by what it was compiled, for the system BLAS its name and threads. `note` is a remark for a person.
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
        """Why it did not run: the constant that reports count by; empty where it did, or was not tried."""
        if self.rejection:
            return f"{REJECTED}: {self.rejection.reason}"
        if self.measurement and not self.measurement.ok:
            return f"{self.measurement.outcome.value}: {self.measurement.reason}"
        return ""

    @property
    def detail(self) -> str:
        """What was said about the failure."""
        return self.rejection.detail if self.rejection else self.measurement.detail if self.measurement else ""

    @property
    def name(self) -> str:
        """For tables."""
        if self.kind is RowKind.SYSTEM:
            return self.toolchain
        combination = combination_of(self.solution.configuration)
        own = short_name(combination) if combination else _parameters(self.solution)
        return own if self.kind is RowKind.CANDIDATE else f"{own} ({self.note})"

    @property
    def original_name(self) -> str:
        """As the original prints it."""
        combination = combination_of(self.solution.configuration)
        own = gemm_name(combination, self.solution.type.fields.word("DataType")) if combination else ""
        return {RowKind.SYSTEM: SYSTEM, RowKind.CURRENT: CURRENT}.get(self.kind, own)

    def result(self, flops: float) -> PortBlasResult | None:
        """None where it did not run."""
        if self.time is None or self.measurement is None:
            return None
        seconds = self.time.seconds
        return PortBlasResult(self.original_name, flops / seconds / 1e9, seconds * 1e3, self.measurement.error)


@dataclass(frozen=True)
class Tuned:
    """One transposition. `rows` are the system BLAS, the current library, and the candidates in the list's order.

    `programs` counts the different ones among what may run. `winner` is what the library shall launch; there is none
    where nothing ran. `searched` says that a search chose which candidates are measured.
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
        """What ran, the fastest first."""
        return sorted((row for row in self.rows if row.time), key=lambda row: row.time.seconds if row.time else 0.0)

    def listing(self, device: str) -> str:
        """What ran, from the worst to the best, as the original prints it."""
        results = [result for row in self.rows if (result := row.result(self.flops))]
        return f"{heading(self.name)}\n{listing(device, results)}"

    def over_system(self, row: SolutionRow) -> float | None:
        """The system BLAS's time over a row's: above 1 the row is faster."""
        system = self.row(RowKind.SYSTEM)
        if system is None or system.time is None or row.time is None:
            return None
        return system.time.seconds / row.time.seconds

    def ties(self) -> list[SolutionRow]:
        """Those that could not be told from the winner, each once."""
        told = self.decision.ties if self.decision else ()
        solutions = {row.solution.configuration: row for row in reversed(self.rows)}
        return [solutions[config] for config in told if config in solutions]

    def failures(self) -> list[tuple[str, int, str]]:
        """What did not run: reason, how many, and what was said of the first."""
        failed = [row for row in self.rows if row.failure]
        counts = Counter(row.failure for row in failed)
        first = {row.failure: f"{row.name}: {row.detail}" for row in reversed(failed)}
        return [(reason, count, first[reason]) for reason, count in counts.most_common()]

    @property
    def left(self) -> int:
        """Candidates that may run and were not tried."""
        return sum(row.measurement is None and row.rejection is None for row in self.rows)


def _parameters(solution: Solution) -> str:
    """Of a solution of another family: its name and what tells its configurations apart at a glance."""
    shown = solution.configuration.only(["WorkGroup", "ThreadTile", "VectorWidth", "DepthU"])
    return " ".join([solution.kernel, *(f"{name} {value_text(value)}" for name, value in shown.items())])
