"""The calibrated model: the time of a launch as a sum of counts times costs, and the search for the best choice.

`counts` gives the counts of one choice, `Scan.best` the fastest choice for a product.

    t = start + L (iteration + busy min(1, g / P) + wave (ceil(g / P) - 1)) + tile (T - 1)
        + partial [p > 1] + peer (p - 1) + misaligned W + apart L U [several turns of split-K]

for g work-groups on P multiprocessors. L is the number of iterations of the work-group that has most, T the number of
tiles that it begins, p the largest number of work-groups that meet in one tile; in split-K they meet again in each
turn. The costs start, iteration, partial and peer are the terms of Osama and others (arXiv 2301.03598) and of Tensile's
grid model. Busy is there because work-groups share the memory bandwidth, wave because they share a multiprocessor, tile
because each tile of a work-group's loop has a prologue and an epilogue.

W of the L iterations wait for memory, because work-groups at different positions of K cannot use what others fetched
into the cache (`memory_demand.py`). Over several turns, the parts of split-K get out of step; how much that costs
depends on the kernel. U is the memory demand of pieces fetched again, if each work-group is at its own position of K,
as a share of what all multiprocessors can request.

The tiles of all matrices of a batch count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels.gemm.stream_k import StreamKSchedule, ceil_div

from .memory_demand import Floats, MemoryDemand
from .records import DeviceCapacity, StreamKChoice, TiledProduct

COSTS = {
    "start": "launch, cold caches, the writing of one tile",
    "iteration": "one iteration of a tile by a work-group that has the device to itself",
    "busy": "what an iteration costs more when every multiprocessor has a work-group",
    "wave": "what an iteration costs more for each further work-group on the same multiprocessor",
    "tile": "each further tile that a work-group begins",
    "partial": "sums over part of a tile have to be written, and read again",
    "peer": "each further work-group whose sums make a tile",
    "misaligned": "an iteration that waits for memory: most do where everyone is at another place of K",
    "apart": "what an iteration of split-K costs more in several turns, with operands beyond the cache",
}
"""The terms of the model, in seconds."""

START, ITERATION, BUSY, WAVE, TILE, PARTIAL, PEER, MISALIGNED, APART = range(len(COSTS))

ROUNDING = 1e-9
"""Relative: a smaller difference counts as none."""
AS_GOOD = 0.01
"""Relative: grids whose expected times differ by less count as equally good. On an H200 (2026-11-22), taking the
largest of them paid in the mean of each of six lists of products."""
SPLITS = (2, 3, 4, 6, 8, 12, 16)
"""The numbers of parts of K that split-K may have, if the kernel supports split-K."""
IN_STEP = 1 / 4
"""The share of work-groups at the same part of K that are still together in several turns of split-K. Fitted to 480
products on an H200 (2026-11-22)."""

Timed = tuple[StreamKChoice, float]
"""A choice and its expected seconds."""
_seconds = itemgetter(1)

Stretch = tuple[int, int, int]
"""Consecutive iterations of a work-group, the number of work-groups that are busy meanwhile, and how many of these are
at the same position of K."""


def counts(work: TiledProduct, choice: StreamKChoice, room: DeviceCapacity) -> Floats:
    """The factor of each of COSTS for one choice."""
    schedule = StreamKSchedule(work.tiles, work.iterations, choice.grid, choice.streamed, choice.splits)
    share = schedule.per_group + (schedule.extra > 0)
    peers, aligned = (choice.splits, True) if choice.splits > 1 else _peers(schedule)
    dealt = ceil_div(schedule.alone * choice.splits, choice.grid)
    # In every turn of split-K, the same work-groups collect partial sums.
    collected = dealt if choice.splits > 1 else 1
    begun = dealt + (ceil_div(share, work.iterations) if aligned else ceil_div(share - 1, work.iterations) + 1)
    longest = schedule.busiest
    memory = MemoryDemand.of(work, room)
    return np.array(
        (
            1.0,
            longest,
            longest * min(1.0, choice.grid / room.multiprocessors),
            longest * (ceil_div(choice.grid, room.multiprocessors) - 1),
            max(begun - 1, 0),
            collected * (peers > 1),
            collected * (peers - 1),
            _waits(memory, _stretches(work, schedule)),
            longest * memory.again if choice.splits > 1 and dealt > 1 else 0.0,
        ),
        np.float64,
    )


def _waits(memory: MemoryDemand, stretches: Iterable[Stretch]) -> float:
    """How many iterations of the stretches wait for memory."""
    if memory.keeps_up:
        return 0.0
    return sum(iterations * memory.waiting(busy, together) for iterations, busy, together in stretches)


def _stretches(work: TiledProduct, schedule: StreamKSchedule) -> Iterator[Stretch]:
    """The stretches of the work-group that has most: parts of tiles, or first whole tiles and then a share."""
    grid, alone, streamed = schedule.grid, schedule.alone, schedule.streamed
    if schedule.splits > 1:
        yield _turns(work, schedule.splits, grid)
    elif alone:
        yield ceil_div(alone, grid) * work.iterations, min(alone, grid), min(alone, grid)
    if streamed:
        busy = min(streamed * work.iterations, grid)
        yield schedule.per_group + (schedule.extra > 0), busy, max(1, busy // (_even_parts(schedule) or grid))


def _turns(work: TiledProduct, parts: int, grid: int) -> Stretch:
    """The stretch of split-K. In a single turn, all work-groups at the same part of K are together; in several turns
    fewer are."""
    busy = min(work.tiles * parts, grid)
    turns = ceil_div(work.tiles * parts, grid)
    return turns * ceil_div(work.iterations, parts), busy, max(1, int(busy // parts * (1 if turns == 1 else IN_STEP)))


def _even_parts(schedule: StreamKSchedule) -> int:
    """How many shares make a tile, if all are equal; then work-groups are at that many positions of K. 1 if shares are
    whole tiles, 0 if shares end anywhere."""
    share, tile = schedule.per_group, schedule.iterations
    even = schedule.extra == 0 and share and (share % tile == 0 or tile % share == 0)
    return max(1, tile // share) if even else 0


def _peers(schedule: StreamKSchedule) -> tuple[int, bool]:
    """The largest number of work-groups that meet in a streamed tile (at most one too many), and whether shares are
    aligned: all of equal length, which is a whole number of tiles or an equal part of one."""
    share, tile = schedule.per_group, schedule.iterations
    if not schedule.streamed:
        return 1, True
    if share == 0:  # one iteration for some work-groups, none for the others
        return tile, True
    if parts := _even_parts(schedule):
        return parts, True
    # Most meet at the end, where shares are shortest. Between the first and the last share of a tile lie as many
    # shares as fit; if there are too few of the shorter ones, longer ones precede them, and fewer fit.
    between = min((tile - 2) // share, (tile - 2 + schedule.grid - schedule.extra) // (share + 1))
    return min(between + 2, schedule.grid), False


class Dealt(NamedTuple):
    """The schedules with whole tiles in waves and the remainder split, for many grids at once.

    The same numbers as `StreamKSchedule` and `_peers` give for one grid. `waves` are the full waves; `turns` also count
    a last wave that is not full. The remainder has `remainder` tiles, which are `beyond` iterations; a work-group has
    at most `share` of these. At most `met` work-groups meet in a tile of the remainder. Shares are `even` if all are
    equal parts of tiles.
    """

    turns: Floats
    waves: Floats
    remainder: Floats
    beyond: Floats
    share: Floats
    met: Floats
    even: NDArray[np.bool_]

    @staticmethod
    def of(work: TiledProduct, grid: Floats) -> Dealt:
        # Numbers are whole and below 2^53, so that quotients of doubles round down as those of integers do.
        tiles, iterations = float(work.tiles), float(work.iterations)
        turns = tiles / grid
        waves = np.floor(turns)
        remainder = tiles - waves * grid
        beyond = remainder * iterations
        share = beyond / grid
        shorter, share = np.floor(share), np.ceil(share)
        divisor = np.maximum(shorter, 1.0)
        parts = iterations / divisor
        even = (share == shorter) & (np.floor(parts) * shorter == iterations)
        between = np.floor(np.minimum((iterations - 2) / divisor, (iterations - 2 - beyond) / (shorter + 1.0) + grid))
        met = np.where(even, parts, np.minimum(between + 2.0, grid))
        return Dealt(np.ceil(turns), waves, remainder, beyond, share, met, even)


class Scan:
    """The model's times over all grids that fit, computed at once, and over split-K with each number in `parts`.

    One object serves one device and one set of costs; the arrays that depend only on these are computed once.
    """

    def __init__(self, costs: Floats, room: DeviceCapacity, parts: Sequence[int] = SPLITS) -> None:
        self.costs, self.room, self._parts = costs, room, tuple(parts)
        grid = np.arange(1.0, room.groups + 1)
        busy = np.minimum(1.0, grid / room.multiprocessors)
        crowd = np.ceil(grid / room.multiprocessors) - 1
        self._grid, self._busy = grid, busy
        self._iteration = costs[ITERATION] + costs[BUSY] * busy + costs[WAVE] * crowd
        self._costs: tuple[float, ...] = tuple(costs.tolist())
        self._iterations: tuple[float, ...] = tuple(self._iteration.tolist())

    def seconds(self, work: TiledProduct, choice: StreamKChoice) -> float:
        return float(counts(work, choice, self.room) @ self.costs)

    def table(self, work: TiledProduct) -> Floats:
        """Expected seconds: a column for each grid, from 1 work-group on, and three rows.

        Row 0: no tile is streamed. Row 1: the remainder is; infinite if there is none. Row 2: the remainder and one
        full wave are; infinite if either is missing.

        The remainder adds the same number of iterations to every work-group, however many full waves are streamed with
        it. With at least one full wave, shares are longer than tiles, so that at most two shares meet in a tile.
        """
        start, _, _, _, tile, partial, peer, _, _ = self._costs
        grid, iterations = self._grid, work.iterations
        dealt, memory = Dealt.of(work, grid), MemoryDemand.of(work, self.room)
        whole = self._iteration * iterations + tile
        # A share of more than one iteration ends in the tile after the one in which it begins, unless shares are even.
        second_tile = dealt.beyond > grid
        shares = dealt.waves * whole + dealt.share * self._iteration + tile * second_tile
        shares[dealt.waves == dealt.turns] = np.inf
        fixed = start + partial * (iterations > 1)
        seconds: Floats = np.empty((3, len(grid)))
        seconds[0] = dealt.turns * whole + (start - tile)
        seconds[1] = shares - tile * (second_tile & dealt.even) + (peer * dealt.met + (fixed - peer))
        seconds[2] = shares + (fixed + peer * (iterations > 1))
        seconds[2, work.tiles :] = np.inf
        if not memory.keeps_up:
            self._add_waiting(seconds, work, dealt, memory)
        return seconds

    def _add_waiting(self, seconds: Floats, work: TiledProduct, dealt: Dealt, memory: MemoryDemand) -> None:
        """Adds the cost of waiting for memory to a table: `_stretches` for all grids at once."""
        tiles, iterations, misaligned, units = work.tiles, work.iterations, self._costs[MISALIGNED], memory.units
        shared = memory.cost_alone(misaligned, np.minimum(dealt.beyond / units, self._busy))
        for index in dealt.even.nonzero()[0].tolist():
            shared[index] = misaligned * memory.waiting(index + 1, int(dealt.remainder[index]))
        none, remainder, with_wave = seconds
        remainder += dealt.share * shared
        # With a full wave, shares are longer than tiles and never even.
        with_wave += (dealt.share + iterations) * memory.cost_alone(misaligned, self._busy)
        if not memory.keeps_up_in_step(tiles):
            busy, together = np.minimum(tiles / units, self._busy), np.minimum(tiles, self._grid)
            whole = memory.cost_in_step(misaligned * iterations, busy, together)
            none += dealt.turns * whole
            remainder += dealt.waves * whole
            with_wave += (dealt.waves - 1) * whole

    def splits(self, work: TiledProduct, below: float = math.inf) -> list[Timed]:
        """Split-K with its expected seconds, for each number of parts up to the iterations of K. Numbers of parts that
        cannot take less than `below` are left out."""
        timed = [(self._split(work, parts), parts) for parts in self._parts if parts <= work.iterations]
        timed = [(seconds, parts) for seconds, parts in timed if seconds < below]
        if not timed:
            return []
        memory = MemoryDemand.of(work, self.room)
        return [
            (StreamKChoice.split_k(work, self.room, parts), seconds + self._out_of_step(work, parts, memory))
            for seconds, parts in timed
        ]

    def _out_of_step(self, work: TiledProduct, parts: int, memory: MemoryDemand) -> float:
        """Seconds that split-K waits for memory, and what several turns cost besides."""
        stretch = _turns(work, parts, self.room.groups)
        seconds = self._costs[MISALIGNED] * _waits(memory, [stretch])
        if work.tiles * parts > self.room.groups:
            seconds += self._costs[APART] * stretch[0] * memory.again
        return seconds

    def _split(self, work: TiledProduct, parts: int) -> float:
        """Expected seconds of split-K if no work-group waits for memory."""
        units, groups = work.tiles * parts, self.room.groups
        grid = units if units < groups else groups
        dealt = -(-units // grid)
        start, _, _, _, tile, partial, peer, _, _ = self._costs
        longest = -(-work.iterations // parts)
        collecting = partial + peer * (parts - 1)
        return start - tile + dealt * (longest * self._iterations[grid - 1] + tile + collecting)

    def candidates(self, work: TiledProduct) -> list[Timed]:
        """The best choice of each kind without split-K: whole tiles; the remainder streamed; the remainder and one full
        wave streamed. The latter two, if they exist, are on the largest of the equally good grids."""
        table, whole = self.table(work), StreamKChoice.whole_tiles(work, self.room)
        candidates = [(whole, float(table[0, whole.grid - 1]))]
        for row in (1, 2):
            seconds = table[row]
            least = float(seconds.min())
            if least < math.inf:
                column = int((seconds <= least * (1 + AS_GOOD)).nonzero()[0][-1])
                candidates.append((row_on(work, column + 1, row), float(seconds[column])))
        return candidates

    def best(self, work: TiledProduct) -> Timed:
        """The fastest choice; among equals whole tiles, then the fewest streamed tiles, then split-K."""
        best, *others = self.candidates(work)
        for other in others:
            if _seconds(other) < _seconds(best) * (1 - ROUNDING):
                best = other
        below = _seconds(best) * (1 - ROUNDING)
        fastest = min(self.splits(work, below) if work.tiles else (), key=_seconds, default=best)
        return fastest if _seconds(fastest) < below else best

    def best_on(self, work: TiledProduct, grid: int | None, full_tiles: int | None) -> Timed:
        """The fastest choice with this grid, or with this number of full waves beside the remainder, or with both, as
        an override requires. Whole tiles may then be on fewer work-groups than usual."""
        grids = range(1, self.room.groups + 1) if grid is None else (grid,)
        choices = (choice for work_groups in grids for choice in choices_on_grid(work, work_groups, full_tiles))
        return min(((choice, self.seconds(work, choice)) for choice in choices), key=_seconds)


def row_on(work: TiledProduct, grid: int, row: int) -> StreamKChoice:
    """The choice that a cell of `Scan.table` is about."""
    return StreamKChoice(grid, min(work.tiles % grid + (row - 1) * grid, work.tiles) if row else 0)


def choices_on_grid(work: TiledProduct, grid: int, full_tiles: int | None) -> list[StreamKChoice]:
    """The choices on this grid: no tile streamed, the remainder, the remainder and one full wave; with `full_tiles`,
    only the remainder and so many full waves."""
    rows = range(3) if full_tiles is None else (full_tiles + 1,)
    return list(dict.fromkeys(row_on(work, grid, row) for row in rows))
