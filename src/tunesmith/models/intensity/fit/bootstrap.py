"""Confidence intervals by a bootstrap over whole groups: how a figure varies with other products of the same kind.

Groups are drawn whole because the products of one group are alike. Source: Efron and Tibshirani, An Introduction to the
Bootstrap, 1993.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from .cross_validation import MOST_BOUNDARIES, Integers
from .losses import Floats, Loss
from .segments import segmentations

RESAMPLES = 200
ENDS = (2.5, 97.5)
"""The percentiles at the ends of an interval."""

Interval = tuple[float, float]


def group_numbers(groups: Sequence[str]) -> Integers:
    """The number of each product's group, counted from 0."""
    return np.asarray(np.unique(np.array(groups), return_inverse=True)[1], dtype=np.int64).ravel()


def group_draws(groups: Sequence[str], resamples: int, seed: int) -> Iterator[Floats]:
    """Weights of the products, for each resample: how often the product's group was drawn. A resample draws as many
    groups as there are."""
    numbers = group_numbers(groups)
    for counts in drawn_counts(int(numbers.max()) + 1, resamples, seed):
        yield counts[numbers]


def drawn_counts(count: int, resamples: int, seed: int) -> Floats:
    """(resamples, count): how often each of `count` groups was drawn in each resample."""
    random = np.random.default_rng(seed)
    drawn = random.integers(count, size=(resamples, count)) + count * np.arange(resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=resamples * count).astype(float).reshape(resamples, count)


def cut_intervals(
    values: Floats,
    loss: Loss,
    buckets: int,
    groups: Sequence[str],
    *,
    pins: Sequence[float] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Interval, ...]:
    """A 95 % interval for each cut point, in ascending order."""
    drawn = [
        segmentations(values, loss, buckets, weights=weights, pins=pins, most_boundaries=MOST_BOUNDARIES)[buckets].cuts
        for weights in group_draws(groups, resamples, seed)
    ]
    return tuple((float(low), float(high)) for low, high in np.percentile(np.array(drawn), ENDS, axis=0).T)


def explained_intervals(
    losses: Sequence[Floats], constant: Floats, groups: Sequence[str], *, resamples: int = 2000, seed: int = 0
) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """95 % intervals for each rule: of the share of a constant decision's loss that the rule saves, and of the first
    rule's lead over the rule.

    Only losses are resampled; nothing is fitted again. Draws in which the constant decision has no loss are left out;
    NaN if this holds for all draws.
    """
    numbers = group_numbers(groups)
    by_group = np.stack([np.bincount(numbers, column) for column in (constant, *losses)], axis=1)
    drawn = drawn_counts(len(by_group), resamples, seed) @ by_group
    has_loss = drawn[:, 0] > 0
    if not has_loss.any():
        unknown = ((math.nan, math.nan),) * len(losses)
        return unknown, unknown
    shares = 1 - drawn[has_loss, 1:] / drawn[has_loss, :1]
    return _ends(shares), _ends(shares[:, :1] - shares)


def _ends(drawn: Floats) -> tuple[Interval, ...]:
    low, high = np.percentile(drawn, ENDS, axis=0)
    return tuple(zip(low.tolist(), high.tolist(), strict=True))
