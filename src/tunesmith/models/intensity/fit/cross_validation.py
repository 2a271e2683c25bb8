"""Cross-validation: the losses of rules on products to which they were not fitted, and the choice of a rule by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .losses import Floats, Loss
from .segments import segmentations

FOLDS = 10
MOST_BOUNDARIES = 256
"""The number of quantiles that a fit to a part of the data considers as cut points; more would not change its score."""

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The loss of a rule on each product, fitted without the fold of the product.

    `buckets` is the number of buckets; 0 for a rule without buckets.
    """

    rule: str
    buckets: int
    losses: Floats
    folds: Integers

    @property
    def loss(self) -> float:
        """The mean loss of a product."""
        return float(self.losses.mean())

    @property
    def standard_error(self) -> float:
        """The standard error of the mean loss, from the means of the folds."""
        means = [self.losses[self.folds == fold].mean() for fold in np.unique(self.folds)]
        return float(np.std(means, ddof=1) / np.sqrt(len(means))) if len(means) > 1 else float("nan")

    def explained(self, constant: Floats) -> float:
        """R2: the share of a constant decision's loss that the rule saves; negative if the rule does worse."""
        return explained_share(self.losses, constant)


def explained_share(losses: Floats, constant: Floats) -> float:
    """1 - sum of losses / sum of a constant decision's losses; NaN if the constant decision has no loss."""
    total = float(constant.sum())
    return 1.0 - float(losses.sum()) / total if total > 0 else float("nan")


def constant_losses(loss: Loss) -> Floats:
    """Each product's loss under the single decision that is best for all products together."""
    decision = loss.decisions(loss.sums(np.ones(loss.count)).sum(axis=0, keepdims=True))
    return loss.of_products(np.repeat(decision, loss.count))


def fold_numbers(groups: Sequence[str], folds: int, seed: int) -> Integers:
    """The fold of each product. Products of a group share a fold, and folds have about the same size.

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
    """The held-out losses of the best cut points along one metric, for each number of buckets."""
    fewest = len(pins) + 1
    losses_by_count = {count: np.zeros(loss.count) for count in range(fewest, most_buckets + 1)}
    for fold in np.unique(folds):
        weights = (folds != fold).astype(float)
        fitted = segmentations(values, loss, most_buckets, weights=weights, pins=pins, most_boundaries=MOST_BOUNDARIES)
        for count in list(losses_by_count):
            if count not in fitted:
                del losses_by_count[count]
                continue
            held_out = folds == fold
            losses_by_count[count][held_out] = loss.of_products(fitted[count].decided(values))[held_out]
    return tuple(HeldOut(metric, count, losses, folds) for count, losses in losses_by_count.items())


def held_out_labels(rule: str, labels: Integers, loss: Loss, folds: Integers) -> HeldOut:
    """The held-out losses of a rule with fixed buckets, such as a published rule: only the decisions are fitted.

    A bucket without a product outside the fold gets the decision that is best for all products outside the fold.
    """
    names, numbers = np.unique(labels, return_inverse=True)
    losses = np.zeros(loss.count)
    for fold in np.unique(folds):
        sums = loss.sums((folds != fold).astype(float))
        has_products = np.bincount(numbers[folds != fold], minlength=len(names)) > 0
        by_bucket: Floats = np.stack([np.bincount(numbers, column, minlength=len(names)) for column in sums.T], axis=1)
        by_bucket[~has_products] = sums.sum(axis=0)
        losses[folds == fold] = loss.of_products(loss.decisions(by_bucket)[numbers])[folds == fold]
    return HeldOut(rule, len(names), losses, folds)


def held_out_regression(rule: str, columns: Floats, responses: Floats, folds: Integers) -> HeldOut:
    """The held-out losses of ordinary least squares of the responses on `columns`: a rule with more freedom."""
    losses = np.zeros(len(responses))
    for fold in np.unique(folds):
        held_out = folds == fold
        coefficients = np.linalg.lstsq(columns[~held_out], responses[~held_out], rcond=None)[0]
        losses[held_out] = (responses[held_out] - columns[held_out] @ coefficients) ** 2
    return HeldOut(rule, 0, losses, folds)


def held_out_rule(rule: str, fit: Callable[[Floats], Floats], loss: Loss, folds: Integers) -> HeldOut:
    """The held-out losses of any rule. `fit` takes weights (0 for held-out products) and returns the decision for each
    product."""
    losses = np.zeros(loss.count)
    for fold in np.unique(folds):
        held_out = folds == fold
        losses[held_out] = loss.of_products(fit((~held_out).astype(float)))[held_out]
    return HeldOut(rule, 0, losses, folds)


def chosen_by_one_standard_error(judged: Sequence[HeldOut]) -> HeldOut:
    """The rule with the fewest buckets whose loss is within a standard error of the best; among these, the one with the
    least loss.

    Source: Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984, section 3.4.3.
    """
    best = min(judged, key=lambda held: held.loss)
    margin = best.loss + (best.standard_error if np.isfinite(best.standard_error) else 0.0)
    good = [held for held in judged if held.loss <= margin]
    fewest = min(held.buckets for held in good)
    return min((held for held in good if held.buckets == fewest), key=lambda held: held.loss)


def quadratic_columns(sizes: Mapping[str, Floats]) -> Floats:
    """A constant, the logarithms of the sizes, their squares and their products: a row for each product."""
    logs = [np.log(values) for values in sizes.values()]
    pairs = [first * second for index, first in enumerate(logs) for second in logs[index:]]
    return np.stack([np.ones(len(logs[0])), *logs, *pairs], axis=1)
