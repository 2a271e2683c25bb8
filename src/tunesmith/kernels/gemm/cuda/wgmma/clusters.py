"""Clusters whose work-groups have a part of K each of one tile: how many run at once, and what fills a device."""

from __future__ import annotations

from .shape import PARTS_OF_A_CLUSTER, WgmmaShape

UNITS = 132
CLUSTERS_OF_UNITS = {2: 66, 3: 39, 4: 30, 5: 22, 6: 17, 7: 15, 8: 15}
"""Clusters that 132 multiprocessors run at once, if each work-group fills one, by the work-groups of a cluster. A
cluster lies on one GPC, and GPUs differ in which multiprocessors are left out. This is what
cuOccupancyMaxActiveClusters said of an H200 (2026-11-28)."""
START, EXCHANGE = 4.0, 0.5
"""What the start of a work-group costs, and its exchange of sums for each part, as iterations; guesses."""


def clusters_at_once(parts: int, shape: WgmmaShape, compute_units: int) -> int:
    """Clusters of `parts` work-groups that the device runs at once."""
    return max(1, CLUSTERS_OF_UNITS[parts] * compute_units // UNITS * shape.resident)


def filling_parts(shape: WgmmaShape, clusters: int, iterations: int, compute_units: int) -> int:
    """Into how many parts `clusters` stretches of so many iterations are cut, so that the device has done all of them
    first. The least number of parts if no cut is legal, which a rejection tells."""

    def cost(parts: int) -> float:
        turns = -(-clusters // clusters_at_once(parts, shape, compute_units))
        return turns * (START + -(-iterations // parts) + EXCHANGE * parts)

    legal = (parts for parts in PARTS_OF_A_CLUSTER if parts <= iterations and shape.holds(parts))
    return min(legal, key=cost, default=PARTS_OF_A_CLUSTER[0])
