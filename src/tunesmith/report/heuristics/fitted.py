"""What `tunesmith heuristics fit` and `audit` print: cut points and seeds, rules side by side, lines with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.console import Group, RenderableType

from tunesmith.models.intensity.fit.bootstrap import Interval
from tunesmith.models.intensity.fit.comparison import RuleComparison, RuleScore
from tunesmith.models.intensity.fit.heuristic import CutPoint, FittedHeuristic, MetricRule, Question
from tunesmith.models.intensity.fit.percentile_fit import LineFit, PercentileFit
from tunesmith.session.heuristics.audit import FamilyAudit, HeuristicAudit
from tunesmith.session.heuristics.fit import WrittenFit
from tunesmith.session.heuristics.sources import ReadSample

from .. import numbers as _numbers
from ..run import Document, finite
from ..table import table, titled


def fitted(written_fit: WrittenFit) -> RenderableType:
    """The buckets, then the scores of the rules and lines, then the files."""
    fit = written_fit.fit
    parts: list[RenderableType] = [_buckets(fit.heuristic, written_fit.read), ""]
    if fit.comparison:
        parts += [_rules(fit.comparison), ""]
    if fit.percentiles:
        parts += [_lines(fit.percentiles), ""]
    if written_fit.pins:
        parts.append(f"kept as pinned: {', '.join(f'{pin:g}' for pin in written_fit.pins)}")
    parts += [f"left out: {note}" for note in written_fit.read.notes]
    return Group(*parts, *(f"wrote {path}" for path in written_fit.written))


def fitted_document(written_fit: WrittenFit) -> Document:
    """For `--json`."""
    heuristic, fit = written_fit.fit.heuristic, written_fit.fit
    return {
        **_about(written_fit.read),
        "method": heuristic.origin.method,
        "metric": heuristic.rule.metric if isinstance(heuristic.rule, MetricRule) else None,
        "cut_points": [_cut(cut) for cut in heuristic.rule.cut_points]
        if isinstance(heuristic.rule, MetricRule)
        else [],
        "buckets": [
            {
                "products": seed.products,
                "tile_area": seed.tile_area,
                "configuration": _numbers.configuration(seed.configuration),
            }
            for seed in heuristic.seeds
        ],
        "rules": _rules_document(fit.comparison) if fit.comparison else [],
        "lines": _lines_document(fit.percentiles) if fit.percentiles else [],
        "notes": list(written_fit.read.notes),
        "written": [str(path) for path in written_fit.written],
    }


def audited(audit: HeuristicAudit) -> RenderableType:
    """Two tables for each family (lines and rules), and notes on what was left out."""
    parts: list[RenderableType] = []
    for family in audit.families:
        read = family.read
        lines = [_lines(family.percentiles), ""] if family.percentiles else []
        parts += [
            titled(
                f"{family.family}, {read.device}, {read.data_type}: {len(read.sample.products)} products,"
                f" {len(set(read.sample.groups))} groups"
            ),
            "",
            *lines,
            _rules(family.comparison),
            "",
        ]
    return Group(*parts, *(f"left out: {note}" for note in audit.notes))


def audited_document(audit: HeuristicAudit) -> Document:
    """For `--json`."""
    return {"families": [_family(family) for family in audit.families], "notes": list(audit.notes)}


def _family(family: FamilyAudit) -> Document:
    return {
        "family": family.family,
        **_about(family.read),
        "lines": _lines_document(family.percentiles) if family.percentiles else [],
        "rules": _rules_document(family.comparison),
    }


def _about(read: ReadSample) -> Document:
    return {
        "device": read.device,
        "data_type": read.data_type,
        "products": len(read.sample.products),
        "groups": len(set(read.sample.groups)),
        "ridge": read.sample.ridge,
    }


def _buckets(heuristic: FittedHeuristic, read: ReadSample) -> RenderableType:
    origin = heuristic.origin
    title = f"{origin.device}, {origin.data_type}: {origin.products} products of {origin.groups} groups"
    rule = heuristic.rule
    conditions = _bucket_names(rule, len(heuristic.seeds))
    shown = table("bucket", "95 %", "products", "tile area", "configuration", right=("products", "tile area"))
    for (condition, interval), seed in zip(conditions, heuristic.seeds, strict=True):
        shown.add_row(
            condition,
            interval,
            str(seed.products),
            "" if seed.tile_area is None else f"{seed.tile_area:.0f}",
            _numbers.configuration(seed.configuration),
        )
    return titled(title, f"ridge {heuristic.ridge:.4g} FLOP/byte, {heuristic.units} compute units", shown)


def _bucket_names(rule: MetricRule | Question, buckets: int) -> list[tuple[str, str]]:
    """The condition of each bucket, and the interval of the cut point at its upper end."""
    if isinstance(rule, Question):
        return [(condition, "") for condition in _conditions(rule, ())]
    names = [(f"{rule.metric} < {cut.value:.4g}", _interval_of(cut)) for cut in rule.cut_points]
    return [*names, ("beyond" if names else "all", "")]


def _conditions(question: Question | int, before: tuple[str, ...]) -> Iterable[str]:
    if isinstance(question, int):
        yield ", ".join(before)
    else:
        yield from _conditions(question.below, (*before, f"{question.feature} < {question.cut:.4g}"))
        yield from _conditions(question.beyond, (*before, f"{question.feature} >= {question.cut:.4g}"))


def _interval_of(cut: CutPoint) -> str:
    if cut.pinned is not None:
        return "pinned"
    return "" if cut.low is None or cut.high is None else f"{cut.low:.4g} - {cut.high:.4g}"


def _rules(comparison: RuleComparison) -> RenderableType:
    efficiency = ("geomean",) if comparison.of_times else ()
    numbers = ("buckets", *efficiency, "in sample", "held out", "chosen leads by")
    columns = ("buckets", *efficiency, "in sample", "held out", "95 %", "chosen leads by", "95 % ")
    shown = table("rule", *columns, right=numbers)
    for score in comparison.scores:
        name = f"{score.rule} (chosen)" if score is comparison.chosen else score.rule
        lead = ("", "") if score is comparison.chosen else (_number(score.lead), _ends(score.lead_interval))
        counts = [str(score.buckets or ""), *([f"{math.exp(-score.loss):.3f}"] if comparison.of_times else [])]
        shown.add_row(name, *counts, _number(score.in_sample), _number(score.explained), _ends(score.interval), *lead)
    title = "R2 of each rule, held out by group"
    return titled(f"{title}; geomean of best time / chosen time" if comparison.of_times else title, shown)


def _lines(lines: PercentileFit) -> RenderableType:
    columns = ("products", "R2", "95 %", "Q2", "leverage", "R2 without two")
    shown = table("intensity", *columns, right=columns)
    for condition, line in _named_lines(lines):
        shown.add_row(
            condition, str(line.products), _number(line.r2), _ends(line.r2_interval), _number(line.q2),
            _number(line.most_leverage), _number(line.r2_without_extremes),
        )  # fmt: skip
    return titled("elements of D a work-group computes, as a line over intensity (FLOP per element)", shown)


def _named_lines(lines: PercentileFit) -> tuple[tuple[str, LineFit], tuple[str, LineFit]]:
    return (f"<= {lines.low_cut:.1f}", lines.low), (f"> {lines.high_cut:.1f}", lines.high)


def _lines_document(lines: PercentileFit) -> list[Document]:
    cuts = (lines.low_cut, lines.high_cut)
    return [
        {
            "bucket": bucket,
            "cut_off": cut,
            "products": line.products,
            "slope": finite(line.slope),
            "intercept": finite(line.intercept),
            "r2": finite(line.r2),
            "r2_interval": [finite(end) for end in line.r2_interval],
            "q2": finite(line.q2),
            "most_leverage": finite(line.most_leverage),
            "r2_without_extremes": finite(line.r2_without_extremes),
        }
        for bucket, cut, line in zip(("low", "high"), cuts, (lines.low, lines.high), strict=True)
    ]


def _rules_document(comparison: RuleComparison) -> list[Document]:
    return [_score(score, score is comparison.chosen) for score in comparison.scores]


def _score(score: RuleScore, is_chosen: bool) -> Document:
    return {
        "rule": score.rule,
        "buckets": score.buckets,
        "chosen": is_chosen,
        "loss": finite(score.loss),
        "standard_error": finite(score.standard_error),
        "r2_in_sample": finite(score.in_sample),
        "r2": finite(score.explained),
        "r2_interval": [finite(end) for end in score.interval],
        "lead": finite(score.lead),
        "lead_interval": [finite(end) for end in score.lead_interval],
    }


def _cut(cut: CutPoint) -> Document:
    return {
        "value": cut.value,
        "fitted": cut.fitted,
        "low": cut.low,
        "high": cut.high,
        "pinned": cut.pinned is not None,
    }


def _number(value: float | None) -> str:
    return "" if value is None or not math.isfinite(value) else f"{value:.3f}"


def _ends(interval: Interval) -> str:
    return f"{interval[0]:.2f} - {interval[1]:.2f}" if all(map(math.isfinite, interval)) else ""
