"""`tunesmith heuristics audit`: the analysis of IREE's study on any winners, with the analyses that it left out."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.formats.winners.final_matrix import is_final
from tunesmith.models.intensity.fit.comparison import MOST_BUCKETS, FitSettings, RuleComparison, compare_rules
from tunesmith.models.intensity.fit.percentile_fit import PercentileFit, percentile_fit
from tunesmith.models.intensity.fit.segments import Segmentation, segmentations
from tunesmith.models.intensity.metrics import METRICS
from tunesmith.records import UserError

from .sources import (
    LEAST_PRODUCTS,
    ReadSample,
    SourceTask,
    best_rows,
    read_sample,
    read_shapes,
    sample_of,
    study_intensities,
    works_per_group,
)


@dataclass(frozen=True)
class FamilyAudit:
    """The audit of a family's products: the study's lines of work by intensity, and all rules compared. A matrix of
    times has no lines.

    `steps` are the buckets of the chosen rule. The lines were fitted to `intensities` (FLOP per element) and `works`
    (elements of D of a work-group), which have an entry for each product.
    """

    family: str
    read: ReadSample
    percentiles: PercentileFit | None
    comparison: RuleComparison
    steps: Segmentation
    intensities: tuple[float, ...] = ()
    works: tuple[float, ...] | None = None


@dataclass(frozen=True)
class HeuristicAudit:
    """Each family's audit, and sentences about what was left out."""

    families: tuple[FamilyAudit, ...]
    notes: tuple[str, ...]


def audit_heuristics(task: SourceTask, seed: int = 0) -> HeuristicAudit:
    """Audit each family of the sources by itself. Raises UserError for sources without a family large enough."""
    settings = FitSettings(metrics=tuple(METRICS), most_buckets=MOST_BUCKETS, seed=seed)
    if any(map(is_final, task.sources)):
        return HeuristicAudit((_of_times(read_sample(task), settings, task),), ())
    shapes, left_out = read_shapes(task)
    families = sorted({shape.family for shape in shapes})
    audits, notes = [], list(left_out)
    for family in families:
        rows = best_rows([shape for shape in shapes if shape.family == family])
        if len(rows) < LEAST_PRODUCTS:
            notes.append(f"{family}: {len(rows)} products are too few, {LEAST_PRODUCTS} are needed")
            continue
        read = sample_of(rows, (), task)
        works = works_per_group(read.shapes)
        try:
            intensities = study_intensities(read.shapes)
            lines = percentile_fit(intensities, works, read.sample.groups, seed=seed)
            comparison = compare_rules(read.sample, settings)
            steps = _steps(read, comparison)
            drawn = tuple(intensities.tolist()), tuple(works.tolist())
            audits.append(FamilyAudit(family, read, lines, comparison, steps, *drawn))
        except ValueError as error:
            notes.append(f"{family}: {error}")
    if not audits:
        names = ", ".join(map(str, task.sources))
        raise UserError(names, "; ".join(notes) or "no row is left", "give more products, or a wider --where")
    return HeuristicAudit(tuple(audits), tuple(notes))


def _of_times(read: ReadSample, settings: FitSettings, task: SourceTask) -> FamilyAudit:
    """The audit of a matrix of times, which has no tiles for the study's lines: only rules are compared."""
    try:
        comparison = compare_rules(read.sample, settings)
        return FamilyAudit("GEMM", read, None, comparison, _steps(read, comparison))
    except ValueError as error:
        raise UserError(", ".join(map(str, task.sources)), str(error), "give the tables of more sizes") from error


def _steps(read: ReadSample, comparison: RuleComparison) -> Segmentation:
    chosen = comparison.chosen
    return segmentations(read.sample.values(chosen.rule), read.sample.loss, chosen.buckets)[chosen.buckets]
