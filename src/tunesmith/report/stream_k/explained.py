"""What `tunesmith calibrate stream-k` and `stream-k explain` print: calibrated costs, and why a launch was chosen."""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Group, RenderableType

from tunesmith.models.stream_k.decision_models import COSTS, SharingMode, StreamKCalibration, StreamKDecision, Subject
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.stream_k.calibrate import CalibrationPlan
from tunesmith.session.stream_k.explain import ExplainedLaunch, Explanation

from .. import numbers
from ..run import Document, closing, head
from ..table import table, titled

MICRO = 1e6


def calibrated(outcome: RunOutcome[CalibrationPlan]) -> RenderableType:
    """A table of costs for each kernel, then what the run measured and which files it wrote."""
    parts = (part for calibration in outcome.plan.made for part in (_costs(calibration), ""))
    return Group(*parts, *closing(outcome, outcome.written))


def calibrated_document(outcome: RunOutcome[CalibrationPlan]) -> Document:
    """For `--json`."""
    return {
        **head(outcome),
        "calibrations": [
            {
                **about(calibration.subject),
                "runs": len(calibration.runs),
                "scatter": calibration.scatter,
                "costs": {name: asdict(cost) for name, cost in zip(COSTS, calibration.costs, strict=True)},
            }
            for calibration in outcome.plan.made
        ],
    }


def about(subject: Subject) -> Document:
    """The first keys of a document: the kernel, and the multiprocessors and occupancy that it has."""
    return {
        "kernel": subject.kernel,
        "data_type": subject.data_type,
        "tile": [subject.tile.m, subject.tile.n, subject.tile.depth],
        "multiprocessors": subject.room.multiprocessors,
        "occupancy": subject.room.occupancy,
    }


def explained(explanation: Explanation) -> RenderableType:
    """The product in tiles, a row for each way to launch it, and why the first row was chosen."""
    work, room = explanation.work, explanation.room
    facts = (
        f"{work.tiles} tiles of {work.iterations} iterations on {room.groups} work-groups at once"
        f" ({room.multiprocessors} compute units x {room.occupancy}): remainder {work.tiles % room.groups}"
    )
    measured = any(launch.measured or launch.failed for launch in explanation.lines)
    columns = ("", "mode", "grid", "streamed", "splits", "iterations", "expected", "95 %", *(["measured"] * measured))
    shown = table(*columns, right=columns[2:])
    for launch in explanation.lines:
        row = [launch.why, str(launch.decision.mode), *_numbers(launch.decision), *_expected(launch.decision)]
        shown.add_row(*row, *([_took(launch)] if measured else []))
    sentences = [*_why(explanation), *explanation.notes]
    return Group(
        titled(f"stream-K for tiles of {explanation.tile}, {explanation.model} model", facts, shown), *sentences
    )


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
        "lines": [_line(launch) for launch in explanation.lines],
        "why": list(_why(explanation)),
        "said": list(explanation.notes),
    }


def _costs(calibration: StreamKCalibration) -> RenderableType:
    shown = table("cost", "µs", "95 %", "adjusted", "of", right=("µs", "95 %", "adjusted"))
    for (name, doc), cost in zip(COSTS.items(), calibration.costs, strict=True):
        interval = f"{MICRO * cost.low:.4g} - {MICRO * cost.high:.4g}"
        adjusted = "" if cost.adjusted is None else f"{MICRO * cost.adjusted:.4g}"
        shown.add_row(name, f"{MICRO * cost.fitted:.4g}", interval, adjusted, doc)
    return titled(
        f"{calibration.subject}: {len(calibration.runs)} runs, {100 * calibration.scatter:.1f} % around the fit", shown
    )


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


def _took(launch: ExplainedLaunch) -> str:
    if launch.measured is None:
        return launch.failed
    return f"{numbers.time(launch.measured.seconds)} {numbers.half_width(launch.measured)}"


def _why(explanation: Explanation) -> list[str]:
    """Why the first row was chosen, in a sentence or two."""
    chosen, work = explanation.lines[0].decision, explanation.work
    if chosen.overridden:
        return [f"overridden by {', '.join(chosen.overridden)}"]
    whole = [launch.decision for launch in explanation.lines if launch.decision.mode is SharingMode.DATA_PARALLEL]
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
    timed = [decision.seconds for decision in whole if decision.seconds and decision.model == chosen.model]
    if chosen.seconds and timed and chosen not in whole:
        why.append(f"expected {min(timed) / chosen.seconds:.2f} times as fast as the best without a split")
    return why


def _line(launch: ExplainedLaunch) -> dict[str, object]:
    decision = launch.decision
    return {
        "why": launch.why,
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
        "measured": launch.measured.seconds if launch.measured else None,
        "measured_interval": [launch.measured.low, launch.measured.high] if launch.measured else None,
        "failed": launch.failed,
    }
