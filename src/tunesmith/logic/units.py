"""What an operation's work is counted in, as tables, files and documents name it."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.problems import OPERATIONS
from tunesmith.records import ProblemType, UserError

_WORDS = {"FLOP": "Flops", "B": "Bytes"}
"""How names of columns spell a unit; another is spelled as it is, behind a space that no index has in its name."""


@dataclass(frozen=True, slots=True)
class Unit:
    """`name` is `Operation.unit`: FLOP, B, or a word such as `elements`."""

    name: str = "FLOP"

    @staticmethod
    def of(kind: ProblemType) -> Unit:
        """Raises UserError where the type's operation is not installed."""
        if kind.operation not in OPERATIONS:
            what = f"there is no operation {kind.operation}; there are {', '.join(OPERATIONS)}"
            raise UserError(kind.name, what, "install the distribution that has it")
        return Unit(OPERATIONS[kind.operation].unit)

    @staticmethod
    def of_total(column: str) -> Unit | None:
        """The unit whose total a column of a table has; None for any other column."""
        known = {f"Total{word}": unit for unit, word in _WORDS.items()}
        unit = known.get(column) or column.removeprefix("Total ")
        return Unit(unit) if unit != column else None

    @property
    def total(self) -> str:
        """The column of a problem's work: `TotalFlops`."""
        return f"Total{_WORDS.get(self.name, f' {self.name}')}"

    @property
    def rate(self) -> str:
        """10^9 of it a second, as headings have it: `GFLOP/s`."""
        return f"G{self.name}/s"

    @property
    def column(self) -> str:
        """The same as a column's name, and in lower case as a key's: `GFlops`, `gflops`."""
        return f"G{_WORDS.get(self.name, self.name)}"
