"""Devices of one kind beside each other: which of them is slower than the others, by their times of one anchor."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from tunesmith.records import Estimate

SLOWER = 0.10
"""A device is left out if its anchor takes longer than its siblings' by more than this share. Chips of one kind differ
by a few percent at one clock (process spread); more than that is heat, a power limit or another user."""


def relative_times(anchors: Mapping[str, Estimate]) -> dict[str, float]:
    """Each device's time of the anchor over the typical time, which is that of the device in the middle. Of an even
    number of devices, the faster of the two in the middle counts, so that of two devices the slower is compared."""
    if not anchors:
        return {}
    typical = statistics.median_low([estimate.seconds for estimate in anchors.values()])
    return {device: estimate.seconds / typical for device, estimate in anchors.items()}


def slow_devices(anchors: Mapping[str, Estimate], bound: float = SLOWER) -> dict[str, float]:
    """The devices that are slower than their siblings beyond the bound, each with its relative time.

    A device whose interval reaches the typical time is not among them: its time is noise.
    """
    relative = relative_times(anchors)
    if not relative:
        return {}
    typical = statistics.median_low([estimate.seconds for estimate in anchors.values()])
    return {device: ratio for device, ratio in relative.items() if ratio > 1 + bound and anchors[device].low > typical}


def spread(relative: Mapping[str, float]) -> float:
    """The slowest device's time over the fastest's, minus 1; 0 for fewer than two devices."""
    return max(relative.values()) / min(relative.values()) - 1 if len(relative) > 1 else 0.0
