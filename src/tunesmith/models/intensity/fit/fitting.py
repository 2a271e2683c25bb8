"""Fits a heuristic to tuned products: by cut points, by a tree, or by percentiles as in the proposal of IREE's rule."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .bootstrap import cut_intervals
from .comparison import PUBLISHED, FitSettings, RuleComparison, compare_rules, tree_values
from .cross_validation import Integers
from .heuristic import BucketSeed, CutPoint, FitOrigin, FittedHeuristic, MetricRule, Question
from .losses import Floats
from .percentile_fit import PercentileFit, percentile_fit
from .sample import TunedSample
from .segments import bucket_numbers, segmentations
from .tree import TreeNode, TreeSplit, grown, leaf_numbers, leaves

PERCENTILE_METRIC = "intensity"
"""The metric whose percentiles the proposal takes."""


@dataclass(frozen=True)
class HeuristicFit:
    """A heuristic with its evidence: the comparison of rules, or the lines of the percentile fit."""

    heuristic: FittedHeuristic
    comparison: RuleComparison | None = None
    percentiles: PercentileFit | None = None


def fit_cut_points(sample: TunedSample, settings: FitSettings, origin: FitOrigin) -> HeuristicFit:
    """Cut points along the best metric. Cross-validation chooses the metric and the number of buckets, an exact search
    the cut points, and a bootstrap their intervals.

    Raises ValueError as `compare_rules` does.
    """
    comparison = compare_rules(sample, settings)
    metric, buckets = comparison.chosen.rule, comparison.chosen.buckets
    loss, values = sample.loss, sample.values(metric)
    segmentation = segmentations(values, loss, buckets, pins=settings.pins)[buckets]
    intervals = (
        cut_intervals(
            values, loss, buckets, sample.groups, pins=settings.pins, resamples=settings.resamples, seed=settings.seed
        )
        if segmentation.cuts
        else ()
    )
    cuts = tuple(
        CutPoint(pinned=cut) if cut in settings.pins else CutPoint(cut, low, high)
        for cut, (low, high) in zip(segmentation.cuts, intervals, strict=True)
    )
    seeds = _seeds(sample, segmentation.buckets(values), np.array(segmentation.decisions))
    rule = MetricRule(metric, cuts)
    return HeuristicFit(
        FittedHeuristic(origin, sample.ridge, sample.units, _scores(sample, comparison), rule, seeds), comparison
    )


def fit_tree(sample: TunedSample, settings: FitSettings, origin: FitOrigin) -> HeuristicFit:
    """A tree of the depth that cross-validation chooses. Raises ValueError if no split lowers the loss."""
    comparison = compare_rules(sample, settings)
    depth = comparison.chosen.buckets.bit_length() - 1
    values = tree_values(sample)
    tree = grown(values, sample.loss, depth)
    if not isinstance(tree, TreeSplit):
        raise ValueError("no question tells these products apart")
    decisions = np.array([leaf.decision for leaf in leaves(tree)])
    seeds = _seeds(sample, leaf_numbers(tree, values), decisions)
    rule = _questions(tree, 0)
    assert isinstance(rule, Question)
    return HeuristicFit(
        FittedHeuristic(origin, sample.ridge, sample.units, _scores(sample, comparison), rule, seeds), comparison
    )


def fit_percentiles(
    sample: TunedSample, intensities: Floats, works: Floats, settings: FitSettings, origin: FitOrigin
) -> HeuristicFit:
    """Two cut-offs at percentiles of intensity, and a line through the works in each outer bucket.

    `intensities` are in FLOP per element; they differ from those of the sample if a study took other sizes. `works` are
    the elements of D that a work-group computes. A person's pins replace the cut-offs. Raises ValueError for too few
    products, and for cut-offs that leave a bucket empty.
    """
    lines = percentile_fit(intensities, works, sample.groups, seed=settings.seed)
    # A product exactly at a cut-off is below the cut-off in the proposal, but beyond the cut point here.
    cut_offs = (math.nextafter(lines.low_cut, math.inf), math.nextafter(lines.high_cut, math.inf))
    cuts = (
        tuple(CutPoint(pinned=pin) for pin in sorted(settings.pins))
        if settings.pins
        else tuple(CutPoint(fitted=cut) for cut in cut_offs)
    )
    numbers = bucket_numbers([cut.value for cut in cuts], intensities)
    if len(np.unique(numbers)) != len(cuts) + 1:
        raise ValueError("the percentiles of intensity leave a bucket without a product")
    scores = {"low-r2-in-sample": lines.low.r2, "low-q2": lines.low.q2}
    scores |= {"high-r2-in-sample": lines.high.r2, "high-q2": lines.high.q2}
    loss = sample.loss
    sums = loss.sums(np.ones(loss.count))
    by_bucket: Floats = np.stack([np.bincount(numbers, column) for column in sums.T], axis=1)
    seeds = _seeds(sample, numbers, loss.decisions(by_bucket))
    rule = MetricRule(PERCENTILE_METRIC, cuts)
    heuristic = FittedHeuristic(origin, sample.ridge, sample.units, scores, rule, seeds)
    return HeuristicFit(heuristic, percentiles=lines)


def _scores(sample: TunedSample, comparison: RuleComparison) -> dict[str, float]:
    chosen, published = comparison.chosen, comparison.score(PUBLISHED)
    scores = {"r2": chosen.explained, "r2-low": chosen.interval[0], "r2-high": chosen.interval[1]}
    scores["published-r2"] = published.explained
    if sample.seconds is not None:
        scores |= {"efficiency": math.exp(-chosen.loss), "published-efficiency": math.exp(-published.loss)}
    return scores


def _seeds(sample: TunedSample, numbers: Integers, decisions: Floats) -> tuple[BucketSeed, ...]:
    """A seed for each bucket. `numbers` has the bucket of each product."""
    seeds = []
    for number, decision in enumerate(decisions):
        rows = np.flatnonzero(numbers == number).tolist()
        seeds.append(BucketSeed(sample.choice(rows, float(decision)), sample.tile_area(rows), len(rows)))
    return tuple(seeds)


def _questions(tree: TreeNode, first_leaf: int) -> Question | int:
    """The tree as questions. Its leaves become bucket numbers from `first_leaf` on."""
    if not isinstance(tree, TreeSplit):
        return first_leaf
    below = _questions(tree.below, first_leaf)
    return Question(tree.feature, tree.cut, below, _questions(tree.beyond, first_leaf + len(leaves(tree.below))))
