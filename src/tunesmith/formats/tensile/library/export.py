"""Our library logic of a GEMM type as Tensile's, in the list form.

The kernels are ours, so that Tensile cannot launch them. Whatever reads library logic can read the file, and chooses
the same solution at each exact size.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import yaml

from tunesmith.logic import Document, NamedSolution, SizeRow
from tunesmith.records import UserError, comment_text, thaw

from .gemm_types import not_exported, tensile_fields
from .read import METRICS, VERSION
from .records import Distance

REQUIRED_VERSION = "4.33.0"
"""The version of Tensile that the file asks for: the distance's place in the list is as old."""
SCHEDULE = "tunesmith"
KERNEL = "TunesmithKernel"
"""The parameter that names our kernel's family."""

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True, slots=True)
class LogicExport:
    """The text of the file, how many rows it has, its distance, and in words what the file cannot say."""

    text: str
    rows: int
    distance: Distance
    notes: tuple[str, ...]


def export_logic(document: Document, source: str) -> LogicExport:
    """A library logic of Tensile with the solutions and exact sizes of ours. `source` names ours in messages.

    The distance is Euclidean. If that would confuse sizes that differ only in their batch, it is Equality, which knows
    the batch and takes exact sizes only. Tensile does not tell leading dimensions apart: of several rows of the same
    sizes, the one with natural leading dimensions stays, or else the fastest. Raises UserError for a type that Tensile
    does not have.
    """
    kind = document.problem_type
    if reason := not_exported(kind):
        raise UserError(source, f"{kind.name} has no counterpart in Tensile: {reason}", "export the logic of a GEMM")
    rows, notes = _kept_rows(document)
    distance = Distance.EUCLIDEAN if _is_clear(document, rows) else Distance.EQUALITY
    if distance is Distance.EQUALITY:
        notes.append("sizes that differ only in their batch have different solutions: only exact sizes are answered")
    batch = [2] if kind.fields.flag("Batched") else []
    count = len(kind.indices)
    content = [
        {VERSION: REQUIRED_VERSION},
        SCHEDULE,
        document.origin.architecture or document.origin.kind,
        [document.origin.device],
        tensile_fields(kind),
        [_solution(index, named) for index, named in enumerate(document.solutions)],
        [*batch, count - 1, 0, 1],
        [[list(row.where), [row.solution, row.rate]] for row in rows],
        None,
        None,
        METRICS[0],
        None,
        distance.value,
    ]
    head = f"# Made by tunesmith {comment_text(document.origin.tunesmith)} of {comment_text(source)}.\n"
    text = head + str(
        yaml.dump(content, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, default_flow_style=None, width=120)
    )
    return LogicExport(text, len(rows), distance, tuple(notes))


def _kept_rows(document: Document) -> tuple[list[SizeRow], list[str]]:
    """One row for each size, and what was left out, in words."""
    by_size: dict[tuple[int, ...], list[SizeRow]] = defaultdict(list)
    for row in document.rows:
        by_size[row.sizes].append(row)
    kept = [min(rows, key=lambda row: (bool(row.leading), -row.rate)) for rows in by_size.values()]
    left_out = len(document.rows) - len(kept)
    note = f"{left_out} rows with other leading dimensions are left out: Tensile does not tell them apart"
    return kept, [note] if left_out else []


def _is_clear(document: Document, rows: list[SizeRow]) -> bool:
    """Whether sizes that are equal but for the batch have the same solution."""
    chosen: dict[tuple[int, ...], set[int]] = defaultdict(set)
    batch = document.problem_type.indices.index("Batch") if "Batch" in document.problem_type.indices else None
    for row in rows:
        chosen[tuple(size for index, size in enumerate(row.sizes) if index != batch)].add(row.solution)
    return all(len(solutions) == 1 for solutions in chosen.values())


def _solution(index: int, named: NamedSolution) -> dict[str, Any]:
    configuration = {name: thaw(value) for name, value in named.solution.configuration.items()}
    return {
        "SolutionIndex": index,
        "SolutionNameMin": named.name,
        "ProblemType": tensile_fields(named.solution.type),
        KERNEL: named.solution.kernel,
        **configuration,
    }
