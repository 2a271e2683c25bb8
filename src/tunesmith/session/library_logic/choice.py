"""What Tensile would choose by a library logic (`tunesmith select --logic`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunesmith.formats.tensile.library.contraction import LARGEST_SIZE, ContractionType, SizedContraction
from tunesmith.formats.tensile.library.read import is_tensile_logic, read_logic
from tunesmith.formats.tensile.library.selection import TensileSelector
from tunesmith.logic.files import MARK
from tunesmith.problems import MOST_GENERATED_BYTES, beginning_of
from tunesmith.records import UserError


@dataclass(frozen=True, slots=True)
class LogicAnswer:
    """The solution for a size and the rule that chose it; without a solution, `name` is empty and `index` is None.

    `own_index` is the file's SolutionIndex. `row` has the sizes of the row that decided, and `speed` what the row
    records. `passed_over` has names and reasons of solutions that would have come first but may not run the size.
    """

    problem_type: str
    sizes: tuple[int, ...]
    rule: str
    name: str = ""
    index: int | None = None
    own_index: int | None = None
    parameters: Mapping[str, Any] | None = None
    row: tuple[int, ...] = ()
    speed: float | None = None
    distance: float | None = None
    distance_name: str = ""
    detail: str = ""
    passed_over: tuple[tuple[str, str], ...] = ()


def is_ours(path: Path) -> bool:
    """Whether a logic is tunesmith's: a folder, a file with its mark, or one that Tensile would not read either."""
    if path.is_dir():
        return True
    lines = beginning_of(path, "YAML", MOST_GENERATED_BYTES).split(b"\n")
    return any(line.startswith(MARK) for line in lines) or not is_tensile_logic(path)


def tensile_choice(path: Path, numbers: tuple[int, ...], problem_type: str = "") -> LogicAnswer:
    """What Tensile would choose by this file. Raises UserError for sizes that the type does not have."""
    logic = read_logic(path)
    kind = logic.problem_type
    if problem_type not in ("", kind.name):
        raise UserError("--type", f"{path} has no logic of {problem_type}", f"it is one of {kind.name}")
    sizes, leading = _sizes(numbers, kind)
    made = TensileSelector(logic).choose(SizedContraction(kind, sizes, leading))
    passed = tuple((logic.solutions[index].name, reason) for index, reason in made.passed_over)
    common: dict[str, Any] = {"problem_type": kind.name, "sizes": sizes, "rule": made.rule.value}
    if made.solution is None:
        return LogicAnswer(**common, detail=made.detail, passed_over=passed)
    return LogicAnswer(
        **common,
        name=made.solution.name,
        index=made.solution.index,
        own_index=made.solution.own_index,
        parameters=made.solution.parameters,
        row=(*made.row.sizes, *made.row.leading) if made.row is not None else (),
        speed=made.row.speed if made.row is not None else None,
        distance=made.distance,
        distance_name=logic.distance.value if logic.distance is not None and made.row is not None else "",
        detail=made.detail,
        passed_over=passed,
    )


def _sizes(numbers: tuple[int, ...], kind: ContractionType) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes, and the leading dimensions of D, C, A and B if they follow. A batch of 1 may be left out or given."""
    count = kind.index_count
    if kind.is_gemm and kind.batch and len(numbers) == 3:
        numbers = (*numbers[:2], 1, numbers[2])
    elif kind.is_gemm and not kind.batch and len(numbers) == 4 and numbers[2] == 1:
        numbers = (*numbers[:2], numbers[3])
    if len(numbers) not in (count, count + 4):
        what = f"{len(numbers)} sizes given, {kind.name} has {', '.join(kind.size_names)}"
        raise UserError("--size", what, "give one number for each, and no more or all of LDD, LDC, LDA, LDB")
    if max(numbers) > LARGEST_SIZE:
        raise UserError("--size", f"{max(numbers)} is too large", f"give sizes up to {LARGEST_SIZE}")
    return numbers[:count], numbers[count:]
