"""`TritonShape`: a typed configuration of the tiled family, and the numbers that follow from it for a problem."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tunesmith.kernels.gemm import stream_k
from tunesmith.kernels.gemm.parameters import GROUP_MAPPING, STREAM_FULL_TILES, STREAM_GRID
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration

from . import parameters as p

SUM_BYTES = 4
"""Bytes of a sum, which is a float32 or an int32."""


def along_k(gemm: Gemm) -> tuple[bool, bool]:
    """Whether K is the contiguous dimension: of A, and of B."""
    return gemm.transpose_a, not gemm.transpose_b


@dataclass(frozen=True, slots=True)
class TritonShape:
    """A tile of `m` x `n` elements of D and `depth` steps along K.

    The result is stored in `parts`; `read` and `write` are the elements of one load and of one store. K is cut into
    `splits`; 0 leaves that to `for_problem`.
    """

    schedule: str
    m: int
    n: int
    depth: int
    warps: int
    stages: int
    mapping: int
    parts: int
    swapped: bool
    loads_by_tma: bool
    stores_by_tma: bool
    read: int
    write: int
    specialized: bool
    flat: bool
    precision: str
    splits: int
    grid: int
    full_tiles: int

    @staticmethod
    def of(config: Configuration) -> TritonShape:
        m, n = config.integers(p.MACRO_TILE.name)
        schedule, splits = config.word(p.SCHEDULE.name), config.integer(p.SPLIT.name)
        return TritonShape(
            schedule=schedule,
            m=m,
            n=n,
            depth=config.integer(p.DEPTH.name) or p.DEFAULT_DEPTH,
            warps=config.integer(p.WARPS.name),
            stages=config.integer(p.WARP_STAGES.name),
            mapping=config.integer(GROUP_MAPPING.name),
            parts=config.integer(p.EPILOGUE_SUBTILE.name),
            swapped=config.flag(p.SWAP_OPERANDS.name),
            loads_by_tma=config.word(p.LOAD_PATH.name) == "TMA",
            stores_by_tma=config.word(p.STORE_PATH.name) == "TMA",
            read=config.integer(p.READ_WIDTH.name),
            write=config.integer(p.STORE_WIDTH.name),
            specialized=config.flag(p.SPECIALIZE.name),
            flat=config.flag(p.FLATTEN.name),
            precision=config.word(p.DOT_PRECISION.name),
            splits=0 if (schedule, splits) == (p.FILL_K, 1) else splits,
            grid=config.integer(STREAM_GRID.name),
            full_tiles=config.integer(STREAM_FULL_TILES.name),
        )

    def for_problem(self, gemm: Gemm, compute_units: int) -> TritonShape:
        """The shape with as many parts of K as fill the device, if they are left open. Each has an iteration."""
        if self.splits:
            return self
        parts = min(compute_units // max(1, self.tiles(gemm)), self.iterations(gemm))
        return replace(self, splits=max(1, parts))

    @property
    def streams(self) -> bool:
        return self.schedule == p.STREAM_K

    @property
    def splits_k(self) -> bool:
        return self.schedule in (p.SPLIT_K, p.FILL_K)

    @property
    def elements(self) -> int:
        """Elements of a macro tile."""
        return self.m * self.n

    def tiles(self, gemm: Gemm) -> int:
        """Macro tiles of all matrices of the batch."""
        return stream_k.ceil_div(gemm.m, self.m) * stream_k.ceil_div(gemm.n, self.n) * gemm.batch

    def iterations(self, gemm: Gemm) -> int:
        return stream_k.iterations_of(gemm.k, self.depth)

    def stage_bytes(self, element: int) -> int:
        """Shared memory for one tile of A and one of B."""
        return (self.m + self.n) * self.depth * element

    def streamed(self, gemm: Gemm) -> stream_k.StreamKSchedule:
        """The schedule of stream-K. Without a grid, each tile has its own work-group, and none is shared."""
        tiles, iterations = self.tiles(gemm), self.iterations(gemm)
        if self.grid < 1:
            return stream_k.StreamKSchedule(tiles, iterations, tiles)
        return stream_k.StreamKSchedule.two_tile(tiles, iterations, self.grid, self.full_tiles)

    def workspace(self, gemm: Gemm) -> int:
        """Bytes for sums over a part of K, and for the flags that say that a sum is complete."""
        if self.splits_k:
            return self.splits * gemm.batch * gemm.n * gemm.m * SUM_BYTES
        if self.streams:
            return self.flags_offset(gemm) + self.flag_bytes(gemm)
        return 0

    def flags_offset(self, gemm: Gemm) -> int:
        """Where the flags begin, behind one tile of sums for each work-group.

        One tile is enough: a work-group leaves at most one tile unfinished, the last tile of its share.
        """
        schedule = self.streamed(gemm)
        return schedule.grid * self.elements * SUM_BYTES if schedule.shared else 0

    def flag_bytes(self, gemm: Gemm) -> int:
        """Bytes of the flags; never 0, because the kernel has an argument for them."""
        return self.streamed(gemm).grid * SUM_BYTES
