"""How well cut points do on products that they were not fitted to, and which metric and how many that speaks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .losses import Floats, Loss
from .segments import segmentations

FOLDS = 10
MOST_BOUNDARIES = 256
"""Quantiles that a fit to a part of the data considers: more would not move its score."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The losses of a rule on products that it was not fitted to, one a product, and on how many it was measured.

    `buckets` of the rule with cut points; 0 for a rule of another kind.
    """

    rule: str
    buckets: int
    losses: Floats
    folds: Integers

    @property
    def loss(self) -> float:
        """Mean of a product."""
        return float(self.losses.mean())

    @property
    def standard_error(self) -> float:
        """Of the mean, from the means of the folds."""
        means = [self.losses[self.folds == fold].mean() for fold in np.unique(self.folds)]
        return float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")

    def explained(self, constant: Floats) -> float:
        """R2: the share of a constant decision's loss that the rule saves; negative where the rule does worse."""
        return explained_share(self.losses, constant)


def explained_share(losses: Floats, constant: Floats) -> float:
    """1 - sum of losses / sum of a constant decision's; NaN where the constant decision has none."""
    total = float(constant.sum())
    return 1.0 - float(losses.sum()) / total if total > 0 else float("nan")


def constant_losses(loss: Loss) -> Floats:
    """Of the one decision that is best for all products, each product's loss."""
    decision = loss.decisions(loss.sums(np.ones(loss.count)).sum(axis=0, keepdims=True))
    return loss.of_products(np.repeat(decision, loss.count))


def fold_numbers(groups: Sequence[str], folds: int, seed: int) -> Integers:
    """A fold for each product: products of a group share one, and folds are about as large as each other.

    Raises ValueError for fewer than two groups.
    """
    names, rows, counts = np.unique(np.array(groups), return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise ValueError("all products are of one group, so none can be held out")
    sizes = np.zeros(min(folds, len(names)))
    chosen = np.zeros(len(names), dtype=np.int64)
    shuffled = np.random.default_rng(seed).permutation(len(names))
    for group in shuffled[np.argsort(-counts[shuffled], kind="stable")]:
        chosen[group] = sizes.argmin()
        sizes[chosen[group]] += counts[group]
    return np.asarray(chosen[rows.ravel()])


def held_out_cuts(
    metric: str, values: Floats, loss: Loss, folds: Integers, most_buckets: int, pins: Sequence[float] = ()
) -> tuple[HeldOut, ...]:
    """The best cut points along one metric, for each number of buckets, with each fold held out in turn."""
    fewest = len(pins) + 1
    losses = {count: np.zeros(loss.count) for count in range(fewest, most_buckets + 1)}
    for fold in np.unique(folds):
        weights = (folds != fold).astype(float)
        fitted = segmentations(values, loss, most_buckets, weights=weights, pins=pins, most_boundaries=MOST_BOUNDARIES)
        for count in list(losses):
            if count not in fitted:
                del losses[count]
                continue
            out = folds == fold
            losses[count][out] = loss.of_products(fitted[count].decided(values))[out]
    return tuple(HeldOut(metric, count, held, folds) for count, held in losses.items())


def held_out_labels(rule: str, labels: Integers, loss: Loss, folds: Integers) -> HeldOut:
    """A rule whose buckets are fixed, such as a published one: only each bucket's decision is fitted.

    A bucket that has no product outside of a fold gets the decision of all products there.
    """
    names, numbers = np.unique(labels, return_inverse=True)
    losses = np.zeros(loss.count)
    for fold in np.unique(folds):
        sums = loss.sums((folds != fold).astype(float))
        known = np.bincount(numbers[folds != fold], minlength=len(names)) > 0
        by_bucket: Floats = np.stack([np.bincount(numbers, column, minlength=len(names)) for column in sums.T], axis=1)
        by_bucket[~known] = sums.sum(axis=0)
        losses[folds == fold] = loss.of_products(loss.decisions(by_bucket)[numbers])[folds == fold]
    return HeldOut(rule, len(names), losses, folds)


def held_out_regression(rule: str, columns: Floats, responses: Floats, folds: Integers) -> HeldOut:
    """Ordinary least squares of the responses on free columns: what a rule with more freedom explains."""
    losses = np.zeros(len(responses))
    for fold in np.unique(folds):
        out = folds == fold
        coefficients = np.linalg.lstsq(columns[~out], responses[~out], rcond=None)[0]
        losses[out] = (responses[out] - columns[out] @ coefficients) ** 2
    return HeldOut(rule, 0, losses, folds)


def held_out_rule(rule: str, fit: Callable[[Floats], Floats], loss: Loss, folds: Integers) -> HeldOut:
    """Any rule: `fit` takes weights (0 for what is held out) and gives the decision for each product."""
    losses = np.zeros(loss.count)
    for fold in np.unique(folds):
        out = folds == fold
        losses[out] = loss.of_products(fit((~out).astype(float)))[out]
    return HeldOut(rule, 0, losses, folds)


def chosen_by_one_standard_error(judged: Sequence[HeldOut]) -> HeldOut:
    """The fewest buckets whose loss is within a standard error of the best, and of these the least loss.

    Source: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, section 3.4.3.
    """
    best = min(judged, key=lambda held: held.loss)
    margin = best.loss + (best.standard_error if np.isfinite(best.standard_error) else 0.0)
    good = [held for held in judged if held.loss <= margin]
    fewest = min(held.buckets for held in good)
    return min((held for held in good if held.buckets == fewest), key=lambda held: held.loss)


def quadratic_columns(sizes: Mapping[str, Floats]) -> Floats:
    """A constant, the logarithms of some sizes, their squares and products: a row a product."""
    logs = [np.log(values) for values in sizes.values()]
    pairs = [first * second for index, first in enumerate(logs) for second in logs[index:]]
    return np.stack([np.ones(len(logs[0])), *logs, *pairs], axis=1)
