"""A stream-K prediction's input (`TiledProduct`, `DeviceCapacity`) and result (`StreamKChoice`, `StreamKDecision`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from tunesmith.kernels.gemm.stream_k import StreamKSchedule, ceil_div, iterations_of
from tunesmith.records import Configuration

NONE_SPLIT = -1
"""The value of StreamKFullTiles with which no tile is split, not even those beyond whole waves."""


class SharingMode(StrEnum):
    """How work-groups share the tiles."""

    DATA_PARALLEL = "data-parallel"
    STREAM_K = "stream-k"
    SPLIT_K = "split-k"


def squarest(tiles: int) -> int:
    """The shorter side of the rectangle of so many tiles that is closest to a square."""
    return next((side for side in range(math.isqrt(tiles), 1, -1) if tiles % side == 0), min(tiles, 1))


@dataclass(frozen=True, slots=True)
class TiledProduct:
    """A product in macro tiles: `tiles` of all `batch` matrices, each with `iterations` of `depth` steps along K.

    `down` is the number of tiles along M; 0 means the most square arrangement. Work-groups walk over the tiles in
    blocks that are `block` tiles wide.
    """

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
    """A macro tile: elements of D along M and N, and steps along K in an iteration.

    Work-groups take `block` adjacent tiles along N before the tiles below them (WorkGroupMapping). With RowsAlong: M
    the order is the other way round; the models ignore that.
    """

    m: int
    n: int
    depth: int
    block: int = field(default=1, compare=False)

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.depth}"

    def work(self, m: int, n: int, batch: int, k: int) -> TiledProduct:
        down = ceil_div(m, self.m)
        tiles = down * ceil_div(n, self.n) * batch
        return TiledProduct(tiles, iterations_of(k, self.depth), self.depth, batch, down, self.block)


@dataclass(frozen=True, slots=True)
class DeviceCapacity:
    """What a device can run at once: multiprocessors, and work-groups on each of them (`occupancy`).

    `cached` is the size of the last-level cache, as the number of iterations for which it can hold a tile's pieces of
    A, and of B; 0 if unknown.
    """

    multiprocessors: int
    occupancy: int = 1
    cached: tuple[int, int] = field(default=(0, 0), compare=False)

    @property
    def groups(self) -> int:
        return self.multiprocessors * self.occupancy


@dataclass(frozen=True, slots=True)
class StreamKChoice:
    """A way to launch a product on `grid` work-groups: the last `streamed` tiles are split by iterations (stream-K), or
    every tile is cut into `splits` parts (split-K)."""

    grid: int
    streamed: int = 0
    splits: int = 1

    @staticmethod
    def whole_tiles(work: TiledProduct, room: DeviceCapacity) -> StreamKChoice:
        """Data-parallel: a work-group for each tile, or as many as run at once."""
        return StreamKChoice(max(1, min(work.tiles, room.groups)))

    @staticmethod
    def split_k(work: TiledProduct, room: DeviceCapacity, parts: int) -> StreamKChoice:
        """A work-group for each part of each tile, or as many as run at once."""
        return StreamKChoice(min(work.tiles * parts, room.groups), splits=parts)

    @property
    def mode(self) -> SharingMode:
        if self.splits > 1:
            return SharingMode.SPLIT_K
        return SharingMode.STREAM_K if self.streamed else SharingMode.DATA_PARALLEL


@dataclass(frozen=True, slots=True)
class StreamKDecision:
    """How to launch one product, and why.

    `full_tiles` is the number of whole waves among the `streamed` tiles, without the remainder. `seconds` is the
    expected time with its 95 % `interval`; both are None if the `model` cannot predict times. `overridden` names the
    environment variables that decided instead of the model.
    """

    work: TiledProduct
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
        """Which work-group computes which iterations of which tile."""
        return StreamKSchedule(self.work.tiles, self.work.iterations, self.grid, self.streamed, self.choice.splits)

    @property
    def parameters(self) -> Configuration:
        """The decision as parameters of a GEMM family. Data-parallel means a work-group for each tile, unless an
        environment variable set the grid; then exactly that grid is launched."""
        if self.overridden:
            return self.on_grid
        streams = self.mode is SharingMode.STREAM_K
        return _parameters(self.grid if streams else 0, self.full_tiles if streams else 0, self.choice.splits)

    @property
    def on_grid(self) -> Configuration:
        """The parameters for exactly `grid` work-groups. If no tile is split, they take whole tiles in waves."""
        return _parameters(self.grid, self.full_tiles if self.mode is SharingMode.STREAM_K else NONE_SPLIT, 1)


def _parameters(grid: int, full_tiles: int, splits: int) -> Configuration:
    return Configuration({"StreamKGrid": grid, "StreamKFullTiles": full_tiles, "GlobalSplitU": splits})
