"""What `tunesmith logic show`, `build` and `export` and `tunesmith select --logic` print, as text and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from tunesmith.session.library_logic.choice import LogicAnswer
from tunesmith.session.library_logic.export import ExportedLogic
from tunesmith.session.library_logic.stored import StoredLogic
from tunesmith.session.library_logic.summary import LogicSummary

from ..run import Document, fields
from ..table import table, titled

MOST_ROWS = 20
"""Solutions and exact sizes that the text shows; the JSON has all."""


def summary(found: LogicSummary) -> RenderableType:
    """The head of a logic, its solutions with most sizes, its first exact sizes, its rules, and notes."""
    parts: list[RenderableType] = list(_head(found))
    parts += ["", titled(f"solutions: {len(found.solutions)}", _solutions(found))]
    parts += _more(len(found.solutions), "solutions")
    if found.rows:
        parts += ["", titled(f"exact sizes: {len(found.rows)}", _rows(found))]
        parts += _more(len(found.rows), "exact sizes")
    for title, lines in (("range rules", found.ranges), ("regions with decision trees", found.regions)):
        if lines:
            parts += ["", titled(f"{title}: {len(lines)}", *lines[:MOST_ROWS]), *_more(len(lines), title)]
    parts += [f"note: {note}" for note in found.notes]
    return Group(*parts)


def summary_document(found: LogicSummary) -> Document:
    """The whole logic for `--json`, with stable keys (docs/json.md)."""
    return {
        **fields(found, "path", "form", "version", "schedule", "architecture", "compute_units", "is_apu"),
        "devices": list(found.devices),
        "problem_type": found.problem_type,
        "size_names": list(found.size_names),
        "data_types": list(found.data_types),
        **fields(found, "metric", "distance", "others"),
        "solutions": [
            {
                **fields(solution, "index", "name", "kernel", "sizes"),
                "configuration": _plain(solution.parameters),
            }
            for solution in found.solutions
        ],
        "exact": [
            {
                "sizes": list(row.sizes),
                "leading": list(row.leading),
                "solution": row.solution,
                "speed": _plain(row.speed),
            }
            for row in found.rows
        ],
        "ranges": list(found.ranges),
        "regions": list(found.regions),
        "notes": list(found.notes),
    }


def answer(made: LogicAnswer) -> RenderableType:
    """The solution, the rule that chose it and what it rests on, and the solutions that may not run the size."""
    head = f"size      {_times(made.sizes)} of {made.problem_type}"
    passed = [f"not       {name}: {reason}" for name, reason in made.passed_over]
    if made.index is None:
        return Group(head, f"rule      {made.rule}: {made.detail}", *passed)
    own = f", SolutionIndex {made.own_index}" if made.own_index not in (None, made.index) else ""
    why = [made.rule]
    if made.row:
        why.append(f"row {_times(made.row)} at {made.distance_name} distance {made.distance:.6g}")
    if made.detail:
        why.append(made.detail)
    speed = [f"recorded  {made.speed:.6g}"] if made.speed is not None else []
    return Group(head, f"solution  {made.index}{own}: {made.name}", f"rule      {': '.join(why)}", *speed, *passed)


def answer_document(made: LogicAnswer) -> Document:
    return {
        "problem_type": made.problem_type,
        "sizes": list(made.sizes),
        "solution": made.name or None,
        "index": made.index,
        "solution_index": made.own_index,
        "configuration": _plain(made.parameters) if made.parameters is not None else None,
        "rule": made.rule,
        "detail": made.detail,
        "neighbour": list(made.row),
        "distance": _plain(made.distance),
        "distance_name": made.distance_name,
        "recorded_speed": _plain(made.speed),
        "passed_over": [{"solution": name, "reason": reason} for name, reason in made.passed_over],
    }


def built(folder: Path, made: Sequence[StoredLogic]) -> RenderableType:
    return Group(
        *(
            f"{folder / logic.logic_path}: {len(logic.document.rows)} sizes, {len(logic.document.solutions)} solutions"
            f" on {logic.target.name}"
            for logic in made
        )
    )


def built_document(folder: Path, made: Sequence[StoredLogic]) -> Document:
    return {
        "logics": [
            {
                "path": str(folder / logic.logic_path),
                "table": str(folder / logic.table_path),
                "problem_type": logic.document.problem_type.name,
                "device": logic.target.name,
                "solutions": len(logic.document.solutions),
                "rows": len(logic.document.rows),
            }
            for logic in made
        ]
    }


def export(made: ExportedLogic) -> RenderableType:
    return Group(
        f"{made.path}: {made.problem_type}, {made.solutions} solutions, {made.rows} exact sizes, {made.distance}",
        *(f"note: {note}" for note in made.notes),
    )


def export_document(made: ExportedLogic) -> Document:
    return {
        "source": str(made.source),
        "path": str(made.path),
        **fields(made, "problem_type", "solutions", "rows", "distance"),
        "notes": list(made.notes),
    }


def _head(found: LogicSummary) -> Iterator[str]:
    units = f", {found.compute_units} compute units" if found.compute_units is not None else ""
    kind = {True: ", an APU", False: ", no APU", None: ""}[found.is_apu]
    facts = {
        "file": f"{found.path}, {found.form} of version {found.version}",
        "device": f"{found.architecture}{units}{kind}: {', '.join(found.devices)}",
        "schedule": found.schedule,
        "type": f"{found.problem_type}, sizes {' '.join(found.size_names)}",
        "data": " ".join(
            f"{name} {letters}" for name, letters in zip(("operands", "result", "sums"), found.data_types, strict=False)
        ),
        "speed": found.metric,
        "others": found.others,
    }
    return (f"{name:<9} {fact}" for name, fact in facts.items() if fact)


def _solutions(found: LogicSummary) -> RenderableType:
    best = sorted(found.solutions, key=lambda solution: (-solution.sizes, solution.index))[:MOST_ROWS]
    rows = ((solution.index, solution.name, solution.kernel, solution.sizes) for solution in best)
    return table("index", "name", "kernel", "sizes", right=("index", "sizes"), rows=rows)


def _rows(found: LogicSummary) -> RenderableType:
    rows = ((_times((*row.sizes, *row.leading)), row.solution, f"{row.speed:.6g}") for row in found.rows[:MOST_ROWS])
    return table("size", "solution", "speed", right=("solution", "speed"), rows=rows)


def _more(count: int, what: str) -> list[str]:
    return [f"and {count - MOST_ROWS} more {what}; --json lists them"] if count > MOST_ROWS else []


def _times(sizes: tuple[int, ...]) -> str:
    return "x".join(map(str, sizes))


def _plain(value: Any) -> Any:
    """A value as JSON can hold it: text for numbers that are not finite, and for keys."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value
