"""`tunesmith tune` as text: what a run came to."""

from __future__ import annotations

from rich.console import Group, RenderableType

from tunesmith.logic import Logic
from tunesmith.session.frame.record import Outcome
from tunesmith.session.tune import TuningPlan

from . import _text
from ._run import closing
from ._table import table, titled


def winners(logic: Logic) -> RenderableType:
    """Per size: the winner, its rate with interval."""
    document = logic.document
    rate = document.unit.rate
    title = f"{document.problem_type.name} on {document.origin.device}"
    shown = table("size", rate, "±", "n", "solution", right=(rate, "±", "n"))
    for row in document.rows:
        name = document.solutions[row.solution].name
        size = "x".join(map(str, row.where))
        shown.add_row(size, f"{row.rate:.4g}", _text.half_width(row.estimate)[1:], str(row.estimate.count), name)
    return titled(title, shown)


def logic_parts(found: list[tuple[str, Logic]]) -> list[RenderableType]:
    """For each logic, by its path: winners, regret and where it is."""
    parts: list[RenderableType] = []
    for path, logic in found:
        unfinished = [f"unfinished: {logic.document.unfinished}"] if logic.document.unfinished else []
        parts += [winners(logic), *unfinished, str(logic.document.regret or ""), f"logic: {path}", ""]
    return parts


def outcome(done: Outcome[TuningPlan]) -> RenderableType:
    """Winners, regret, where the files are, what it cost, what to look at."""
    parts = logic_parts([(str(path), Logic.load(path)) for path in done.logic])
    return Group(*parts, *(f"CSV: {path}" for path in done.written if path.suffix == ".csv"), *closing(done))
