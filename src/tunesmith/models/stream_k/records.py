"""What a stream-K prediction is about, and what it says: frozen records of whole numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from tunesmith.kernels.gemm.stream_k import StreamKSchedule, ceil_div, iterations_of
from tunesmith.records import Configuration

NONE_SPLIT = -1
"""What StreamKFullTiles is where not even the tiles beyond whole waves are split."""


class SharingMode(StrEnum):
    """How work-groups share the tiles."""

    DATA_PARALLEL = "data-parallel"
    STREAM_K = "stream-k"
    SPLIT_K = "split-k"


def squarest(tiles: int) -> int:
    """The side of so many tiles as a rectangle, the shorter one, as square as it can be."""
    return next((side for side in range(math.isqrt(tiles), 1, -1) if tiles % side == 0), min(tiles, 1))


@dataclass(frozen=True, slots=True)
class Work:
    """A product in macro tiles: those of all `batch` matrices, `iterations` of `depth` steps along K each; `down` of
    them along M, or as square as their number can be. Work-groups walk over them in blocks as wide as `block`."""

    tiles: int
    iterations: int
    depth: int
    batch: int = 1
    down: int = 0
    block: int = 1

    def __post_init__(self) -> None:
        if not self.down:
            object.__setattr__(self, "down", squarest(self.tiles))

    @property
    def k(self) -> int:
        """K rounded up to whole iterations."""
        return self.iterations * self.depth


@dataclass(frozen=True, slots=True)
class MacroTile:
    """A macro tile: elements of D along M and N, and steps along K of an iteration. Of `block` tiles side by side along
    N work-groups take one after the other, before those below (WorkGroupMapping). With RowsAlong: M it is the other way
    round, which the models do not know."""

    m: int
    n: int
    depth: int
    block: int = field(default=1, compare=False)

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.depth}"

    def work(self, m: int, n: int, batch: int, k: int) -> Work:
        down = ceil_div(m, self.m)
        tiles = down * ceil_div(n, self.n) * batch
        return Work(tiles, iterations_of(k, self.depth), self.depth, batch, down, self.block)


@dataclass(frozen=True, slots=True)
class Room:
    """What runs at once: multiprocessors, and work-groups that each of them holds. `cached`: how many iterations of a
    tile's piece of A, and of its piece of B, the last-level cache holds; 0 where nobody knows."""

    multiprocessors: int
    occupancy: int = 1
    cached: tuple[int, int] = field(default=(0, 0), compare=False)

    @property
    def groups(self) -> int:
        return self.multiprocessors * self.occupancy


@dataclass(frozen=True, slots=True)
class StreamKChoice:
    """What a launch may do with a product: `grid` work-groups; the last `streamed` tiles split by iterations, or every
    tile into `splits` parts."""

    grid: int
    streamed: int = 0
    splits: int = 1

    @staticmethod
    def whole_tiles(work: Work, room: Room) -> StreamKChoice:
        """Data-parallel: a work-group for each tile, or as many as there is room for."""
        return StreamKChoice(max(1, min(work.tiles, room.groups)))

    @staticmethod
    def split_k(work: Work, room: Room, parts: int) -> StreamKChoice:
        """A work-group for each part, or as many as there is room for."""
        return StreamKChoice(min(work.tiles * parts, room.groups), splits=parts)

    @property
    def mode(self) -> SharingMode:
        if self.splits > 1:
            return SharingMode.SPLIT_K
        return SharingMode.STREAM_K if self.streamed else SharingMode.DATA_PARALLEL


@dataclass(frozen=True, slots=True)
class StreamKDecision:
    """How to launch one product, and why.

    `full_tiles` are whole waves of the grid among the `streamed` tiles, the remainder not counted. `seconds` is the
    expected time with its 95 % `interval`, where the `model` knows. `overridden` names the variables that decided
    instead of it.
    """

    work: Work
    choice: StreamKChoice
    model: str = ""
    seconds: float | None = None
    interval: tuple[float, float] | None = None
    overridden: tuple[str, ...] = ()

    @property
    def mode(self) -> SharingMode:
        return self.choice.mode

    @property
    def grid(self) -> int:
        return self.choice.grid

    @property
    def streamed(self) -> int:
        return self.choice.streamed

    @property
    def full_tiles(self) -> int:
        return max(0, self.streamed - self.work.tiles % self.grid) // self.grid

    @property
    def schedule(self) -> StreamKSchedule:
        """Who computes what; for a kernel to launch by."""
        return StreamKSchedule(self.work.tiles, self.work.iterations, self.grid, self.streamed, self.choice.splits)

    @property
    def parameters(self) -> Configuration:
        """The same as parameters of a GEMM family. Data-parallel is a work-group for each tile, except where somebody
        overrode the grid, and so wants just that one."""
        if self.overridden:
            return self.on_grid
        streams = self.mode is SharingMode.STREAM_K
        return _parameters(self.grid if streams else 0, self.full_tiles if streams else 0, self.choice.splits)

    @property
    def on_grid(self) -> Configuration:
        """The same with no work-group more than the grid has, also where no tile is split: whole tiles in waves."""
        return _parameters(self.grid, self.full_tiles if self.mode is SharingMode.STREAM_K else NONE_SPLIT, 1)


def _parameters(grid: int, full_tiles: int, splits: int) -> Configuration:
    return Configuration({"StreamKGrid": grid, "StreamKFullTiles": full_tiles, "GlobalSplitU": splits})
