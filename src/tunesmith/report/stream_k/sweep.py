"""What `tunesmith stream-k sweep` prints: how close each way to decide came to the best, and where most was lost."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType

from tunesmith.models.stream_k.decision_models import SharingMode, StreamKChoice, StreamKDecision, TiledProduct
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.stream_k.refit import Refit
from tunesmith.session.stream_k.sweep import SweepPlan
from tunesmith.session.stream_k.swept import Swept, misses, scores

from .. import numbers as _numbers
from ..run import Document, closing, head
from ..table import table, titled
from .explained import about

MISSES = 10
"""Misses listed at most."""


def swept(outcome: RunOutcome[SweepPlan]) -> RenderableType:
    """A row for each way to decide, the worst misses, then what the run measured and which files it wrote."""
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
                "way": score.method,
                "products": score.products,
                "geomean": score.geomean,
                "worst": score.worst,
                "worst_at": list(score.worst_at.problem.sizes),
            }
            for score in scores(plan.swept)
        ],
        "swept": [_product(product, plan) for product in plan.swept],
        "misses": [list(product.problem.sizes) for product in misses(plan.swept, plan.judged, MISSES)],
        "refit": _refit_document(plan.refit) if plan.refit else None,
    }


def _scores(plan: SweepPlan) -> RenderableType:
    numbers = ("products", "geomean", "worst")
    shown = table("way to decide", *numbers, "worst at", right=numbers)
    for score in scores(plan.swept):
        mark = " *" if score.method == plan.judged else ""
        shown.add_row(
            score.method + mark,
            str(score.products),
            f"{score.geomean:.3f}",
            f"{score.worst:.3f}",
            str(score.worst_at.problem),
        )
    title = f"best time / time of what was chosen, {len(plan.swept)} of {plan.products} products"
    room = plan.room
    subject = (
        f"{plan.subject}, {room.groups} work-groups at once ({room.multiprocessors} compute units x"
        f" {room.occupancy}); * is what the library asks"
    )
    return titled(title, subject, shown)


def _misses(plan: SweepPlan, lost: Sequence[Swept]) -> RenderableType:
    numbers = ("tiles", "iterations", "remainder", "best / chosen")
    shown = table("M x N x K", *numbers, "chosen", "best", right=numbers)
    for product in lost:
        work, ratio = product.work, product.efficiency(plan.judged)
        remainder = work.tiles % plan.room.groups
        shown.add_row(
            str(product.problem),
            *(str(work.tiles), str(work.iterations), str(remainder), f"{ratio:.3f}"),
            *(_launch(product, choice) for choice in (product.choices[plan.judged], product.best)),
        )
    return titled(f"where the {plan.judged} model lost most", shown)


def _launch(product: Swept, choice: StreamKChoice) -> str:
    return f"{_choice(product.work, choice)}: {_numbers.time(product.finals[choice].seconds)}"


def _choice(work: TiledProduct, choice: StreamKChoice) -> str:
    """`data-parallel`, `split-k 4`, or `stream-k 132, 8 tiles + 1 wave`."""
    decision = StreamKDecision(work, choice)
    match decision.mode:
        case SharingMode.DATA_PARALLEL:
            return f"{decision.mode} {choice.grid}"
        case SharingMode.SPLIT_K:
            return f"{decision.mode} {choice.splits}"
    waves = f" + {decision.full_tiles} {'wave' if decision.full_tiles == 1 else 'waves'}" if decision.full_tiles else ""
    return f"{decision.mode} {choice.grid}, {choice.streamed - decision.full_tiles * choice.grid} tiles{waves}"


def _refit(refit: Refit, products: int) -> list[str]:
    before = f"{100 * refit.before.scatter:.1f} % before, " if refit.before else ""
    kept = "".join(f"; {name} stays as it was put right" for name in refit.after.adjusted)
    return [
        f"fitted anew to {len(refit.after.runs)} runs: {before}{100 * refit.after.scatter:.1f} % around the fit{kept}",
        f"{refit.changed} of {products} products are launched otherwise now; the same command measures what is missing",
    ]


def _refit_document(refit: Refit) -> dict[str, object]:
    return {
        "path": str(refit.path),
        "runs": len(refit.after.runs),
        "scatter_before": refit.before.scatter if refit.before else None,
        "scatter": refit.after.scatter,
        "changed": refit.changed,
    }


def _product(product: Swept, plan: SweepPlan) -> dict[str, object]:
    work = product.work
    return {
        "problem_type": product.problem.type.name,
        "sizes": list(product.problem.sizes),
        "family": product.listed.family,
        "tiles": work.tiles,
        "iterations": work.iterations,
        "remainder": work.tiles % plan.room.groups,
        "tried": len(product.screened),
        "finalists": [
            {
                "mode": choice.mode.value,
                "grid": choice.grid,
                "streamed": choice.streamed,
                "splits": choice.splits,
                "seconds": estimate.seconds,
                "interval": [estimate.low, estimate.high],
                "chosen_by": [method for method, choice_made in product.choices.items() if choice_made == choice],
            }
            for choice, estimate in sorted(product.finals.items(), key=lambda pair: pair[1].seconds)
        ],
    }
