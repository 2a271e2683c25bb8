"""One measurement from several rounds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from tunesmith.records import Estimate, Measurement

from .entry import FULL


def repetition(round_: int) -> str:
    """The name of a full round after the first, which is number 1."""
    return f"{FULL}/{round_}"


def in_rounds(first: Measurement, rounds: Mapping[str, Measurement]) -> Measurement:
    """A first measurement with what later full rounds say, among `rounds` by their names.

    The time is the median of the rounds' medians, and its interval holds all of theirs: samples of one round share the
    moment, and so say nothing of how far a shared machine's speed changes in the next minute; the rounds do.
    """
    later = [taken for name, taken in rounds.items() if name.startswith(f"{FULL}/") and taken.ok]
    taken = [one.estimate for one in (first, *later) if one.estimate]
    if not (first.ok and later and taken):
        return first
    estimate = Estimate(
        statistics.median(one.seconds for one in taken),
        min(one.low for one in taken),
        max(one.high for one in taken),
        sum(one.count for one in taken),
    )
    return replace(first, samples=tuple(chain(*(one.samples for one in (first, *later)))), estimate=estimate)
