"""`Tuned`, the result of tuning a kernel from Python: the winner of each size, launches, and what failed."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from tunesmith.kernels import LANGUAGE
from tunesmith.library import Library, load
from tunesmith.logic import FinalTable
from tunesmith.problems.custom import sizes_of
from tunesmith.records import Configuration, Outcome, Problem, Solution, UserError, Value
from tunesmith.session import RunOutcome, TuningPlan

from .arguments import DenseArray
from .kernel import KernelDescription

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tunesmith.library._typed import TensorT

MOST_REASONS = 5
"""The most reasons that the error names if nothing ran right."""


class Tuned:
    """A tuned kernel. `folder` holds tables, library logic and everything that was measured.

    `outcome` is the run's: whether it was finished, how the device drifted, and sentences to look at.
    """

    def __init__(
        self,
        outcome: RunOutcome[TuningPlan],
        kernel: KernelDescription,
        tuning_file: str,
        source: Path,
    ) -> None:
        self.outcome, self.folder = outcome, outcome.folder
        self._kernel, self._tuning_file, self._source = kernel, tuning_file, source
        if not self._decided:
            raise UserError(kernel.location, *_why_nothing(outcome, self.failed))

    @property
    def winners(self) -> dict[tuple[int, ...], dict[str, Value]]:
        """The winner's parameters by size."""
        return {problem.sizes: self._parameters(chosen[0].configuration) for problem, chosen in self._decided.items()}

    @property
    def winner(self) -> dict[str, Value]:
        """The winner's parameters at the only size, or at the first of several."""
        return next(iter(self.winners.values()))

    @property
    def ties(self) -> dict[tuple[int, ...], list[dict[str, Value]]]:
        """The configurations that could not be told from the winner, by size."""
        return {
            problem.sizes: [self._parameters(solution.configuration) for solution in tied]
            for problem, (_, *tied) in self._decided.items()
        }

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row for each configuration at each size that ran: sizes, parameters, seconds with the 95 % interval, and
        whether it won. The fastest come first. `pandas.DataFrame(tuned.table)` shows it well."""
        rows = []
        for problem, solution, cell in self._cells():
            if cell.time:
                row = {**sizes_of(problem), **self._parameters(solution.configuration), "seconds": cell.time.seconds}
                row |= {"low": cell.time.low, "high": cell.time.high}
                rows.append(row | {"winner": self._decided.get(problem, (None,))[0] == solution})
        return sorted(rows, key=lambda row: (*(row[name] for name in self._kernel.size_names), row["seconds"]))

    @property
    def failed(self) -> list[dict[str, Any]]:
        """A row for each configuration at each size that was rejected or did not run right: sizes, parameters, outcome,
        reason and detail."""
        return [
            {
                **sizes_of(problem),
                **self._parameters(solution.configuration),
                "outcome": cell.outcome.value,
                "reason": cell.reason,
                "detail": cell.detail,
            }
            for problem, solution, cell in self._cells()
            if cell.outcome is not Outcome.OK
        ]

    def seconds(self, *sizes: int) -> float:
        """The winner's time at a size; at the only size without one. Raises KeyError for a size that is not tuned."""
        for table in self._tables:
            for problem, (winner, *_) in table.decided.items():
                time = table.cell(problem, winner).time
                if time and sizes in ((), problem.sizes):
                    return time.seconds
        raise KeyError(sizes)

    @overload
    def launch(self, **arrays: NDArray[Any]) -> NDArray[Any] | Any: ...

    @overload
    def launch(self, **arrays: TensorT) -> TensorT | Any: ...

    @overload
    def launch(self, **arrays: Any) -> Any: ...

    def launch(self, **arrays: Any) -> Any:
        """Launch the best configuration for these arrays; missing outputs are made. Returns the output, or several by
        name. Numbers and local memory follow from the sizes, which follow from the arrays' shapes."""
        fixed = self._kernel.sizes[0] if self._has_fixed_shapes else {}
        return self.library.launch(self._kernel.name, arrays, sizes=fixed)

    @cached_property
    def library(self) -> Library:
        """The library that `launch` uses, opened once."""
        return load(self.folder, device=self.outcome.target.selector)

    def as_tuning_file(self) -> str:
        """The tuning file that says the same, for `tunesmith tune`. It names a description, which `save` writes."""
        return self._tuning_file

    def save(self, folder: str | Path) -> Path:
        """Copy the library logic, for `tunesmith.load`, and the tuning file with the files that it names."""
        target = Path(folder)
        try:
            target.mkdir(parents=True, exist_ok=True)
            for file in (*self.outcome.logic_files, *(path for path in self._source.iterdir() if path.is_file())):
                shutil.copy(file, target / (file.name if file.parent == self._source else f"logic-{file.name}"))
        except OSError as error:
            raise UserError(str(target), f"cannot be written ({error.strerror})", "name another folder") from None
        return target

    def __repr__(self) -> str:
        lines = [f"{self._kernel.name} on {self.outcome.target.name}"]
        for sizes, parameters in self.winners.items():
            shown = " ".join(f"{name}={value}" for name, value in parameters.items())
            tied = f" (ties: {len(self.ties[sizes])})" if self.ties[sizes] else ""
            lines.append(f"  {' x '.join(map(str, sizes))}: {self.seconds(*sizes) * 1e6:.1f} us  {shown}{tied}")
        lines += [f"look at: {sentence}" for sentence in self.outcome.look_at]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The fastest ten configurations, for a notebook."""
        rows = self.table[:10]
        head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(value))}</td>" for value in row.values()) + "</tr>" for row in rows
        )
        return f"<pre>{escape(repr(self))}</pre><table><tr>{head}</tr>{body}</table>"

    @property
    def _has_fixed_shapes(self) -> bool:
        arrays = (argument for argument in self._kernel.arguments.values() if isinstance(argument, DenseArray))
        return all(isinstance(extent, int) for array in arrays for extent in array.shape)

    @property
    def _tables(self) -> Sequence[FinalTable]:
        return [table for group in self.outcome.plan.groups if (table := group.table)]

    @property
    def _decided(self) -> Mapping[Problem, tuple[Solution, ...]]:
        return {problem: chosen for table in self._tables for problem, chosen in table.decided.items()}

    def _cells(self) -> list[tuple[Problem, Solution, Any]]:
        return [
            (problem, solution, table.cell(problem, solution))
            for table in self._tables
            for problem in table.problems
            for solution in table.solutions
        ]

    def _parameters(self, config: Configuration) -> dict[str, Value]:
        return {name: value for name, value in config.items() if name != LANGUAGE}


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _why_nothing(outcome: RunOutcome[TuningPlan], failed: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """What is wrong if no configuration won, and the remedy."""
    reasons = Counter(
        ": ".join(filter(None, (row["outcome"], row["reason"], _main_line(row["detail"])))) for row in failed
    )
    if not reasons:
        left_out = ", ".join(f"{reason} ({count})" for reason, count in outcome.plan.left_out.items())
        remarks = "; ".join(outcome.look_at)
        return f"no configuration is legal ({left_out or remarks})", "relax a constraint, or add values to a parameter"
    shown = " | ".join(f"{reason} ({count})" for reason, count in reasons.most_common(MOST_REASONS))
    wrong = all(row["outcome"] in ("wrong result", "rejected") for row in failed)
    reference = "look at the reference and the tolerance; where terms cancel, return (value, magnitude)"
    remedy = reference if wrong else "mend the kernel"
    return f"no configuration ran right: {shown}", remedy


def _main_line(detail: str) -> str:
    """The line of a compiler's message that says what is wrong."""
    lines = [line.strip() for line in detail.splitlines() if line.strip()]
    return next((line for line in lines if "error:" in line), lines[0] if lines else "")
