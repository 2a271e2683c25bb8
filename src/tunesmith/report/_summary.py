"""`tunesmith show` as text: what a run's folder holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Group, RenderableType

from tunesmith.logic import Sheet
from tunesmith.session.tune import Summary
from tunesmith.store import Failure, StepRecord

from . import _text
from ._outcome import logic_parts
from ._table import table, titled

MOST_COLUMNS = 8
"""Solutions of a final that a terminal can hold; the CSV has them all."""


def summary(found: Summary) -> RenderableType:
    """The steps with their winners, the final tables, the logic, what did not run and why, and what it all cost."""
    start, end = found.run.start, found.run.end
    runs = "1 run" if found.runs == 1 else f"{found.runs} runs"
    parts: list[RenderableType] = [
        f"{start.tuning_file} on {start.device}: {found.run.state.value}, {runs}",
        "",
        _steps(found.steps),
        *_remarks(found.steps),
        "",
    ]
    for path, sheet in found.finals:
        parts += [_final(path.parent.name, sheet), ""]
    parts += logic_parts([(str(path), logic) for path, logic in found.logic])
    rejected = sum((Counter(step.rejected) for step in found.steps), Counter[str]())
    if rejected:
        parts += [_rejections(rejected), ""]
    if found.failures:
        parts += [_failures(found.failures), ""]
    last = f"; the last run took {_text.duration(end.seconds)}" if end else ""
    return Group(*parts, f"cost: {_text.cost(found.cost)}{last}")


def _remarks(steps: Sequence[StepRecord]) -> list[str]:
    """A sentence for each lineage that was dropped, and each value that had to be substituted."""
    said = [f"{step.name}: {note}" for step in steps for note in step.notes]
    return said + [f"{step.name}: dropped {dropped}" for step in steps for dropped in step.dropped]


def _rejections(rejected: Counter[str]) -> RenderableType:
    shown = table("reason", "count", right=("count",))
    for reason, count in rejected.most_common():
        shown.add_row(reason, str(count))
    return titled("rejected, and so not measured", shown)


def _failures(failures: Sequence[Failure]) -> RenderableType:
    shown = table("outcome", "reason", "count", "example", right=("count",))
    for one in failures:
        shown.add_row(one.outcome.value, one.reason, str(one.count), one.example)
    return titled("failures", shown)


def _steps(steps: Sequence[StepRecord]) -> RenderableType:
    counts = ("lineages", "candidates", "sizes", "rejected", "failed")
    shown = table("step", *counts, "winner", "lineage", right=counts)
    for step in steps:
        numbers = (
            step.lineages,
            step.candidates,
            step.problems,
            sum(step.rejected.values()),
            sum(step.failed.values()),
        )
        cells = [str(number) if number else "" for number in numbers]
        varied = [winner for winner in step.winners if winner.chosen]
        for place, winner in enumerate(varied or [None]):
            chosen = _text.configuration(winner.chosen) + (" (tie)" if winner.tie else "") if winner else ""
            lineage = _text.configuration(winner.lineage.without(winner.chosen)) if winner else ""
            shown.add_row(*(([step.name, *cells]) if place == 0 else [""] * 6), chosen, lineage)
    return titled("steps", shown)


def _final(name: str, sheet: Sheet) -> RenderableType:
    """The speed of the solutions that win somewhere or come closest, numbered; their names are below the table."""
    rows = range(len(sheet.sizes))
    best = {row: max((sheet.rates.get((row, n), 0.0) for n in sheet.names), default=0.0) for row in rows}
    merit = {n: sum(sheet.rates.get((row, n), 0.0) / best[row] for row in rows if best[row]) for n in sheet.names}
    columns = sorted(sheet.names, key=lambda n: -merit[n])[:MOST_COLUMNS]
    title = f"{name}: {sheet.unit.rate} of the {len(columns)} best of {len(sheet.names)} solutions"
    shown = table("size", *(f"#{place}" for place in range(1, len(columns) + 1)))
    for row, sizes in enumerate(sheet.sizes):
        cells = []
        for column in columns:
            speed = sheet.rates.get((row, column))
            mark = "*" if speed is not None and speed == best[row] else ""
            cells.append(f"{speed:.4g}{mark}" if speed is not None else "-")
        shown.add_row("x".join(str(size) for size in sizes.values()), *cells)
    return titled(title, shown, *(f"#{place} {column}" for place, column in enumerate(columns, start=1)))
