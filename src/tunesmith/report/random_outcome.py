"""What a person sees of tuned generators: for each the chosen launch shape, and how fast the default and it are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType

from tunesmith.session.random.tune import RandomOutcome

from . import _text
from ._table import table, titled


def tables(outcome: RandomOutcome, written: Sequence[Path]) -> RenderableType:
    """A row for each generator, then what was measured and where it is."""
    shown = table("generator", "default", "chosen", "gain", "best of", "pairs", right=("gain", "pairs"))
    if outcome.selection:
        for decision in outcome.selection.decisions:
            shown.add_row(
                decision.generator,
                str(decision.matrix.default),
                str(decision.chosen),
                f"{decision.score:.3f}",
                str(len(decision.ranking)),
                str(len(decision.ratios)),
            )
    cost = outcome.ledger.cost
    lines = [
        f"{outcome.ledger.measured} measured, {outcome.ledger.reused} found in the store, in"
        f" {_text.duration(outcome.seconds)} (compiling {_text.duration(cost.compile)},"
        f" verifying {_text.duration(cost.verify)}, timing {_text.duration(cost.timing)})",
        *(f"wrote {path}" for path in written),
        *(f"look at: {sentence}" for sentence in outcome.look_at),
    ]
    return Group(titled(f"launch shapes on {outcome.target.name}", shown), *lines)


def document(outcome: RandomOutcome, written: Sequence[Path]) -> dict[str, object]:
    """For `--json`."""
    decisions = outcome.selection.decisions if outcome.selection else ()
    return {
        "device": outcome.target.name,
        "state": outcome.state.value,
        "seconds": outcome.seconds,
        "measured": outcome.ledger.measured,
        "reused": outcome.ledger.reused,
        "health": dict(outcome.health),
        "generators": [
            {
                "generator": decision.generator,
                "default": [decision.matrix.default.block, decision.matrix.default.grid],
                "chosen": [decision.chosen.block, decision.chosen.grid],
                "gain": decision.score,
            }
            for decision in decisions
        ],
        "written": [str(path) for path in written],
        "look_at": list(outcome.look_at),
    }
