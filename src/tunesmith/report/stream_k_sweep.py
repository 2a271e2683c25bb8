"""What a person sees of a sweep: how close every way to decide came to the best, and where the library's lost most."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType

from tunesmith.models.stream_k import Choice, Decision, Mode, Work
from tunesmith.session.stream_k.refit import Refit
from tunesmith.session.stream_k.sweep import SweepOutcome
from tunesmith.session.stream_k.swept import Swept, misses, scores

from . import _text
from ._table import table, titled

MISSES = 10
"""Listed at most."""


def swept(outcome: SweepOutcome, written: Sequence[Path]) -> RenderableType:
    """A row for each way to decide, the worst misses, then what was measured and where it is."""
    parts: list[RenderableType] = []
    if outcome.swept:
        parts += [_scores(outcome), ""]
    if lost := misses(outcome.swept, outcome.judged, MISSES):
        parts += [_misses(outcome, lost), ""]
    if outcome.refit:
        parts += [*_refit(outcome.refit, len(outcome.swept)), ""]
    return Group(
        *parts,
        f"{outcome.ledger.measured} measured, {outcome.ledger.reused} found in the store, in"
        f" {_text.duration(outcome.seconds)} ({_text.cost(outcome.ledger.cost)})",
        *(f"wrote {path}" for path in written),
        *(f"look at: {sentence}" for sentence in outcome.look_at),
    )


def document(outcome: SweepOutcome, written: Sequence[Path]) -> dict[str, object]:
    """For `--json`."""
    subject, room = outcome.subject, outcome.room
    return {
        "device": outcome.target.name,
        "state": outcome.state.value,
        "seconds": outcome.seconds,
        "measured": outcome.ledger.measured,
        "reused": outcome.ledger.reused,
        "health": dict(outcome.health),
        "kernel": subject.kernel,
        "data_type": subject.data_type,
        "tile": [subject.tile.m, subject.tile.n, subject.tile.depth],
        "multiprocessors": room.multiprocessors,
        "occupancy": room.occupancy,
        "products": outcome.products,
        "judged": outcome.judged,
        "ways": [
            {
                "way": one.way,
                "products": one.products,
                "geomean": one.geomean,
                "worst": one.worst,
                "worst_at": list(one.worst_at.problem.sizes),
            }
            for one in scores(outcome.swept)
        ],
        "swept": [_product(one, outcome) for one in outcome.swept],
        "misses": [list(one.problem.sizes) for one in misses(outcome.swept, outcome.judged, MISSES)],
        "refit": _refit_document(outcome.refit) if outcome.refit else None,
        "written": [str(path) for path in written],
        "look_at": list(outcome.look_at),
    }


def _scores(outcome: SweepOutcome) -> RenderableType:
    numbers = ("products", "geomean", "worst")
    shown = table("way to decide", *numbers, "worst at", right=numbers)
    for one in scores(outcome.swept):
        mark = " *" if one.way == outcome.judged else ""
        shown.add_row(one.way + mark, str(one.products), f"{one.geomean:.3f}", f"{one.worst:.3f}", _where(one.worst_at))
    title = f"best time / time of what was chosen, {len(outcome.swept)} of {outcome.products} products"
    room = outcome.room
    where = (
        f"{outcome.subject}, {room.groups} work-groups at once ({room.multiprocessors} compute units x"
        f" {room.occupancy}); * is what the library asks"
    )
    return titled(title, where, shown)


def _misses(outcome: SweepOutcome, lost: Sequence[Swept]) -> RenderableType:
    numbers = ("tiles", "iterations", "remainder", "best / chosen")
    shown = table("M x N x K", *numbers, "chosen", "best", right=numbers)
    for one in lost:
        work, ratio = one.work, one.efficiency(outcome.judged)
        remainder = work.tiles % outcome.room.groups
        shown.add_row(
            _where(one),
            *(str(work.tiles), str(work.iterations), str(remainder), f"{ratio:.3f}"),
            *(_launch(one, choice) for choice in (one.said[outcome.judged], one.best)),
        )
    return titled(f"where the {outcome.judged} model lost most", shown)


def _launch(one: Swept, choice: Choice) -> str:
    return f"{_choice(one.work, choice)}: {_text.time(one.finals[choice].seconds)}"


def _choice(work: Work, choice: Choice) -> str:
    """`data-parallel`, `split-k 4`, or `stream-k 132, 8 tiles + 1 wave`."""
    made = Decision(work, choice, "")
    match made.mode:
        case Mode.DATA_PARALLEL:
            return f"{made.mode} {choice.grid}"
        case Mode.SPLIT_K:
            return f"{made.mode} {choice.splits}"
    waves = f" + {made.full_tiles} {'wave' if made.full_tiles == 1 else 'waves'}" if made.full_tiles else ""
    return f"{made.mode} {choice.grid}, {choice.streamed - made.full_tiles * choice.grid} tiles{waves}"


def _where(one: Swept) -> str:
    return str(one.problem)


def _refit(made: Refit, products: int) -> list[str]:
    before = f"{100 * made.before.scatter:.1f} % before, " if made.before else ""
    kept = "".join(f"; {name} stays as it was put right" for name in made.after.adjusted)
    return [
        f"fitted anew to {len(made.after.runs)} runs: {before}{100 * made.after.scatter:.1f} % around the fit{kept}",
        f"{made.changed} of {products} products are launched otherwise now; the same command measures what is missing",
    ]


def _refit_document(made: Refit) -> dict[str, object]:
    return {
        "path": str(made.path),
        "runs": len(made.after.runs),
        "scatter_before": made.before.scatter if made.before else None,
        "scatter": made.after.scatter,
        "changed": made.changed,
    }


def _product(one: Swept, outcome: SweepOutcome) -> dict[str, object]:
    work = one.work
    return {
        "problem_type": one.problem.type.name,
        "sizes": list(one.problem.sizes),
        "family": one.listed.family,
        "tiles": work.tiles,
        "iterations": work.iterations,
        "remainder": work.tiles % outcome.room.groups,
        "tried": len(one.screened),
        "finalists": [
            {
                "mode": choice.mode.value,
                "grid": choice.grid,
                "streamed": choice.streamed,
                "splits": choice.splits,
                "seconds": estimate.seconds,
                "interval": [estimate.low, estimate.high],
                "chosen_by": [way for way, said in one.said.items() if said == choice],
            }
            for choice, estimate in sorted(one.finals.items(), key=lambda pair: pair[1].seconds)
        ],
    }
