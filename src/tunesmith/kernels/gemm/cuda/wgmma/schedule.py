"""Which work-group computes what: the numbers that `source/schedule.cu` uses, from `gemm.stream_k`'s schedule.

Tiles are dealt to work-groups whole; or each tile is cut into GlobalSplitU parts; or the last tiles are cut evenly over
a grid (stream-K). A work-group that computes only part of a tile leaves its sums in the workspace and raises a flag.
"""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.kernels.gemm.stream_k import iterations_of, streamed_tiles
from tunesmith.problems.gemm import Gemm
from tunesmith.records import ZEROED_HEAD, Configuration

from .clusters import clusters_at_once, filling_parts
from .shape import SUM_BYTES, WgmmaShape

FLAG_BYTES = 4
WORKSPACE_ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class WgmmaSchedule:
    """The schedule of `grid` work-groups, or of clusters of them.

    First come `alone` whole tiles of `iterations`. The iterations of all other tiles follow: each `stretch` of them is
    cut into `parts`, which makes `shares` in all. With whole tiles, the grid has as many work-groups as run at once;
    with shared tiles, where some wait for others, as many as do so if each fills a multiprocessor, or what stream-K's
    parameter says. `cluster` is how many work-groups a
    cluster has. If these have a part of K each (`is_joint`), there is a cluster for each tile or share, and `at_once`
    of them run at once.
    """

    grid: int
    iterations: int
    alone: int
    shares: int = 0
    stretch: int = 0
    parts: int = 1
    cluster: int = 1
    is_joint: bool = False
    at_once: int = 0  # 0: all

    @staticmethod
    def of(config: Configuration, shape: WgmmaShape, gemm: Gemm, compute_units: int) -> WgmmaSchedule:
        tiles, iterations = shape.tiles(gemm), iterations_of(gemm.k, shape.operand_type.depth)
        splits, cluster = config.integer("GlobalSplitU"), shape.sharers
        if shape.is_joint:
            return WgmmaSchedule._joint(shape, tiles, iterations, splits, compute_units)
        at_once = clusters_at_once(cluster, compute_units)
        if grid := config.integer("StreamKGrid") // cluster:
            streamed = streamed_tiles(tiles, grid, config.integer("StreamKFullTiles"))
            shares, stretch = (grid, streamed * iterations) if streamed else (0, 0)
            return WgmmaSchedule(grid, iterations, tiles - streamed, shares, stretch, grid, cluster)
        if splits > 1:
            shares = tiles * splits
            # Each turn has whole tiles, so that no work-group waits for one with a larger number.
            whole = max(at_once // splits * splits, 1)
            return WgmmaSchedule(min(shares, whole), iterations, 0, shares, iterations, splits, cluster)
        return WgmmaSchedule(min(tiles, at_once * shape.resident), iterations, tiles, cluster=cluster)

    @staticmethod
    def _joint(shape: WgmmaShape, tiles: int, iterations: int, splits: int, compute_units: int) -> WgmmaSchedule:
        clusters = tiles * splits
        parts = shape.cluster_parts or filling_parts(shape, clusters, iterations // splits, compute_units)
        # Where clusters wait for others, one work-group fills a multiprocessor for sure.
        resident = shape.resident if splits == 1 else 1
        at_once = min(clusters, clusters_at_once(parts, compute_units) * resident)
        alone, shares, stretch = (0, clusters, iterations) if splits > 1 else (tiles, 0, 0)
        return WgmmaSchedule(clusters, iterations, alone, shares, stretch, splits, parts, True, at_once)

    @property
    def split_iterations(self) -> int:
        return self.stretch * (self.shares // self.parts)

    @property
    def busiest(self) -> int:
        """Iterations of the work-group with most."""
        longest = -(-self.stretch // self.parts) if self.shares else 0
        whole, share = -(-self.iterations // self.cluster_parts), -(-longest // self.cluster_parts)
        return self.turns * whole + self.share_turns * share

    @property
    def cluster_parts(self) -> int:
        """Parts of K that a cluster computes of its tile or share."""
        return self.cluster if self.is_joint else 1

    @property
    def running(self) -> int:
        """Work-groups, or clusters of them, that run at once."""
        return self.at_once or self.grid

    @property
    def turns(self) -> int:
        """Whole tiles of the work-group with most, one after the other, or of the place where it runs."""
        return -(-self.alone // self.running)

    @property
    def share_turns(self) -> int:
        """The same of shares."""
        return -(-self.shares // self.running)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The workspace: for each share and each work-group of a cluster, a flag for each warp group and the sums of a
    macro tile, or of the work-group's slice of it.

    All flags come before the sums. They are 0 before a launch and after it.
    """

    flag_bytes: int
    sum_bytes: int

    @staticmethod
    def of(schedule: WgmmaSchedule, shape: WgmmaShape) -> Workspace:
        slots, columns = schedule.shares * schedule.cluster, shape.slice(shape.least_parts)
        return Workspace(slots * shape.warp_groups * FLAG_BYTES, slots * shape.rows * columns * SUM_BYTES)

    @property
    def sums_at(self) -> int:
        aligned = -(-self.flag_bytes // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
        return max(aligned, ZEROED_HEAD) if self.flag_bytes else 0

    @property
    def size(self) -> int:
        return self.sums_at + self.sum_bytes
