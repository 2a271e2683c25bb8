"""Compares rules on held-out products: every metric and number of buckets, trees, the published rules, and free
regressions as a bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tunesmith.models.intensity.published import Bucket, intensity_bucket, trip_count_bucket

from .bootstrap import RESAMPLES, Interval, explained_intervals
from .cross_validation import (
    FOLDS,
    HeldOut,
    Integers,
    chosen_by_one_standard_error,
    constant_losses,
    explained_share,
    fold_numbers,
    held_out_cuts,
    held_out_labels,
    held_out_regression,
    held_out_rule,
    quadratic_columns,
)
from .losses import Floats, Loss, SquaredError
from .sample import FEATURES, TunedSample
from .segments import segmentations
from .tree import grown, tree_decisions

MOST_BUCKETS = 6
PUBLISHED, TRIP_COUNT = "published intensity rule", "published trip-count rule"
LINEAR, QUADRATIC = "free regression, linear", "free regression, quadratic"


@dataclass(frozen=True)
class FitSettings:
    """The rules to choose from: metrics with numbers of buckets, or depths of a tree. `seed` is for all random draws.

    `pins` are cut points that every rule along a metric must have; then `metrics` has a single metric.
    """

    metrics: tuple[str, ...]
    fewest_buckets: int = 1
    most_buckets: int = MOST_BUCKETS
    pins: tuple[float, ...] = ()
    depths: tuple[int, ...] = ()
    folds: int = FOLDS
    resamples: int = RESAMPLES
    seed: int = 0


@dataclass(frozen=True, slots=True)
class RuleScore:
    """The score of a rule. `explained` is R2 on held-out products, `in_sample` R2 on the products to which the rule was
    fitted (None if not computed). `lead` is the chosen rule's R2 minus this rule's R2. If times are known, R2 is the
    share of loss that the rule saves, compared with a single configuration for all products.
    """

    rule: str
    buckets: int
    loss: float
    standard_error: float
    in_sample: float | None
    explained: float
    interval: Interval
    lead: float
    lead_interval: Interval


@dataclass(frozen=True)
class RuleComparison:
    """The score of every rule, and the rule with cut points (or the tree) that the one-standard-error rule chooses.

    `of_times` if losses are log regret; then exp(-loss) is the geometric mean of best time / chosen time.
    """

    scores: tuple[RuleScore, ...]
    chosen: RuleScore
    of_times: bool = False

    def score(self, rule: str, buckets: int | None = None) -> RuleScore:
        """The first score of a rule. Raises KeyError for a rule that was not compared."""
        for score in self.scores:
            if score.rule == rule and buckets in (None, score.buckets):
                return score
        raise KeyError(rule)


def compare_rules(sample: TunedSample, settings: FitSettings) -> RuleComparison:
    """Scores all rules on the same folds; groups are held out together. Raises ValueError for too few groups, or if no
    rule has the pins and the requested number of buckets."""
    loss = sample.loss
    folds = fold_numbers(sample.groups, settings.folds, settings.seed)
    values = {metric: sample.values(metric) for metric in settings.metrics}
    cuts = [
        held
        for metric, column in values.items()
        for held in held_out_cuts(metric, column, loss, folds, settings.most_buckets, settings.pins)
    ]
    candidates = [held for held in cuts if held.buckets >= settings.fewest_buckets]
    trees = _held_out_trees(sample, loss, folds, settings.depths)
    if not candidates and not trees:
        raise ValueError("no rule has so many buckets and the cut points that are pinned")
    chosen = chosen_by_one_standard_error(trees or candidates)
    others = [held for held in (*cuts, *trees) if held is not chosen]
    judged = (chosen, *others, *_published(sample, loss, folds), *_free(sample, loss, folds))
    scores = _scores(judged, sample, loss, _in_sample(values, loss, settings))
    by_rule = tuple(sorted(scores, key=lambda score: [held.rule for held in (*cuts, *trees)].count(score.rule) == 0))
    return RuleComparison(by_rule, scores[0], sample.seconds is not None)


def published_labels(sample: TunedSample) -> Integers:
    """The bucket of IREE's intensity rule for each product, as a number, by the sample's ridge."""
    order = list(Bucket)
    return np.array([order.index(intensity_bucket(product, sample.ridge)) for product in sample.products])


def tree_values(sample: TunedSample) -> dict[str, Floats]:
    """The values of every feature that a tree may ask about."""
    return {feature: sample.values(feature) for feature in FEATURES}


def _scores(
    judged: Sequence[HeldOut], sample: TunedSample, loss: Loss, in_sample: dict[tuple[str, int], float]
) -> list[RuleScore]:
    constant = constant_losses(loss)
    intervals, leads = explained_intervals([held.losses for held in judged], constant, sample.groups)
    explained_by_chosen = judged[0].explained(constant)
    return [
        RuleScore(
            held.rule,
            held.buckets,
            held.loss,
            held.standard_error,
            in_sample.get((held.rule, held.buckets)),
            held.explained(constant),
            interval,
            explained_by_chosen - held.explained(constant),
            lead,
        )
        for held, interval, lead in zip(judged, intervals, leads, strict=True)
    ]


def _in_sample(values: dict[str, Floats], loss: Loss, settings: FitSettings) -> dict[tuple[str, int], float]:
    """R2 of exact cut points on the products to which they are fitted, by metric and number of buckets."""
    constant = constant_losses(loss)
    return {
        (metric, count): explained_share(loss.of_products(segmentation.decided(column)), constant)
        for metric, column in values.items()
        for count, segmentation in segmentations(column, loss, settings.most_buckets, pins=settings.pins).items()
    }


def _held_out_trees(sample: TunedSample, loss: Loss, folds: Integers, depths: Sequence[int]) -> list[HeldOut]:
    """The held-out losses of a tree of each depth; `buckets` is its number of leaves, 2^depth."""
    if not depths:
        return []
    values = tree_values(sample)

    def of_depth(depth: int) -> HeldOut:
        held = held_out_rule(
            "tree", lambda weights: tree_decisions(grown(values, loss, depth, weights), values), loss, folds
        )
        return HeldOut(f"tree of depth {depth}", 2**depth, held.losses, folds)

    return [of_depth(depth) for depth in depths]


def _published(sample: TunedSample, loss: Loss, folds: Integers) -> list[HeldOut]:
    trip_count_labels = np.array([list(Bucket).index(trip_count_bucket(product)) for product in sample.products])
    rules = ((PUBLISHED, published_labels(sample)), (TRIP_COUNT, trip_count_labels))
    return [held_out_labels(name, labels, loss, folds) for name, labels in rules]


def _free(sample: TunedSample, loss: Loss, folds: Integers) -> list[HeldOut]:
    if not isinstance(loss, SquaredError):
        return []
    sizes = {name: sample.values(name) for name in ("m", "n", "k")}
    columns = quadratic_columns(sizes)
    return [
        held_out_regression(LINEAR, columns[:, : 1 + len(sizes)], loss.responses, folds),
        held_out_regression(QUADRATIC, columns, loss.responses, folds),
    ]
