"""The exact sizes of a Tensile library logic as a list of problems for a tuning file."""

from __future__ import annotations

from pathlib import Path

from tunesmith.problems.lists import ListedProblem
from tunesmith.problems.sizes import LARGEST
from tunesmith.records import ProblemType, UserError

from .gemm_types import mismatch
from .read import read_logic
from .records import ExactRow

SUFFIXES = (".yaml", ".yml")
"""How the name of a library logic ends; any other list is CSV."""


def read_logic_sizes(problem_type: ProblemType, path: Path, location: str) -> list[ListedProblem]:
    """The rows of the logic's table, in its order. `location` is where a tuning file names the logic.

    A row that the type does not have, such as a batch for an unbatched type, has no sizes. Raises UserError for a file
    that is no library logic, for one of other types, and for one without exact sizes.
    """
    logic = read_logic(path)
    if problem_type.operation != "GEMM":
        what = f"{path.name} is a library logic of {logic.problem_type.name}, not of {problem_type.operation}"
        raise UserError(location, what, "name a list of the operation's own sizes")
    if reason := mismatch(logic.problem_type, problem_type):
        what = f"{path.name} is a library logic of {logic.problem_type.name}, not of {problem_type.name} ({reason})"
        raise UserError(location, what, "change the problem type, or name the logic of this one")
    if not logic.rows:
        raise UserError(location, f"{path.name} has no exact sizes", "name a library logic with a table of sizes")
    is_batched = problem_type.fields.flag("Batched")
    problems = [_problem(row, bool(logic.problem_type.batch), is_batched, str(path)) for row in logic.rows]
    if not any(problem.sizes for problem in problems):
        what = f"all {len(problems)} sizes of {path.name} have a batch, {problem_type.name} has none"
        raise UserError(location, what, "set Batched: True")
    return problems


def _problem(row: ExactRow, has_batch: bool, is_batched: bool, path: str) -> ListedProblem:
    m, n, *batch, k = row.sizes
    for size in (*row.sizes, *row.leading):
        if not 1 <= size <= LARGEST:
            raise UserError(f"{path}:{row.line}", f"{size} is no size", f"give a whole number from 1 to {LARGEST}")
    if has_batch and not is_batched and batch != [1]:
        return ListedProblem((), layout="with a batch")
    return ListedProblem((m, n, *(batch if is_batched else ()), k), leading=row.leading)
