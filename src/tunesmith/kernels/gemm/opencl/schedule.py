"""The numbers that follow from the parameters of a configuration; no source, no limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from tunesmith.kernels.gemm import stream_k
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, ProblemType

DEFAULT_LOOP_UNROLL = 8


@dataclass(frozen=True, slots=True)
class OpenCLSchedule:
    """The sizes of one work-group's work.

    `depth` is DepthU; `local_split` and `global_split` divide K; `mapping` is the width of a block of tile columns.
    With stream-K, `stream_grid` work-groups share the tiles; otherwise `stream_grid` is 0.
    """

    work_group: tuple[int, int]
    local_split: int
    thread_tile: tuple[int, int]
    vector: int
    depth: int
    loop_unroll: int
    global_split: int
    mapping: int
    stream_grid: int
    stream_full_tiles: int

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(config: Configuration) -> OpenCLSchedule:
        items0, items1, local_split = config.integers("WorkGroup")
        tile0, tile1 = config.integers("ThreadTile")
        # DepthU = LoopUnroll x LocalSplitU, so that either follows from the other. 0 means not given.
        depth, loop_unroll = config.integer("DepthU"), config.integer("LoopUnroll")
        loop_unroll = loop_unroll or (max(1, depth // local_split) if depth else DEFAULT_LOOP_UNROLL)
        return OpenCLSchedule(
            work_group=(items0, items1),
            local_split=local_split,
            thread_tile=(tile0, tile1),
            vector=config.integer("VectorWidth"),
            depth=depth or loop_unroll * local_split,
            loop_unroll=loop_unroll,
            global_split=config.integer("GlobalSplitU"),
            mapping=config.integer("WorkGroupMapping"),
            stream_grid=config.integer("StreamKGrid"),
            stream_full_tiles=config.integer("StreamKFullTiles"),
        )

    @property
    def macro_tile(self) -> tuple[int, int]:
        return (self.work_group[0] * self.thread_tile[0], self.work_group[1] * self.thread_tile[1])

    @property
    def work_items(self) -> int:
        return math.prod(self.work_group) * self.local_split

    @property
    def streams(self) -> bool:
        """Whether the program is stream-K's, which is the same for any grid."""
        return self.stream_grid > 0

    @property
    def sums(self) -> tuple[str, ...]:
        """The entry of the program that adds partial sums, if K is split."""
        if self.streams:
            return ("sum_of_shares",)
        return ("sum_of_splits",) if self.global_split > 1 else ()

    def stream(self, gemm: Gemm) -> stream_k.StreamKSchedule:
        """The schedule of stream-K over all matrices of the batch, if the program is stream-K's."""
        iterations = stream_k.iterations_of(gemm.k, self.depth)
        tiles = math.prod(self.tiles(gemm)) * gemm.batch
        return stream_k.StreamKSchedule.two_tile(tiles, iterations, self.stream_grid, self.stream_full_tiles)

    def tiles(self, gemm: Gemm) -> tuple[int, int]:
        """Macro tiles along M and N."""
        return (-(-gemm.m // self.macro_tile[0]), -(-gemm.n // self.macro_tile[1]))

    def depth_per_split(self, gemm: Gemm) -> int:
        """Steps along K for each of the `global_split` work-groups of a tile: whole iterations.

        The last work-group takes the rest, which is empty if K is short.
        """
        iterations = -(-gemm.k // self.depth)
        return -(-iterations // self.global_split) * self.depth


@dataclass(frozen=True, slots=True)
class TileLoads:
    """How the work-items of a group load one operand's tile.

    Each loads `per_item` vectors, of which `coalesced` lie along the operand's contiguous dimension and the others
    across it. With `along_tile`, the contiguous dimension is M (of A) or N (of B); otherwise it is K. `contiguous` and
    `across` are the tile's extents in elements.
    """

    operand: str
    along_tile: bool
    contiguous: int
    across: int
    vector: int
    coalesced: int
    work_items: int

    @staticmethod
    def of(operand: str, config: Configuration, problem_type: ProblemType) -> TileLoads:
        """The loads of `operand`, which is "A" or "B"."""
        schedule = OpenCLSchedule.of(config)
        extent = schedule.macro_tile["AB".index(operand)]
        along_tile = problem_type.fields.flag(f"Transpose{operand}") == (operand == "B")
        contiguous, across = (extent, schedule.depth) if along_tile else (schedule.depth, extent)
        coalesced = config.integer(f"NumLoadsCoalesced{operand}")
        return TileLoads(operand, along_tile, contiguous, across, schedule.vector, coalesced, schedule.work_items)

    @property
    def elements(self) -> int:
        return self.contiguous * self.across

    @property
    def per_item(self) -> int:
        return self.elements // (self.work_items * self.vector)

    @property
    def rows(self) -> int:
        """Loads of a work-item across the contiguous dimension."""
        return self.per_item // self.coalesced

    @property
    def span(self) -> int:
        """Elements along the contiguous dimension that all work-items read in one load."""
        return self.contiguous // self.coalesced

    @property
    def vectors(self) -> int:
        """Work-items side by side along the contiguous dimension."""
        return self.span // self.vector
