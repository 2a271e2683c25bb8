"""The table of a final step: problems by solutions. Each cell is a time with its interval, or the reason why there is
no time."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.problems import MOST_GENERATED_BYTES, OPERATIONS, text_of
from tunesmith.records import (
    Estimate,
    Measurement,
    Outcome,
    Problem,
    ProblemType,
    Solution,
    Target,
    UserError,
    solution_names,
)

from .files import write_atomically
from .units import Unit

NOT_MEASURED = "not measured"
"""The reason of a cell that was never requested."""

DETAIL_COLUMNS = ("Solution", "Outcome", "Reason", "Detail", "Seconds", "Low", "High", "Samples")
DECISION = "Decision"
"""A column of the details: `winner`, or `tie` for a solution that could not be told from the winner."""
WHAT_RAN = ("Kernel", "Configuration", "ProblemType", "Device")
"""The last columns of the details, for programs: the family's name, then JSON objects. The configuration has all
parameters. The device has what identifies its kind, and its number of compute units."""


@dataclass(frozen=True, slots=True)
class TableCell:
    """The outcome of a solution on a problem: an estimate, or an outcome with its reason."""

    outcome: Outcome
    reason: str = ""
    detail: str = ""
    estimate: Estimate | None = None

    @staticmethod
    def of(measurement: Measurement) -> TableCell:
        return TableCell(measurement.outcome, measurement.reason, measurement.detail, measurement.estimate)

    @property
    def time(self) -> Estimate | None:
        """The estimate if it may win: from a successful run, positive and finite. Else None."""
        usable = self.outcome is Outcome.OK and self.estimate is not None
        return self.estimate if usable and _positive(self.estimate.seconds) else None  # type: ignore[union-attr]


@dataclass(frozen=True)
class FinalTable:
    """Problems (rows) by solutions (columns) of one problem type.

    `work` has each problem's work in the unit of its operation (GEMM: floating-point operations). An absent cell was
    not measured. Two problems of a table differ in sizes or leading dimensions; the scalars are the same for all.
    `decided` has each problem's winner, then the solutions that could not be told from it; an absent problem is not
    decided. `named` has the solutions' names if they must be the same as in another table.
    """

    problem_type: ProblemType
    problems: tuple[Problem, ...]
    work: tuple[float, ...]
    solutions: tuple[Solution, ...]
    cells: Mapping[tuple[Problem, Solution], TableCell]
    decided: Mapping[Problem, tuple[Solution, ...]] = field(default_factory=dict)
    named: Mapping[Solution, str] = field(default_factory=dict)

    @staticmethod
    def of_cells(kind: ProblemType, cells: Mapping[tuple[Problem, Solution], TableCell]) -> FinalTable:
        """The table of a type that has these cells, in their order."""
        problems = tuple(dict.fromkeys(problem for problem, _ in cells))
        solutions = tuple(dict.fromkeys(solution for _, solution in cells))
        return FinalTable(kind, problems, tuple(map(OPERATIONS[kind.operation].work, problems)), solutions, cells)

    def cell(self, problem: Problem, solution: Solution) -> TableCell:
        return self.cells.get((problem, solution)) or TableCell(Outcome.REJECTED, NOT_MEASURED)

    def time(self, problem: Problem, solution: Solution) -> Estimate | None:
        return self.cell(problem, solution).time

    @property
    def names(self) -> tuple[str, ...]:
        """A short name for each solution, unique in this table."""
        if self.named:
            return tuple(self.named[solution] for solution in self.solutions)
        return unique(solution_names(self.solutions))

    def __iter__(self) -> Iterator[tuple[Problem, float]]:
        """Each problem with its work."""
        return zip(self.problems, self.work, strict=True)


def write_csv(table: FinalTable, path: Path, target: Target | None = None) -> Path:
    """Write a table of GFLOP/s (10^9 of the operation's unit per second) and beside it `NAME.details.csv`. Returns the
    path of the details.

    The table has a row for each size. Columns: the type's index names, leading dimensions if any row has its own,
    `TotalFlops` (or the operation's unit), then the solutions' names; empty where a solution did not run. The details
    have a row for each cell: outcome, reason, seconds with interval, number of samples, and what ran, on `target`.
    """
    sizes, unit, names = _size_columns(table), Unit.of(table.problem_type), table.names
    rows = (
        [*_sizes(problem, sizes), work, *(rate(work, table.time(problem, s)) for s in table.solutions)]
        for problem, work in table
    )
    details = details_of(path)
    columns = [*sizes, *DETAIL_COLUMNS, unit.column, DECISION, *WHAT_RAN]
    write_atomically(details, _text(columns, _details(table, sizes, names, _device(target))))
    write_atomically(path, _text([*sizes, unit.total, *names], rows))
    return details


def details_of(path: Path) -> Path:
    """The path at which `write_csv` puts the details of a table."""
    return path.with_suffix(".details.csv")


def sizes_of(problem: Problem) -> dict[str, int]:
    """A problem's sizes and leading dimensions by column name, as in `Sheet.sizes`."""
    named = dict(zip(problem.type.indices, problem.sizes, strict=True))
    if not problem.leading:
        return named
    names = (name for name, _ in OPERATIONS[problem.type.operation].leading(problem.type, problem.sizes))
    return named | dict(zip(names, problem.leading, strict=True))


@dataclass(frozen=True)
class Sheet:
    """A CSV as written by `write_csv`: rates, in 10^9 units per second, by row and solution name. A solution that did
    not run is absent.

    `sizes` has a mapping from column name to size for each row, with leading dimensions where the file has them.
    """

    sizes: tuple[Mapping[str, int], ...]
    work: tuple[float, ...]
    names: tuple[str, ...]
    rates: Mapping[tuple[int, str], float]
    unit: Unit = Unit()

    def times(self) -> Iterator[tuple[int, str, float]]:
        """The row, solution name and seconds of every rate. A row whose work is no positive finite number has none."""
        for (row, name), speed in self.rates.items():
            seconds = self.work[row] / (speed * 1e9)
            if _positive(seconds):
                yield row, name, seconds


def read_csv(path: Path) -> Sheet:
    """Read a table that `write_csv` wrote. A cell that is empty, NaN or no positive number means "did not run".

    Raises UserError, with file and line, for anything that is not such a table.
    """
    try:
        text = text_of(path, "CSV", MOST_GENERATED_BYTES, "give a file that `tunesmith tune` wrote")
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise UserError(
            str(path), f"cannot be read as CSV ({error})", "give a file that `tunesmith tune` wrote"
        ) from error
    header = rows[0] if rows else []
    totals = [(index, unit) for index, name in enumerate(header) if (unit := Unit.of_total(name))]
    if not totals or len(set(header)) != len(header):
        what = f"the header has no column {Unit().total}, or a name twice"
        raise UserError(f"{path}:1", what, "give a file that `tunesmith tune` wrote")
    index, unit = totals[-1]
    sizes: list[Mapping[str, int]] = []
    work: list[float] = []
    speeds: dict[tuple[int, str], float] = {}
    for number, row in enumerate(rows[1:]):
        try:
            if len(row) != len(header):
                raise ValueError(f"{len(row)} cells under {len(header)} names")
            sizes.append({name: int(text) for name, text in zip(header[:index], row[:index], strict=True) if text})
            work.append(float(row[index]))
            for name, text in zip(header[index + 1 :], row[index + 1 :], strict=True):
                if text and _positive(speed := float(text)):
                    speeds[number, name] = speed
        except ValueError as error:
            raise UserError(
                f"{path}:{number + 2}", f"is no row of sizes and speeds ({error})", "mend or drop it"
            ) from None
    return Sheet(tuple(sizes), tuple(work), tuple(header[index + 1 :]), speeds, unit)


def rate(work: float, time: Estimate | None) -> float | None:
    """The rate at the median time, in 10^9 units of work per second; None without a time."""
    return work / time.seconds * 1e-9 if time else None


def unique(names: Sequence[str]) -> tuple[str, ...]:
    """`names` made unique: a name that occurred before gets a number."""
    taken: dict[str, None] = {}
    for name in names:
        number, candidate = 1, name
        while candidate in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken[candidate] = None
    return tuple(taken)


def _size_columns(table: FinalTable) -> tuple[str, ...]:
    """The columns that identify a row's problem."""
    kind = table.problem_type
    padded = next((problem for problem in table.problems if problem.leading), None)
    leading = OPERATIONS[kind.operation].leading(kind, padded.sizes) if padded else ()
    return (*kind.indices, *(name for name, _ in leading))


def _sizes(problem: Problem, columns: Sequence[str]) -> list[int | None]:
    sizes = (*problem.sizes, *problem.leading)
    return [*sizes, *[None] * (len(columns) - len(sizes))]


def _device(target: Target | None) -> str:
    if target is None:
        return ""
    return json.dumps(
        {name: getattr(target, name) for name in ("api", "name", "architecture", "driver", "compute_units")}
    )


def _details(table: FinalTable, sizes: Sequence[str], names: Sequence[str], device: str) -> Iterator[list[object]]:
    kind = table.problem_type.to_json()
    for problem, work in table:
        for solution, name in zip(table.solutions, names, strict=True):
            cell = table.cell(problem, solution)
            outcome = [name, cell.outcome.value, cell.reason, cell.detail]
            time = cell.estimate
            numbers = [time.seconds, time.low, time.high, time.count] if time else [None] * 4
            winner, *ties = table.decided.get(problem) or (None,)
            decision = "winner" if solution == winner else "tie" if solution in ties else ""
            ran = [solution.kernel, solution.configuration.to_json(), kind, device]
            yield [*_sizes(problem, sizes), *outcome, *numbers, rate(work, cell.time), decision, *ran]


def _text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def _positive(number: float) -> bool:
    return math.isfinite(number) and number > 0
