"""Who computes what: the numbers that `source/schedule.cu` walks by, from `gemm.stream_k`'s schedule.

Three ways to deal tiles to work-groups: whole; each cut into GlobalSplitU parts; or the last ones cut evenly over a
grid, as stream-K has it. Who computes part of a tile only, leaves its sums in the workspace and raises a flag.
"""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.kernels.gemm.stream_k import iterations_of, streamed_tiles
from tunesmith.problems.gemm import Gemm
from tunesmith.records import ZEROED_HEAD, Configuration

from .shape import WgmmaShape

FLAG_BYTES, SUM_BYTES = 4, 4
WORKSPACE_ALIGNMENT = 256


@dataclass(frozen=True, slots=True)
class WgmmaSchedule:
    """On `grid` work-groups (or clusters of them), which are as many as run at once where tiles are whole, and one for
    each multiprocessor where some wait for others: `alone` whole tiles of `iterations`; then, of the iterations of all
    others, each `stretch` is cut into `parts`, which makes `shares` in all."""

    grid: int
    iterations: int
    alone: int
    shares: int = 0
    stretch: int = 0
    parts: int = 1

    @staticmethod
    def of(config: Configuration, shape: WgmmaShape, gemm: Gemm, compute_units: int) -> WgmmaSchedule:
        tiles, iterations = shape.tiles(gemm), iterations_of(gemm.k, shape.kind.depth)
        splits, grid = config.integer("GlobalSplitU"), config.integer("StreamKGrid") // shape.cluster
        resident = compute_units // shape.cluster
        if grid:
            streamed = streamed_tiles(tiles, grid, config.integer("StreamKFullTiles"))
            return WgmmaSchedule(
                grid, iterations, tiles - streamed, grid if streamed else 0, streamed * iterations, grid
            )
        if splits > 1:
            shares = tiles * splits
            # Each turn is of whole tiles, so that nobody waits for a work-group with a larger number.
            whole = max(resident // splits * splits, 1)
            return WgmmaSchedule(min(shares, whole), iterations, 0, shares, iterations, splits)
        return WgmmaSchedule(min(tiles, resident * shape.beside), iterations, tiles)

    @property
    def split_iterations(self) -> int:
        return self.stretch * (self.shares // self.parts)

    @property
    def busiest(self) -> int:
        """Iterations of the work-group that has most."""
        longest = -(-self.stretch // self.parts) if self.shares else 0
        return -(-self.alone // self.grid) * self.iterations + -(-self.shares // self.grid) * longest


@dataclass(frozen=True, slots=True)
class Workspace:
    """For each share a flag of each warp group, and behind the flags a macro tile of sums; of each work-group of a
    cluster. Flags are down before a launch and after it."""

    flag_bytes: int
    sum_bytes: int

    @staticmethod
    def of(schedule: WgmmaSchedule, shape: WgmmaShape) -> Workspace:
        places = schedule.shares * shape.cluster
        return Workspace(places * shape.warp_groups * FLAG_BYTES, places * shape.rows * shape.columns * SUM_BYTES)

    @property
    def sums_at(self) -> int:
        aligned = -(-self.flag_bytes // WORKSPACE_ALIGNMENT) * WORKSPACE_ALIGNMENT
        return max(aligned, ZEROED_HEAD) if self.flag_bytes else 0

    @property
    def size(self) -> int:
        return self.sums_at + self.sum_bytes
