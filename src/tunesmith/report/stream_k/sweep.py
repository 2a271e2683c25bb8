"""What a person sees of a sweep: how close every way to decide came to the best, and where the library's lost most."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from tunesmith.models.stream_k.predict import SharingMode, StreamKChoice, StreamKDecision, Work
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.stream_k.refit import Refit
from tunesmith.session.stream_k.sweep import SweepPlan
from tunesmith.session.stream_k.swept import Swept, misses, scores

from .. import numbers as _numbers
from ..run import Document, closing, head
from ..table import table, titled
from .explained import about

MISSES = 10
"""Listed at most."""


def swept(outcome: RunOutcome[SweepPlan]) -> RenderableType:
    """A row for each way to decide, the worst misses, then what was measured and where it is."""
    parts: list[RenderableType] = []
    plan = outcome.plan
    if plan.swept:
        parts += [_scores(plan), ""]
    if lost := misses(plan.swept, plan.judged, MISSES):
        parts += [_misses(plan, lost), ""]
    if plan.refit:
        parts += [*_refit(plan.refit, len(plan.swept)), ""]
    return Group(*parts, *closing(outcome, outcome.written))


def document(outcome: RunOutcome[SweepPlan]) -> Document:
    """For `--json`."""
    plan = outcome.plan
    return {
        **head(outcome),
        **about(plan.subject),
        "products": plan.products,
        "judged": plan.judged,
        "ways": [
            {
                "way": one.way,
                "products": one.products,
                "geomean": one.geomean,
                "worst": one.worst,
                "worst_at": list(one.worst_at.problem.sizes),
            }
            for one in scores(plan.swept)
        ],
        "swept": [_product(one, plan) for one in plan.swept],
        "misses": [list(one.problem.sizes) for one in misses(plan.swept, plan.judged, MISSES)],
        "refit": _refit_document(plan.refit) if plan.refit else None,
    }


def _scores(plan: SweepPlan) -> RenderableType:
    numbers = ("products", "geomean", "worst")
    shown = table("way to decide", *numbers, "worst at", right=numbers)
    for one in scores(plan.swept):
        mark = " *" if one.way == plan.judged else ""
        shown.add_row(
            one.way + mark, str(one.products), f"{one.geomean:.3f}", f"{one.worst:.3f}", str(one.worst_at.problem)
        )
    title = f"best time / time of what was chosen, {len(plan.swept)} of {plan.products} products"
    room = plan.room
    where = (
        f"{plan.subject}, {room.groups} work-groups at once ({room.multiprocessors} compute units x"
        f" {room.occupancy}); * is what the library asks"
    )
    return titled(title, where, shown)


def _misses(plan: SweepPlan, lost: Sequence[Swept]) -> RenderableType:
    numbers = ("tiles", "iterations", "remainder", "best / chosen")
    shown = table("M x N x K", *numbers, "chosen", "best", right=numbers)
    for one in lost:
        work, ratio = one.work, one.efficiency(plan.judged)
        remainder = work.tiles % plan.room.groups
        shown.add_row(
            str(one.problem),
            *(str(work.tiles), str(work.iterations), str(remainder), f"{ratio:.3f}"),
            *(_launch(one, choice) for choice in (one.said[plan.judged], one.best)),
        )
    return titled(f"where the {plan.judged} model lost most", shown)


def _launch(one: Swept, choice: StreamKChoice) -> str:
    return f"{_choice(one.work, choice)}: {_numbers.time(one.finals[choice].seconds)}"


def _choice(work: Work, choice: StreamKChoice) -> str:
    """`data-parallel`, `split-k 4`, or `stream-k 132, 8 tiles + 1 wave`."""
    made = StreamKDecision(work, choice)
    match made.mode:
        case SharingMode.DATA_PARALLEL:
            return f"{made.mode} {choice.grid}"
        case SharingMode.SPLIT_K:
            return f"{made.mode} {choice.splits}"
    waves = f" + {made.full_tiles} {'wave' if made.full_tiles == 1 else 'waves'}" if made.full_tiles else ""
    return f"{made.mode} {choice.grid}, {choice.streamed - made.full_tiles * choice.grid} tiles{waves}"


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


def _product(one: Swept, plan: SweepPlan) -> dict[str, object]:
    work = one.work
    return {
        "problem_type": one.problem.type.name,
        "sizes": list(one.problem.sizes),
        "family": one.listed.family,
        "tiles": work.tiles,
        "iterations": work.iterations,
        "remainder": work.tiles % plan.room.groups,
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
