"""What `tunesmith random tune` prints: tuned generators, or with `--arch` generators compiled for an absent device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Group, RenderableType

from tunesmith.session.frame.outputs import CACHE
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.random.compile import CompilePlan, ProgramCompilation
from tunesmith.session.random.plan import RandomPlan

from .. import numbers as _numbers
from ..run import Document, closing, head
from ..table import table, titled

MOST_LINES = 20
"""Sentences that the text shows; the JSON has all."""


def tuned(outcome: RunOutcome[RandomPlan]) -> RenderableType:
    """A row for each generator: the default and the chosen shape and the gain; then what the run measured and wrote."""
    rows = (
        (
            decision.generator,
            decision.matrix.default,
            decision.chosen,
            f"{decision.score:.3f}",
            len(decision.ranking),
            len(decision.ratios),
        )
        for decision in outcome.plan.selection.decisions
    )
    shown = table("generator", "default", "chosen", "gain", "best of", "pairs", right=("gain", "pairs"), rows=rows)
    return Group(titled(f"launch shapes on {outcome.target.name}", shown), *closing(outcome, outcome.written))


def tuned_document(outcome: RunOutcome[RandomPlan]) -> Document:
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


def compiled(outcome: RunOutcome[CompilePlan]) -> RenderableType:
    """A row for each generator, then the rejections and the failures with the compiler's words."""
    numbers = ("compiled", "found", "registers", "spills", "shared", "rejected", "failed")
    shown = table("generator", *numbers, right=numbers)
    for generator, programs in _by_generator(outcome).items():
        counts = _generator(generator, programs)
        spilling, most = counts["spilling"], counts["shared_bytes_most"]
        shown.add_row(
            generator,
            str(counts["compiled"]),
            str(counts["found"]),
            _range(counts["registers_least"], counts["registers_most"]),
            f"{spilling}, to {counts['spill_bytes_most']} B" if spilling else "-",
            _numbers.size(most) if most else "-",
            str(sum(counts["rejected"].values()) or "-"),
            str(counts["failed"] or "-"),
        )
    run = f"`tunesmith random tune` on such a device, with the same -o and {outcome.plan.compiler}, finds them"
    lines = [
        *(f"rejected: {count} for {reason}, such as {example}" for reason, count, example in _rejections(outcome)),
        f"compiled in {_numbers.duration(outcome.seconds)}; the binaries are in {outcome.folder / CACHE}, where {run}",
        *(f"look at: {sentence}" for sentence in _shortened(outcome.look_at)),
    ]
    return Group(titled(f"programs for {outcome.target.architecture}, by {outcome.plan.compiler}", shown), *lines)


def compiled_document(outcome: RunOutcome[CompilePlan]) -> Document:
    """For `--json` (docs/json.md)."""
    return {
        **head(outcome),
        "architecture": outcome.target.architecture,
        "compiler": outcome.plan.compiler,
        "cache": str(outcome.folder / CACHE),
        "generators": [_generator(name, programs) for name, programs in _by_generator(outcome).items()],
        "rejections": [
            {"program": program.name, "reason": program.rejection.reason, "detail": program.rejection.detail}
            for program in outcome.plan.programs
            if program.rejection
        ],
        "failures": [
            {"program": program.name, "reason": program.failure.reason, "log": program.failure.detail}
            for program in outcome.plan.programs
            if program.failure
        ],
    }


def _by_generator(outcome: RunOutcome[CompilePlan]) -> dict[str, list[ProgramCompilation]]:
    by_generator: dict[str, list[ProgramCompilation]] = {}
    for program in outcome.plan.programs:
        by_generator.setdefault(program.generator, []).append(program)
    return by_generator


def _generator(name: str, programs: Sequence[ProgramCompilation]) -> dict[str, Any]:
    usable = [program for program in programs if not program.rejection and not program.failure]
    facts = [fact for program in usable for fact in program.facts]
    registers = [fact.registers for fact in facts if fact.registers is not None]
    spills = [_spill_bytes(program) for program in usable]
    reasons = Counter(program.rejection.reason for program in programs if program.rejection)
    return {
        "generator": name,
        "programs": len(programs),
        "compiled": sum(not program.found for program in usable),
        "found": sum(program.found for program in usable),
        "rejected": dict(reasons),
        "failed": sum(program.failure is not None for program in programs),
        "registers_least": min(registers, default=None),
        "registers_most": max(registers, default=None),
        "spilling": sum(spill > 0 for spill in spills),
        "spill_bytes_most": max(spills, default=None),
        "shared_bytes_most": max((fact.local_bytes for fact in facts if fact.local_bytes is not None), default=None),
    }


def _spill_bytes(program: ProgramCompilation) -> int:
    """Bytes that a work-item of the program's worst entry spills."""
    return max((fact.spill_bytes or 0 for fact in program.facts), default=0)


def _range(least: int | None, most: int | None) -> str:
    if least is None:
        return "-"
    return str(least) if least == most else f"{least} to {most}"


def _rejections(outcome: RunOutcome[CompilePlan]) -> Iterator[tuple[str, int, str]]:
    """Reason, count and an example of each kind of rejection, the most frequent first."""
    rejected = [(program.name, program.rejection) for program in outcome.plan.programs if program.rejection]
    first = {rejection.reason: f"{name}: {rejection.detail}" for name, rejection in reversed(rejected)}
    for reason, count in Counter(rejection.reason for _, rejection in rejected).most_common():
        yield reason, count, first[reason]


def _shortened(sentences: Sequence[str]) -> Iterator[str]:
    yield from sentences[:MOST_LINES]
    if len(sentences) > MOST_LINES:
        yield f"{len(sentences) - MOST_LINES} more; --json lists them"
