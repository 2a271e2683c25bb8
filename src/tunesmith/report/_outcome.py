"""`tunesmith tune` as text: what a run came to."""

from __future__ import annotations

from rich.console import Group, RenderableType

from tunesmith.logic import Logic
from tunesmith.session.tune import Outcome

from . import _text
from ._table import table, titled


def winners(logic: Logic) -> RenderableType:
    """Per size: the winner, GFLOP/s with interval."""
    document = logic.document
    title = f"{document.problem_type.name} on {document.origin.device}"
    shown = table("size", "GFLOP/s", "±", "n", "solution", right=("GFLOP/s", "±", "n"))
    for row in document.rows:
        name = document.solutions[row.solution].name
        size = "x".join(map(str, row.where))
        shown.add_row(size, f"{row.gflops:.4g}", _text.half_width(row.estimate)[1:], str(row.estimate.count), name)
    return titled(title, shown)


def logic_parts(found: list[tuple[str, Logic]]) -> list[RenderableType]:
    """For each logic, by its path: winners, regret and where it is."""
    parts: list[RenderableType] = []
    for path, logic in found:
        parts += [winners(logic), str(logic.document.regret or ""), f"logic: {path}", ""]
    return parts


def outcome(done: Outcome) -> RenderableType:
    """Winners, regret, where the files are, what it cost, what to look at."""
    parts = logic_parts([(str(path), logic) for path, logic in done.logic])
    parts += [f"CSV: {group.csv}" for group in done.groups if group.csv]
    ledger = done.ledger
    parts.append(
        f"{ledger.measured} measured, {ledger.reused} found in the store, in {_text.duration(done.seconds)} "
        f"({_text.cost(ledger.cost)})"
    )
    return Group(*parts, *(f"look at: {sentence}" for sentence in done.look_at))
