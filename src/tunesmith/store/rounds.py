"""Combines the measurements of several rounds into one."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from tunesmith.records import Estimate, Measurement

from .entry import FULL


def full_round_name(round_: int) -> str:
    """The name of a full round by its number. The first round, number 1, has another name."""
    return f"{FULL}/{round_}"


def combined_rounds(first: Measurement, rounds: Mapping[str, Measurement]) -> Measurement:
    """The first measurement combined with the later full rounds among `rounds`, which are by name.

    The time is the median of the rounds' medians, and its interval contains all of their intervals. Samples of one
    round are taken in one short time, so only several rounds show how much a shared machine's speed changes.
    """
    later = [measurement for name, measurement in rounds.items() if name.startswith(f"{FULL}/") and measurement.ok]
    estimates = [measurement.estimate for measurement in (first, *later) if measurement.estimate]
    if not (first.ok and later and estimates):
        return first
    combined = Estimate(
        statistics.median(estimate.seconds for estimate in estimates),
        min(estimate.low for estimate in estimates),
        max(estimate.high for estimate in estimates),
        sum(estimate.count for estimate in estimates),
    )
    samples = chain.from_iterable(measurement.samples for measurement in (first, *later))
    return replace(first, samples=tuple(samples), estimate=combined)
