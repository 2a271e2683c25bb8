"""What a person sees of tuned generators: for each the chosen launch shape, and how fast the default and it are."""

from __future__ import annotations

from rich.console import Group, RenderableType

from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.random.plan import RandomPlan

from ..run import Document, closing, head
from ..table import table, titled


def tables(outcome: RunOutcome[RandomPlan]) -> RenderableType:
    """A row for each generator, then what was measured and where it is."""
    rows = (
        (one.generator, one.matrix.default, one.chosen, f"{one.score:.3f}", len(one.ranking), len(one.ratios))
        for one in outcome.plan.selection.decisions
    )
    shown = table("generator", "default", "chosen", "gain", "best of", "pairs", right=("gain", "pairs"), rows=rows)
    return Group(titled(f"launch shapes on {outcome.target.name}", shown), *closing(outcome, outcome.written))


def document(outcome: RunOutcome[RandomPlan]) -> Document:
    """For `--json`."""
    return {
        **head(outcome),
        "generators": [
            {
                "generator": decision.generator,
                "default": [decision.matrix.default.block, decision.matrix.default.grid],
                "chosen": [decision.chosen.block, decision.chosen.grid],
                "gain": decision.score,
            }
            for decision in outcome.plan.selection.decisions
        ],
    }
