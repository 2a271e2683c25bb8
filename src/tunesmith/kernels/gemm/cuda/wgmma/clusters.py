"""How many clusters run at once, and into how many parts of K clusters cut tiles to fill a device."""

from __future__ import annotations

from .shape import PARTS_OF_A_CLUSTER, WgmmaShape

UNITS = 132
CLUSTERS_OF_UNITS = {1: 132, 2: 66, 3: 39, 4: 30, 5: 22, 6: 17, 7: 15, 8: 15}
"""Clusters that 132 multiprocessors run at once, if each work-group fills one, by the work-groups of a cluster. A
cluster lies on one group of multiprocessors (GPC), and GPUs differ in which multiprocessors are left out. This is what
cuOccupancyMaxActiveClusters said of an H200 (2026-11-28). Other devices are taken to have their share of it."""
EXCHANGE = 0.5
"""What an exchange of sums costs for each part, as iterations; a guess."""


def clusters_at_once(work_groups: int, compute_units: int) -> int:
    """Clusters of so many work-groups that the device runs at once, if each work-group fills a multiprocessor."""
    return max(1, CLUSTERS_OF_UNITS[work_groups] * compute_units // UNITS)


def filling_parts(shape: WgmmaShape, clusters: int, iterations: int, compute_units: int) -> int:
    """Into how many parts `clusters` stretches of so many iterations are cut, so that all run at once and end first.
    The least number of parts if there is no such cut, which a rejection tells."""

    def is_legal(parts: int) -> bool:
        return parts <= iterations and clusters <= clusters_at_once(parts, compute_units) and shape.holds(parts)

    def cost(parts: int) -> float:
        return -(-iterations // parts) + EXCHANGE * parts

    return min(filter(is_legal, PARTS_OF_A_CLUSTER), key=cost, default=PARTS_OF_A_CLUSTER[0])
