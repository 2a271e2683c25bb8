"""Combines the measurements of several rounds into one."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from tunesmith.records import Estimate, Measurement

from .entry import FULL, RACE, RECHECK


def answering(rounds: Mapping[str, Measurement], racing: bool = False) -> Measurement | None:
    """The measurement that answers for a solution at a problem, among those of its rounds; None if none does.

    A later result (a crash, a recheck) goes before an earlier. In a race the raced measurement goes before the full
    one, although it is less exact: a step that is replayed must see the times that it saw, not those that the final
    measured since. Without `racing`, measurements that a race stopped early are left out.
    """
    names = (FULL, RACE) if racing else (RACE, FULL)
    stored = (rounds[name] for name in (*names, *(name + RECHECK for name in names)) if name in rounds)
    return next((found for found in reversed([*stored]) if racing or not found.raced), None)


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
