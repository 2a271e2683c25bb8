"""What a person sees of stream-K: the costs that were calibrated, and why a product is launched as it is."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Group, RenderableType

from tunesmith.models.stream_k.predict import COSTS, SharingMode, StreamKCalibration, StreamKDecision, Subject
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.stream_k.calibrate import CalibrationPlan
from tunesmith.session.stream_k.explain import ExplainedLaunch, Explanation

from .. import numbers
from ..run import Document, closing, head
from ..table import table, titled

MICRO = 1e6


def calibrated(outcome: RunOutcome[CalibrationPlan]) -> RenderableType:
    """A table of costs for each kernel, then what was measured and where it is."""
    parts = (part for one in outcome.plan.made for part in (_costs(one), ""))
    return Group(*parts, *closing(outcome, outcome.written))


def calibrated_document(outcome: RunOutcome[CalibrationPlan]) -> Document:
    """For `--json`."""
    return {
        **head(outcome),
        "calibrations": [
            {
                **about(one.subject),
                "runs": len(one.runs),
                "scatter": one.scatter,
                "costs": {name: asdict(cost) for name, cost in zip(COSTS, one.costs, strict=True)},
            }
            for one in outcome.plan.made
        ],
    }


def about(subject: Subject) -> Document:
    """The keys of a document that say which kernel it is about, and on how much of a device."""
    return {
        "kernel": subject.kernel,
        "data_type": subject.data_type,
        "tile": [subject.tile.m, subject.tile.n, subject.tile.depth],
        "multiprocessors": subject.room.multiprocessors,
        "occupancy": subject.room.occupancy,
    }


def explained(explanation: Explanation) -> RenderableType:
    """The product in tiles, a row for each way to launch it, and why the first one."""
    work, room = explanation.work, explanation.room
    facts = (
        f"{work.tiles} tiles of {work.iterations} iterations on {room.groups} work-groups at once"
        f" ({room.multiprocessors} compute units x {room.occupancy}): remainder {work.tiles % room.groups}"
    )
    measured = any(one.measured or one.failed for one in explanation.lines)
    columns = ("", "mode", "grid", "streamed", "splits", "iterations", "expected", "95 %", *(["measured"] * measured))
    shown = table(*columns, right=columns[2:])
    for one in explanation.lines:
        row = [one.why, str(one.decision.mode), *_numbers(one.decision), *_expected(one.decision)]
        shown.add_row(*row, *([_took(one)] if measured else []))
    said = [*_why(explanation), *explanation.said]
    return Group(titled(f"stream-K for tiles of {explanation.tile}, {explanation.model} model", facts, shown), *said)


def explained_document(explanation: Explanation) -> dict[str, object]:
    """For `--json`."""
    work, room = explanation.work, explanation.room
    return {
        "tile": [explanation.tile.m, explanation.tile.n, explanation.tile.depth],
        "tiles": work.tiles,
        "iterations": work.iterations,
        "multiprocessors": room.multiprocessors,
        "occupancy": room.occupancy,
        "remainder": work.tiles % room.groups,
        "model": explanation.model,
        "lines": [_line(one) for one in explanation.lines],
        "why": list(_why(explanation)),
        "said": list(explanation.said),
    }


def _costs(one: StreamKCalibration) -> RenderableType:
    shown = table("cost", "µs", "95 %", "adjusted", "of", right=("µs", "95 %", "adjusted"))
    for (name, doc), cost in zip(COSTS.items(), one.costs, strict=True):
        interval = f"{MICRO * cost.low:.4g} - {MICRO * cost.high:.4g}"
        adjusted = "" if cost.adjusted is None else f"{MICRO * cost.adjusted:.4g}"
        shown.add_row(name, f"{MICRO * cost.fitted:.4g}", interval, adjusted, doc)
    return titled(f"{one.subject}: {len(one.runs)} runs, {100 * one.scatter:.1f} % around the fit", shown)


def _numbers(decision: StreamKDecision) -> tuple[str, ...]:
    full = f" ({decision.full_tiles} full)" if decision.full_tiles else ""
    splits = str(decision.choice.splits) if decision.choice.splits > 1 else ""
    streamed = f"{decision.streamed}{full}" if decision.streamed else ""
    return str(decision.grid), streamed, splits, str(decision.schedule.busiest)


def _expected(decision: StreamKDecision) -> tuple[str, str]:
    if decision.seconds is None:
        return "", ""
    interval = " - ".join(map(numbers.time, decision.interval)) if decision.interval else ""
    return numbers.time(decision.seconds), interval


def _took(line: ExplainedLaunch) -> str:
    if line.measured is None:
        return line.failed
    return f"{numbers.time(line.measured.seconds)} {numbers.half_width(line.measured)}"


def _why(explanation: Explanation) -> list[str]:
    """What speaks for the first line, in a sentence or two."""
    chosen, work = explanation.lines[0].decision, explanation.work
    if chosen.overridden:
        return [f"overridden by {', '.join(chosen.overridden)}"]
    whole = [one.decision for one in explanation.lines if one.decision.mode is SharingMode.DATA_PARALLEL]
    why = []
    if chosen.streamed:
        share = chosen.schedule.per_group
        each = f"{share} to {share + 1}" if chosen.schedule.extra else str(share)
        why.append(
            f"{chosen.streamed} of {work.tiles} tiles are split over {chosen.grid} work-groups, {each} iterations each"
        )
    elif chosen.choice.splits > 1:
        why.append(f"every tile is cut into {chosen.choice.splits} parts along K")
    elif work.tiles % explanation.room.groups == 0:
        why.append("no tile is split: they fill whole waves")
    else:
        why.append("no tile is split: that would cost more than the idle work-groups of the last wave do")
    timed = [one.seconds for one in whole if one.seconds and one.model == chosen.model]
    if chosen.seconds and timed and chosen not in whole:
        why.append(f"expected {min(timed) / chosen.seconds:.2f} times as fast as the best without a split")
    return why


def _line(one: ExplainedLaunch) -> dict[str, object]:
    decision = one.decision
    return {
        "why": one.why,
        "model": decision.model,
        "mode": decision.mode.value,
        "grid": decision.grid,
        "streamed": decision.streamed,
        "full_tiles": decision.full_tiles,
        "splits": decision.choice.splits,
        "iterations": decision.schedule.busiest,
        "seconds": decision.seconds,
        "interval": list(decision.interval) if decision.interval else None,
        "overridden": list(decision.overridden),
        "parameters": {**decision.parameters},
        "measured": one.measured.seconds if one.measured else None,
        "measured_interval": [one.measured.low, one.measured.high] if one.measured else None,
        "failed": one.failed,
    }
