"""Facts as tables for a terminal; the same facts as plain rows for JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from tunesmith.devices import Found
from tunesmith.logic import Choice, Logic, Rule, Sheet
from tunesmith.session import Comparison, Outcome, Plan, Summary
from tunesmith.store import StepRecord

from . import _text


def table(title: str, *columns: str, right: Sequence[str] = ()) -> Table:
    """An empty table in the house's look; the columns in `right` are numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", header_style="", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def devices(found: Sequence[Found]) -> RenderableType:
    """Usable devices with their limits, then what is not usable and why."""
    shown = table("devices", "selector", "name", "kind", "units", "work-group", "local", "memory", "cache", "fp64")
    for one in found:
        if one.usable and one.target:
            t = one.target
            sizes = (_text.size(b) for b in (t.local_memory_bytes, t.global_memory_bytes, t.last_level_cache_bytes))
            limits = (str(t.compute_units), str(t.max_work_group_size), *sizes, "yes" if t.double_precision else "no")
            shown.add_row(t.selector, t.name, t.kind, *limits)
    unusable = [f"{one.name}: {one.problem}; {one.remedy}" for one in found if not one.usable]
    return Group(shown, *(["", "not usable:"] if unusable else []), *unusable)


def winner_rows(logic: Logic) -> list[dict[str, Any]]:
    """One plain row a size of a logic: what was chosen, how fast, how sure."""
    document = logic.document
    return [
        {
            "problem_type": document.problem_type.name,
            "sizes": list(row.sizes),
            "leading": list(row.leading),
            "solution": document.solutions[row.solution].name,
            "seconds": row.estimate.seconds,
            "low": row.estimate.low,
            "high": row.estimate.high,
            "samples": row.estimate.count,
            "gflops": row.gflops,
        }
        for row in document.rows
    ]


def winners(logic: Logic) -> Table:
    """Per size: the winner, GFLOP/s with interval."""
    document = logic.document
    title = f"{document.problem_type.name} on {document.origin.device}"
    shown = table(title, "size", "GFLOP/s", "±", "n", "solution", right=("GFLOP/s", "±", "n"))
    for row in document.rows:
        name = document.solutions[row.solution].name
        size = "x".join(map(str, row.where))
        shown.add_row(size, f"{row.gflops:.4g}", _text.half_width(row.estimate)[1:], str(row.estimate.count), name)
    return shown


def outcome(done: Outcome) -> RenderableType:
    """What a run came to: winners, regret, where the files are, what it cost, what to look at."""
    parts: list[RenderableType] = []
    for path, logic in done.logic:
        parts += [winners(logic), str(logic.document.regret or ""), f"logic: {path}", ""]
    parts += [f"CSV: {group.csv}" for group in done.groups]
    ledger = done.ledger
    spent = f"compiling {_text.duration(ledger.cost.compile)}, verifying {_text.duration(ledger.cost.verify)}"
    parts.append(
        f"{ledger.measured} measured, {ledger.reused} found in the store, in {_text.duration(done.seconds)} "
        f"({spent}, timing {_text.duration(ledger.cost.timing)})"
    )
    return Group(*parts, *looked_at(done.look_at))


def looked_at(sentences: Iterable[str]) -> list[str]:
    return [f"look at: {sentence}" for sentence in sentences]


def plan(made: Plan) -> RenderableType:
    """Steps with their counts before and after rejections, enqueues beside the exhaustive product, minutes."""
    parts: list[RenderableType] = [*made.notes]
    for group in made.groups:
        counts = ("lineages", "choices", "candidates", "sizes", "enqueues", "legal", "survivors", "time")
        shown = table(f"{group.name} on {made.target.name}", "step", *counts, right=counts)
        rows = zip(group.forecast.before, group.forecast.after, group.seconds, strict=True)
        for before, after, seconds in rows:
            expected = _text.duration(seconds) if seconds else ""
            numbers = (before.lineages, before.choices, before.candidates, before.sizes, before.enqueues)
            measured = (str(after.enqueues) if before.enqueues else "", str(before.survivors), expected)
            shown.add_row(before.name, *(str(number) if number else "" for number in numbers), *measured)
        forecast = group.forecast
        parts += [
            shown,
            f"{forecast.enqueues_before} enqueues, {forecast.enqueues_after} after rejections; exhaustive: "
            f"{forecast.exhaustive}",
            "",
        ]
    if made.seconds is not None:
        parts.append(f"expected: {made.seconds / 60:.1f} minutes at most (racing makes it less)")
    return Group(*parts)


def summary(found: Summary) -> RenderableType:
    """`tunesmith show` as text."""
    start, end = found.run.start, found.run.end
    parts: list[RenderableType] = [
        f"{start.tuning_file} on {start.device}: {found.run.state.value}, {found.runs} runs",
        "",
    ]
    parts += [_steps(found.steps), ""]
    for path, sheet in found.finals:
        parts += [_final(path.parent.name, sheet), ""]
    for path, logic in found.logic:
        parts += [winners(logic), str(logic.document.regret or ""), f"logic: {path}", ""]
    if found.failures:
        failed = table("failures", "outcome", "reason", "count", "example", right=("count",))
        for one in found.failures:
            failed.add_row(one.outcome.value, one.reason, str(one.count), one.example)
        parts += [failed, ""]
    cost = found.cost
    parts.append(
        f"cost: compiling {_text.duration(cost.compile)}, verifying {_text.duration(cost.verify)}, "
        f"timing {_text.duration(cost.timing)}" + (f"; the last run took {_text.duration(end.seconds)}" if end else "")
    )
    return Group(*parts)


def _steps(steps: Sequence[StepRecord]) -> Table:
    counts = ("lineages", "candidates", "sizes", "rejected", "failed")
    shown = table("steps", "step", *counts, "winner", "lineage", right=counts)
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
    return shown


MOST_COLUMNS = 8
"""Solutions of a final that a terminal can hold; the CSV has them all."""


def _final(name: str, sheet: Sheet) -> Table:
    """GFLOP/s of the solutions that win somewhere or come closest, numbered; their names are below the table."""
    rows = range(len(sheet.sizes))
    best = {row: max((sheet.gflops.get((row, n), 0.0) for n in sheet.names), default=0.0) for row in rows}
    merit = {n: sum(sheet.gflops.get((row, n), 0.0) / best[row] for row in rows if best[row]) for n in sheet.names}
    columns = sorted(sheet.names, key=lambda n: -merit[n])[:MOST_COLUMNS]
    title = f"{name}: GFLOP/s of the {len(columns)} best of {len(sheet.names)} solutions"
    shown = table(title, "size", *(f"#{place}" for place in range(1, len(columns) + 1)))
    for row, sizes in enumerate(sheet.sizes):
        cells = []
        for column in columns:
            speed = sheet.gflops.get((row, column))
            mark = "*" if speed is not None and speed == best[row] else ""
            cells.append(f"{speed:.4g}{mark}" if speed is not None else "-")
        shown.add_row("x".join(str(size) for size in sizes.values()), *cells)
    shown.caption = "\n".join(f"#{place} {column}" for place, column in enumerate(columns, start=1))
    shown.caption_justify = "left"
    return shown


def summary_document(found: Summary) -> dict[str, Any]:
    """`tunesmith show --json`."""
    return {
        "tuning_file": found.run.start.tuning_file,
        "device": found.run.start.device,
        "state": found.run.state.value,
        "runs": found.runs,
        "steps": [json.loads(step.to_json()) for step in found.steps],
        "finals": [
            {
                "csv": str(path),
                "solutions": list(sheet.names),
                "rows": [
                    {"sizes": dict(sizes), "gflops": {n: sheet.gflops.get((row, n)) for n in sheet.names}}
                    for row, sizes in enumerate(sheet.sizes)
                ],
            }
            for path, sheet in found.finals
        ],
        "logic": [{"path": str(path), "winners": winner_rows(logic)} for path, logic in found.logic],
        "failures": [
            {"outcome": one.outcome.value, "reason": one.reason, "count": one.count, "example": one.example}
            for one in found.failures
        ],
        "cost_seconds": asdict(found.cost),
    }


def comparison(rows: Sequence[Comparison], folder: Path) -> RenderableType:
    """Per size: the winner, GFLOP/s with interval, NumPy's, and NumPy's time over ours with its interval."""
    columns = ("size", "GFLOP/s", "±", "NumPy", "NumPy's time / ours", "95 %", "winner")
    shown = table("through the library, host time, against NumPy", *columns, right=columns[1:6])
    for one in rows:
        ratio = one.ratio
        speeds = (f"{one.flops / time.seconds * 1e-9:.4g}" for time in (ratio.ours, ratio.peer))
        ours, peer = speeds
        interval = f"{ratio.low:.2f} to {ratio.high:.2f}"
        doubt = _text.half_width(ratio.ours)[1:]
        shown.add_row(str(one.problem), ours, doubt, peer, f"{ratio.ratio:.2f}", interval, one.solution)
    files = [str(path) for path in sorted(folder.rglob("*_Final.csv"))] if folder.is_dir() else []
    logic = [str(path) for path in sorted(folder.rglob("*.yaml"))] if folder.is_dir() else [str(folder)]
    return Group(shown, "", *(f"CSV: {path}" for path in files), *(f"logic: {path}" for path in logic))


def choice(sizes: Sequence[int], chosen: Choice) -> RenderableType:
    """`tunesmith select` as text."""
    expected = _text.time(chosen.expected_seconds) if chosen.expected_seconds is not None else "not known"
    near = "x".join(map(str, chosen.neighbour))
    why = {
        Rule.EXACT: "exact: this size was measured",
        Rule.NEAREST: f"nearest: {near} was measured, {chosen.distance:.2f} octaves away",
        Rule.FALLBACK: "fallback: nothing measured near is legal here",
    }[chosen.rule]
    return Group(
        f"size      {'x'.join(map(str, sizes))}",
        f"solution  {chosen.name}",
        f"rule      {why}",
        f"expected  {expected}",
        f"kernel    {chosen.solution.kernel}: {_text.configuration(chosen.solution.configuration)}",
    )
