"""What `tunesmith heuristics explain` and `judge` print: how a policy came to its choice, and the policies' scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict

from rich.console import Group, RenderableType

from tunesmith.models.intensity.policies import PolicyChoice, PolicyRefusal
from tunesmith.models.intensity.scoring import GUESS_COUNTS, SelectionScore
from tunesmith.records import Problem, Target, thaw
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.heuristics.judge import JudgePlan
from tunesmith.session.heuristics.matrices import RepeatSpread
from tunesmith.session.heuristics.verdicts import Judgement, PolicyVerdict

from ..run import Document, closing, finite, head
from ..table import table, titled

MOST_FAMILIES = 12
"""Families that a table shows beside each other; with more, see the JSON and the written table."""
BUCKETS = ("small", "medium", "large", "very large")


Answer = PolicyChoice | PolicyRefusal


def explained(answer: Answer, problem: Problem, target: Target) -> RenderableType:
    """The stages as rows; then the configuration in one line, or the reason why the policy has none."""
    title = f"{problem} of {problem.type.name} on {target.name}: {answer.policy}, {answer.kernel}"
    rows = table("step", "what it decides", rows=((line.step, line.text) for line in answer.lines))
    if isinstance(answer, PolicyRefusal):
        return Group(titled(title, rows), f"no configuration: {answer.rejection}")
    values = ", ".join(f"{name}: {_value(value)}" for name, value in answer.configuration.items())
    return Group(titled(title, rows), f"configuration: {{{values}}}")


def explained_document(answer: Answer, problem: Problem, target: Target) -> dict[str, object]:
    """For `--json`."""
    choice = answer if isinstance(answer, PolicyChoice) else None
    return {
        "problem_type": problem.type.name,
        "sizes": list(problem.sizes),
        "device": target.name,
        "architecture": target.architecture,
        "policy": answer.policy,
        "kernel": answer.kernel,
        "configuration": {name: thaw(value) for name, value in choice.configuration.items()} if choice else {},
        "reason": choice.reason if choice else "",
        "rejection": str(answer.rejection) if isinstance(answer, PolicyRefusal) else None,
        "lines": [{"step": line.step, "text": line.text} for line in answer.lines],
    }


def judged(outcome: RunOutcome[JudgePlan]) -> RenderableType:
    """Up to three tables for each device and data type, then what the run cost."""
    parts: list[RenderableType] = []
    for judgement in outcome.plan.judgements:
        parts += [titled(_title(judgement), _scores(judgement)), "", _groups(judgement, "bucket"), ""]
        if 1 < len(dict.fromkeys(judgement.matrix.families)) <= MOST_FAMILIES:
            parts += [_groups(judgement, "family"), ""]
        parts += [*_remarks(judgement), ""]
    return Group(*parts, *closing(outcome, outcome.written))


def judged_document(outcome: RunOutcome[JudgePlan]) -> Document:
    """For `--json`."""
    return {**head(outcome), "judgements": [_document(judgement) for judgement in outcome.plan.judgements]}


def _value(value: object) -> str:
    return "[" + ", ".join(map(_value, value)) + "]" if isinstance(value, tuple) else str(value)


def _title(judgement: Judgement) -> str:
    subject, matrix = judgement.subject, judgement.matrix
    families = len(set(matrix.families))
    return (
        f"{subject}: {len(matrix.problems)} products, {families} groups ({subject.groups}), "
        f"{subject.solutions:.0f} configurations measured of a product"
    )


def _scores(judgement: Judgement) -> RenderableType:
    right = ("products", "geomean", "10th %", "worst", ">= 0.95", "in kernel", "of least", "looked up", "other tile")
    tops = tuple(f"top {count}" for count in GUESS_COUNTS[1:])
    looked_up = () if judgement.is_measured else right[-2:]
    common = ("common",) if judgement.common < len(judgement.matrix.problems) else ()
    columns = (*right[:2], "95 %", *common, *right[2:7], *tops, *looked_up)
    shown = table("policy", "kernel", *columns, right=(*right, *common, *tops))
    for verdict in judgement.verdicts:
        score, kernels = verdict.score, verdict.entrant.kernel or ", ".join(verdict.kernels)
        if score is None:
            shown.add_row(verdict.entrant.name, kernels, "0", *("-" for _ in columns[1:]))
            continue
        low, high = score.interval
        counted = (score.percentile_10, score.worst, score.good, score.within_kernel, score.against_least)
        numbers = (score.geomean, *counted)
        geomean, *rest = (f"{number:.3f}" for number in numbers)
        common_scores = (f"{verdict.common_geomean:.3f}" if judgement.common else "-" for _ in common)
        first = (str(len(score.rows)), geomean, f"{low:.3f} - {high:.3f}", *common_scores, *rest)
        guesses = (f"{verdict.top[count]:.3f}" if verdict.top else "-" for count in GUESS_COUNTS[1:])
        shares = (score.unmeasured, score.other_tile)[: len(looked_up)]
        shown.add_row(verdict.entrant.name, kernels, *first, *guesses, *(f"{100 * share:.0f} %" for share in shares))
    return shown


def _groups(judgement: Judgement, grouping: str) -> RenderableType:
    """Geometric means within each bucket or each family of products; `grouping` is "bucket" or "family"."""
    if grouping == "bucket":
        names = [name for name in BUCKETS if name in judgement.buckets]
        counts = {name: judgement.buckets.count(name) for name in names}
    else:
        names = sorted(set(judgement.matrix.families))
        counts = {name: judgement.matrix.families.count(name) for name in names}
    heads = tuple(f"{name} ({counts[name]})" for name in names)
    shown = table(f"policy, by {grouping}", *(["kernel"] if _has_kernels(judgement) else []), *heads, right=heads)
    for verdict in judgement.verdicts:
        scores = verdict.by_bucket if grouping == "bucket" else verdict.by_family
        means = [f"{scores[name].geomean:.3f}" if name in scores else "-" for name in names]
        shown.add_row(verdict.entrant.name, *([verdict.entrant.kernel] if _has_kernels(judgement) else []), *means)
    return shown


def _has_kernels(judgement: Judgement) -> bool:
    return any(verdict.entrant.kernel for verdict in judgement.verdicts)


def _remarks(judgement: Judgement) -> list[str]:
    noise, unanswered = (
        judgement.noise,
        [verdict for verdict in judgement.verdicts if verdict.score and verdict.score.unanswered],
    )
    how = (
        "choices and the best known were measured side by side"
        if judgement.is_measured
        else "choices were looked up: one that nobody measured has the time of its nearest measured neighbour"
    )
    lines = [f"{how}; {_noise(noise)}"]
    if judgement.common < len(judgement.matrix.problems):
        lines.append(f"common: the geomean on the {judgement.common} products that every policy answered")
    lines += [
        f"{verdict.entrant.name} {verdict.entrant.kernel}".strip()
        + f": {verdict.score.unanswered} of {verdict.problems} products without a choice that ran"
        for verdict in unanswered
        if verdict.score
    ]
    return lines


def _noise(noise: RepeatSpread) -> str:
    width = f"a time's interval is +-{100 * noise.half_width:.1f} %" if math.isfinite(noise.half_width) else ""
    repeats = (
        f"{noise.cells} repeated times differ by {100 * (noise.ratio - 1):.1f} %" if math.isfinite(noise.ratio) else ""
    )
    words = " and ".join(filter(None, (width, repeats)))
    return f"in the median {words}" if words else "the noise of the times is not known"


def _document(judgement: Judgement) -> Document:
    subject, noise = judgement.subject, judgement.noise
    return {
        "device": subject.target.name,
        "architecture": subject.target.architecture,
        "data_type": subject.data_type,
        "products": len(judgement.matrix.problems),
        "groups": len(set(judgement.matrix.families)),
        "grouped_by": subject.groups,
        "solutions": subject.solutions,
        "common_products": judgement.common,
        "side_by_side": judgement.is_measured,
        "noise": {name: finite(value) for name, value in asdict(noise).items()},
        "policies": [_verdict(verdict) for verdict in judgement.verdicts],
    }


def _verdict(verdict: PolicyVerdict) -> Document:
    score = verdict.score
    worst = verdict.worst_at
    return {
        "policy": verdict.entrant.name,
        "kernel": verdict.entrant.kernel or None,
        "score": _score(score) if score else None,
        "common_geomean": finite(verdict.common_geomean),
        "unanswered": score.unanswered if score else verdict.problems,
        "worst_at": {"problem_type": worst.type.name, "sizes": list(worst.sizes)} if worst else None,
        "top": {str(count): value for count, value in verdict.top.items()},
        "by_bucket": _scored(verdict.by_bucket),
        "by_kernel": _scored(verdict.by_kernel),
        "by_family": _scored(verdict.by_family),
    }


def _scored(scores: Mapping[str, SelectionScore]) -> list[Document]:
    return [
        {"name": name, "products": len(score.rows), "geomean": score.geomean, "worst": score.worst}
        for name, score in scores.items()
    ]


def _score(score: SelectionScore) -> Document:
    return {
        "products": len(score.rows),
        "geomean": score.geomean,
        "interval": list(score.interval),
        "percentile_10": score.percentile_10,
        "worst": score.worst,
        "good": score.good,
        "within_kernel": score.within_kernel,
        "against_least": score.against_least,
        "unmeasured": score.unmeasured,
        "other_tile": score.other_tile,
    }
