"""The unit of an operation's work, and its names in tables, files and documents."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.problems import OPERATIONS
from tunesmith.records import ProblemType, UserError

_WORDS = {"FLOP": "Flops", "B": "Bytes"}
"""The spelling of units in column names. Other units are spelled as they are, after a space, which no index has in its
name."""


@dataclass(frozen=True, slots=True)
class Unit:
    """`name` is `Operation.unit`: FLOP, B, or a word such as `elements`."""

    name: str = "FLOP"

    @staticmethod
    def of(kind: ProblemType) -> Unit:
        """The unit of a problem type. Raises UserError if the type's operation is not installed."""
        if kind.operation not in OPERATIONS:
            what = f"there is no operation {kind.operation}; there are {', '.join(OPERATIONS)}"
            raise UserError(kind.name, what, "install the distribution that has it")
        return Unit(OPERATIONS[kind.operation].unit)

    @staticmethod
    def of_total(column: str) -> Unit | None:
        """The unit of a table's column of totals; None for any other column."""
        units = {f"Total{word}": unit for unit, word in _WORDS.items()}
        unit = units.get(column) or column.removeprefix("Total ")
        return Unit(unit) if unit != column else None

    @property
    def total(self) -> str:
        """The name of the column of a problem's work: `TotalFlops`."""
        return f"Total{_WORDS.get(self.name, f' {self.name}')}"

    @property
    def rate(self) -> str:
        """The unit of rates, 10^9 units per second, in headings: `GFLOP/s`."""
        return f"G{self.name}/s"

    @property
    def column(self) -> str:
        """The unit of rates in names of columns, and in lower case in keys: `GFlops`, `gflops`."""
        return f"G{_WORDS.get(self.name, self.name)}"
