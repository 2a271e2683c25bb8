"""What `tunesmith random select` and `grid-sizes` print, as text and as JSON objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType

from tunesmith.logic.random.choice import Selection
from tunesmith.logic.random.decision import RandomDecision, Scored
from tunesmith.logic.random.matrix import SpeedRatio
from tunesmith.records import LaunchShape, printable
from tunesmith.session.random.select import SelectedShapes

from .. import numbers as _numbers
from ..run import Document, fields, finite
from ..table import table, titled

MOST_COMPLAINTS = 20
"""Complaints about one file that the text shows; the JSON has all."""


def tables(found: SelectedShapes) -> RenderableType:
    """A row for each decision, then what a person should check: pairs that regress, remarks and complaints."""
    selection = found.selection
    parts: list[RenderableType] = [
        titled(f"launch shapes, by {selection.objective}", _overview(selection.decisions)),
        "",
    ]
    for decision in selection.decisions:
        if decision.regressions:
            parts += [titled(_subject(decision), _pairs(decision)), ""]
        if decision.overrides:
            parts += [titled(f"{_subject(decision)}: shapes of their own", _overrides(decision)), ""]
    parts += _remarks(selection, look=False)
    parts += [f"{kind}: {printable(str(path))}" for kind, paths in found.written.items() for path in paths]
    return Group(*parts, *(f"look at: {sentence}" for sentence in _shortened(found)))


def document(found: SelectedShapes) -> Document:
    """The selection for `--json`, with stable keys (docs/json.md)."""
    selection, written = found.selection, found.written
    return {
        "objective": selection.objective.value,
        "decisions": [_decision(decision) for decision in selection.decisions],
        "headers": [str(path) for path in written.get("header", ())],
        "table": next((str(path) for path in written.get("table", ())), None),
        "plots": [str(path) for path in written.get("plot", ())],
        "look_at": look_at(found),
    }


def grids(compute_units: int, device: str | None, sizes: Sequence[int]) -> Document:
    return {"compute_units": compute_units, "device": device, "grid_sizes": list(sizes)}


def grid_list(compute_units: int, device: str | None, sizes: Sequence[int]) -> RenderableType:
    return ", ".join(map(str, sizes))


def look_at(found: SelectedShapes) -> list[str]:
    """Sentences on what a person should look at."""
    return [*_remarks(found.selection, look=True), *map(str, found.complaints)]


def _shortened(found: SelectedShapes) -> Iterator[str]:
    """The sentences of `look_at`, with at most `MOST_COMPLAINTS` complaints about one file."""
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


def _remarks(selection: Selection, look: bool) -> Iterator[str]:
    """The remarks that a person should look at, or the other remarks."""
    for decision in selection.decisions:
        yield from (
            printable(f"{_subject(decision)}: {remark.detail}") for remark in decision.remarks if remark.look is look
        )


def _subject(decision: RandomDecision) -> str:
    return f"{decision.generator} on {decision.architecture}"


def _overview(decisions: Sequence[RandomDecision]) -> RenderableType:
    numbers = ("default", "chosen", "times default", "slowest", "pairs faster", "own shapes gain")
    shown = table("generator", "architecture", *numbers, "slowest pair", "best without regressions", "as good")
    for column in shown.columns:
        column.justify = "right" if column.header in numbers else "left"
    for decision in decisions:
        worst = decision.worst
        faster = sum(ratio.low > 1 for ratio in decision.ratios)
        shown.add_row(
            decision.generator,
            decision.architecture,
            str(decision.matrix.default),
            str(decision.chosen),
            f"{decision.score:.3f}",
            f"{worst.ratio:.3f}" if worst else "-",
            f"{faster} of {len(decision.ratios)}",
            f"{decision.gain:.3f}" if decision.overrides else "-",
            str(worst.case) if worst else "-",
            _safe(decision),
            _few(decision.ties),
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
    """Each distribution and type of a choice that regresses, beside the ratio of the best shape without regressions."""
    safe = decision.safe.shape if decision.safe else None
    numbers = ("bytes", "default GB/s", f"{decision.chosen}", "ratio", "95 %", *([f"{safe} ratio"] if safe else []))
    shown = table("distribution", "type", *numbers, "", right=numbers)
    for ratio in sorted(decision.ratios, key=lambda pair: pair.ratio):
        speeds = _speeds(decision, ratio)
        interval = f"{ratio.low:.3f} to {ratio.high:.3f}" if ratio.low < ratio.high else "-"
        slower = any(slower_ratio.case == ratio.case for slower_ratio in decision.regressions)
        cells = [_numbers.size(ratio.case.bytes) if ratio.case.bytes else "-", *speeds, f"{ratio.ratio:.3f}", interval]
        if safe:
            cells.append(_ratio_of(decision, ratio, safe))
        shown.add_row(ratio.case.distribution, ratio.case.value_type, *cells, "slower" if slower else "")
    return shown


def _speeds(decision: RandomDecision, ratio: SpeedRatio) -> list[str]:
    """The speeds of the default and the chosen shape; `-` under rocRAND's objective, whose means mix sizes."""
    row = decision.matrix.speeds.get(ratio.case, {})
    shapes = (decision.matrix.default, decision.chosen)
    return [f"{row[shape].gigabytes_per_second:.4g}" if shape in row else "-" for shape in shapes]


def _ratio_of(decision: RandomDecision, ratio: SpeedRatio, shape: LaunchShape) -> str:
    row = decision.matrix.speeds.get(ratio.case, {})
    has_ratio = shape in row and decision.matrix.default in row
    return f"{decision.matrix.ratio(ratio.case, shape).ratio:.3f}" if has_ratio else "-"


def _overrides(decision: RandomDecision) -> RenderableType:
    numbers = ("shape", f"times {decision.chosen}")
    rows = (
        (override.distribution, override.value_type, override.shape, f"{override.gain:.3f}")
        for override in decision.overrides
    )
    return table("distribution", "type", *numbers, right=numbers, rows=rows)


def _decision(decision: RandomDecision) -> Document:
    return {
        "generator": decision.generator,
        "architecture": decision.architecture,
        "default": _shape(decision.matrix.default),
        "chosen": _shape(decision.chosen),
        "score": finite(decision.score),
        "ranking": [_scored(scored) for scored in decision.ranking],
        "ties": [_shape(shape) for shape in decision.ties],
        "pairs": [_pair(ratio) for ratio in decision.ratios],
        "regressions": [_pair(ratio) for ratio in decision.regressions],
        "without_regressions": _scored(decision.safe) if decision.safe else None,
        "overrides": [
            {"distribution": own.distribution, "type": own.value_type, "shape": _shape(own.shape), "gain": own.gain}
            for own in decision.overrides
        ],
        "gain": decision.gain,
        "ineligible": [
            {"shape": _shape(shape), **fields(why, "reason", "detail")} for shape, why in decision.ineligible
        ],
        "remarks": [asdict(remark) for remark in decision.remarks],
        "cautions": list(decision.cautions),
    }


def _pair(ratio: SpeedRatio) -> Document:
    return {
        "distribution": ratio.case.distribution,
        "type": ratio.case.value_type,
        "bytes": ratio.case.bytes or None,
        "ratio": finite(ratio.ratio),
        "low": finite(ratio.low),
        "high": finite(ratio.high),
    }


def _scored(scored: Scored) -> Document:
    return {"shape": _shape(scored.shape), "score": finite(scored.score)}


def _shape(shape: LaunchShape) -> list[int]:
    return [shape.block, shape.grid]
