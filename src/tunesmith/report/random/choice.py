"""`tunesmith random select` and `grid-sizes` as text and as JSON objects."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType

from tunesmith.logic.random.choice import Selection
from tunesmith.logic.random.decision import RandomDecision, Scored
from tunesmith.logic.random.matrix import SpeedRatio
from tunesmith.records import LaunchShape, printable
from tunesmith.session.random.select import Selected

from .. import numbers as _numbers
from ..run import Document, fields
from ..table import table, titled

MOST_COMPLAINTS = 20
"""Complaints of one file that text shows; JSON has them all."""


def tables(found: Selected) -> RenderableType:
    """A row a decision, then what each needs a person for: the pairs of those that regress, remarks, complaints."""
    made = found.selection
    parts: list[RenderableType] = [titled(f"launch shapes, by {made.objective}", _overview(made.decisions)), ""]
    for decision in made.decisions:
        if decision.regressions:
            parts += [titled(_place(decision), _pairs(decision)), ""]
        if decision.overrides:
            parts += [titled(f"{_place(decision)}: shapes of their own", _overrides(decision)), ""]
    parts += _remarks(made, look=False)
    parts += [f"{kind}: {printable(str(path))}" for kind, paths in found.written.items() for path in paths]
    return Group(*parts, *(f"look at: {sentence}" for sentence in _shortened(found)))


def document(found: Selected) -> Document:
    """The same with stable keys (docs/json.md)."""
    made, written = found.selection, found.written
    return {
        "objective": made.objective.value,
        "decisions": [_decision(decision) for decision in made.decisions],
        "headers": [str(path) for path in written.get("header", ())],
        "table": next((str(path) for path in written.get("table", ())), None),
        "plots": [str(path) for path in written.get("plot", ())],
        "look_at": look_at(found),
    }


def grids(compute_units: int, device: str | None, sizes: Sequence[int]) -> Document:
    return {"compute_units": compute_units, "device": device, "grid_sizes": list(sizes)}


def grid_list(compute_units: int, device: str | None, sizes: Sequence[int]) -> RenderableType:
    return ", ".join(map(str, sizes))


def look_at(found: Selected) -> list[str]:
    """Sentences: what a person should look at."""
    return [*_remarks(found.selection, look=True), *map(str, found.complaints)]


def _shortened(found: Selected) -> Iterator[str]:
    """What to look at, with at most so many complaints of one file."""
    yield from _remarks(found.selection, look=True)
    shown: Counter[str] = Counter()
    for complaint in found.complaints:
        file = complaint.location.partition(": ")[0]
        shown[file] += 1
        if shown[file] <= MOST_COMPLAINTS:
            yield str(complaint)
    for file, count in shown.items():
        if count > MOST_COMPLAINTS:
            yield f"{file}: {count - MOST_COMPLAINTS} more; --json lists them"


def _remarks(made: Selection, look: bool) -> Iterator[str]:
    """Those that a person should look at, or the others."""
    for decision in made.decisions:
        yield from (
            printable(f"{_place(decision)}: {remark.detail}") for remark in decision.remarks if remark.look is look
        )


def _place(decision: RandomDecision) -> str:
    return f"{decision.generator} on {decision.architecture}"


def _overview(decisions: Sequence[RandomDecision]) -> RenderableType:
    numbers = ("default", "chosen", "times default", "slowest", "pairs faster", "own shapes gain")
    shown = table("generator", "architecture", *numbers, "slowest pair", "best without regressions", "as good")
    for column in shown.columns:
        column.justify = "right" if column.header in numbers else "left"
    for one in decisions:
        worst = one.worst
        faster = sum(ratio.low > 1 for ratio in one.ratios)
        shown.add_row(
            one.generator,
            one.architecture,
            str(one.matrix.default),
            str(one.chosen),
            f"{one.score:.3f}",
            f"{worst.ratio:.3f}" if worst else "-",
            f"{faster} of {len(one.ratios)}",
            f"{one.gain:.3f}" if one.overrides else "-",
            str(worst.case) if worst else "-",
            _safe(one),
            _few(one.ties),
        )
    return shown


def _safe(decision: RandomDecision) -> str:
    if not decision.regressions:
        return "the chosen"
    return f"{decision.safe.shape} {decision.safe.score:.3f}" if decision.safe else "the default"


def _few(shapes: Sequence[LaunchShape]) -> str:
    more = f" and {len(shapes) - 3} more" if len(shapes) > 3 else ""
    return ", ".join(map(str, shapes[:3])) + more or "-"


def _pairs(decision: RandomDecision) -> RenderableType:
    """Every distribution and type of a choice that regresses, beside what the best without regressions would do."""
    safe = decision.safe.shape if decision.safe else None
    numbers = ("bytes", "default GB/s", f"{decision.chosen}", "ratio", "95 %", *([f"{safe} ratio"] if safe else []))
    shown = table("distribution", "type", *numbers, "", right=numbers)
    for ratio in sorted(decision.ratios, key=lambda one: one.ratio):
        speeds = _speeds(decision, ratio)
        interval = f"{ratio.low:.3f} to {ratio.high:.3f}" if ratio.low < ratio.high else "-"
        slower = any(one.case == ratio.case for one in decision.regressions)
        cells = [_numbers.size(ratio.case.bytes) if ratio.case.bytes else "-", *speeds, f"{ratio.ratio:.3f}", interval]
        if safe:
            cells.append(_ratio_of(decision, ratio, safe))
        shown.add_row(ratio.case.distribution, ratio.case.value_type, *cells, "slower" if slower else "")
    return shown


def _speeds(decision: RandomDecision, ratio: SpeedRatio) -> list[str]:
    """The default's and the chosen shape's; rocRAND's arithmetic mixes sizes, so there they are not told."""
    row = decision.matrix.speeds.get(ratio.case, {})
    shapes = (decision.matrix.default, decision.chosen)
    return [f"{row[shape].gigabytes_per_second:.4g}" if shape in row else "-" for shape in shapes]


def _ratio_of(decision: RandomDecision, ratio: SpeedRatio, shape: LaunchShape) -> str:
    row = decision.matrix.speeds.get(ratio.case, {})
    known = shape in row and decision.matrix.default in row
    return f"{decision.matrix.ratio(ratio.case, shape).ratio:.3f}" if known else "-"


def _overrides(decision: RandomDecision) -> RenderableType:
    numbers = ("shape", f"times {decision.chosen}")
    rows = ((one.distribution, one.value_type, one.shape, f"{one.gain:.3f}") for one in decision.overrides)
    return table("distribution", "type", *numbers, right=numbers, rows=rows)


def _decision(one: RandomDecision) -> Document:
    return {
        "generator": one.generator,
        "architecture": one.architecture,
        "default": _shape(one.matrix.default),
        "chosen": _shape(one.chosen),
        "score": _finite(one.score),
        "ranking": [_scored(scored) for scored in one.ranking],
        "ties": [_shape(shape) for shape in one.ties],
        "pairs": [_pair(ratio) for ratio in one.ratios],
        "regressions": [_pair(ratio) for ratio in one.regressions],
        "without_regressions": _scored(one.safe) if one.safe else None,
        "overrides": [
            {"distribution": own.distribution, "type": own.value_type, "shape": _shape(own.shape), "gain": own.gain}
            for own in one.overrides
        ],
        "gain": one.gain,
        "ineligible": [{"shape": _shape(shape), **fields(why, "reason", "detail")} for shape, why in one.ineligible],
        "remarks": [asdict(remark) for remark in one.remarks],
        "cautions": list(one.cautions),
    }


def _pair(ratio: SpeedRatio) -> Document:
    return {
        "distribution": ratio.case.distribution,
        "type": ratio.case.value_type,
        "bytes": ratio.case.bytes or None,
        "ratio": _finite(ratio.ratio),
        "low": _finite(ratio.low),
        "high": _finite(ratio.high),
    }


def _scored(scored: Scored) -> Document:
    return {"shape": _shape(scored.shape), "score": _finite(scored.score)}


def _shape(shape: LaunchShape) -> list[int]:
    return [shape.block, shape.grid]


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
