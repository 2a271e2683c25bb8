"""What a launch costs, as a sum of counts times costs: the model that is calibrated, and the scan over all choices.

    t = start + L (iteration + busy min(1, g / P) + wave (ceil(g / P) - 1)) + tile (T - 1)
        + partial [p > 1] + peer (p - 1) + misaligned W + apart L U [several turns of split-K]

for g work-groups on P multiprocessors. L are the iterations of the work-group that has most, T the tiles it begins, p
the most work-groups that meet in one tile, in split-K in each turn again. Start, iteration, partial and peer are the
terms of Osama and others (arXiv 2301.03598) and of Tensile's grid model; busy says that work-groups share the memory's
bandwidth, wave that they share a multiprocessor, tile that a loop over tiles has a beginning and an end.

Misaligned are W of the L iterations: those that wait for memory, since work-groups at different places of K find
nothing of each other's in the cache (`_stream_k_cache.py`). Parts of K lose step over several turns, how much
depends on the kernel; U is what is fetched again where everyone is at a place of its own, in parts of what all can ask
for.

Batch counts as tiles.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels.gemm.stream_k import StreamKSchedule, ceil_div

from .cache import Floats, MemoryDemand
from .records import Room, StreamKChoice, Work

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
"""Relative: a difference as small is none."""
AS_GOOD = 0.01
"""Relative: grids are as good where they are expected to differ by less. On an H200 (2026-11-22) it paid to take the
largest of them, in the mean of each of six lists of products."""
SPLITS = (2, 3, 4, 6, 8, 12, 16)
"""Parts of K that split-K may have, where the kernel can."""
IN_STEP = 1 / 4
"""In several turns of split-K, of the work-groups at the same part of K those that are together still, or about. What
fits 480 products on an H200 (2026-11-22)."""

Timed = tuple[StreamKChoice, float]
"""What is expected of a choice, in seconds."""
_seconds = itemgetter(1)

Stretch = tuple[int, int, int]
"""Iterations of a work-group one after the other, the work-groups that are busy at the time, and how many of these are
at the same place of K."""


def counts(work: Work, choice: StreamKChoice, room: Room) -> Floats:
    """What each of COSTS is multiplied by, for one choice."""
    schedule = StreamKSchedule(work.tiles, work.iterations, choice.grid, choice.streamed, choice.splits)
    share = schedule.per_group + (schedule.extra > 0)
    peers, aligned = (choice.splits, True) if choice.splits > 1 else _peers(schedule)
    dealt = ceil_div(schedule.alone * choice.splits, choice.grid)
    # The same work-groups collect in every turn of split-K.
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
    """Of the iterations of the stretches, those that wait for memory."""
    if memory.keeps_up:
        return 0.0
    return sum(iterations * memory.waiting(busy, together) for iterations, busy, together in stretches)


def _stretches(work: Work, schedule: StreamKSchedule) -> Iterator[Stretch]:
    """Of the work-group that has most: parts of tiles, or first whole tiles and then shares."""
    grid, long, alone, streamed = schedule.grid, work.iterations, schedule.alone, schedule.streamed
    if schedule.splits > 1:
        yield _turns(work, schedule.splits, grid)
    elif alone:
        yield ceil_div(alone, grid) * long, min(alone, grid), min(alone, grid)
    if streamed:
        busy = min(streamed * long, grid)
        yield schedule.per_group + (schedule.extra > 0), busy, max(1, busy // (_even_parts(schedule) or grid))


def _turns(work: Work, parts: int, grid: int) -> Stretch:
    """The stretch of split-K: in one turn all work-groups at the same part of K are together, in several fewer."""
    busy = min(work.tiles * parts, grid)
    turns = ceil_div(work.tiles * parts, grid)
    return turns * ceil_div(work.iterations, parts), busy, max(1, int(busy // parts * (1 if turns == 1 else IN_STEP)))


def _even_parts(schedule: StreamKSchedule) -> int:
    """How many shares make a tile, and so at how many places of K work-groups are with tiles side by side; 1 if shares
    are whole tiles, 0 if they end anywhere."""
    per, long = schedule.per_group, schedule.iterations
    even = schedule.extra == 0 and per and (per % long == 0 or long % per == 0)
    return max(1, long // per) if even else 0


def _peers(schedule: StreamKSchedule) -> tuple[int, bool]:
    """The most work-groups that meet in a streamed tile (at most one too many), and whether shares are aligned: each
    is as long as all others, and a whole number of tiles or of equal parts of one."""
    per, long = schedule.per_group, schedule.iterations
    if not schedule.streamed:
        return 1, True
    if per == 0:  # a work-group an iteration, and some without
        return long, True
    if parts := _even_parts(schedule):
        return parts, True
    # Most meet where shares are shortest, at the end. Between the first and the last are as many of `per` as fit; where
    # there are not so many of `per`, longer ones are before them, and fewer fit.
    between = min((long - 2) // per, (long - 2 + schedule.grid - schedule.extra) // (per + 1))
    return min(between + 2, schedule.grid), False


class Dealt(NamedTuple):
    """What `StreamKSchedule` and `_peers` say of whole tiles in waves and the remainder split, for many grids at once.

    Turns are waves with the last one, which may not be full. The remainder is in tiles, `beyond` is the same in
    iterations, of which one work-group has a `share` at most. So many work-groups have `met` in one of its tiles.
    Shares are `even` if all are equal parts of tiles.
    """

    turns: Floats
    waves: Floats
    remainder: Floats
    beyond: Floats
    share: Floats
    met: Floats
    even: NDArray[np.bool_]

    @staticmethod
    def of(work: Work, grid: Floats) -> Dealt:
        # Numbers are whole and below 2^53, so that quotients of doubles round down as those of integers do.
        tiles, long = float(work.tiles), float(work.iterations)
        turns = tiles / grid
        waves = np.floor(turns)
        remainder = tiles - waves * grid
        beyond = remainder * long
        share = beyond / grid
        per, share = np.floor(share), np.ceil(share)
        at_least = np.maximum(per, 1.0)
        parts = long / at_least
        even = (share == per) & (np.floor(parts) * per == long)
        between = np.floor(np.minimum((long - 2) / at_least, (long - 2 - beyond) / (per + 1.0) + grid))
        met = np.where(even, parts, np.minimum(between + 2.0, grid))
        return Dealt(np.ceil(turns), waves, remainder, beyond, share, met, even)


class Scan:
    """The model over every grid that fits, all at once, and over split-K with as many parts as `parts` has. Made for a
    device and costs; the arrays that depend on them alone are kept."""

    def __init__(self, costs: Floats, room: Room, parts: Sequence[int] = SPLITS) -> None:
        self.costs, self.room, self._parts = costs, room, tuple(parts)
        grid = np.arange(1.0, room.groups + 1)
        busy = np.minimum(1.0, grid / room.multiprocessors)
        crowd = np.ceil(grid / room.multiprocessors) - 1
        self._grid, self._busy = grid, busy
        self._iteration = costs[ITERATION] + costs[BUSY] * busy + costs[WAVE] * crowd
        self._costs: tuple[float, ...] = tuple(costs.tolist())
        self._iterations: tuple[float, ...] = tuple(self._iteration.tolist())

    def seconds(self, work: Work, choice: StreamKChoice) -> float:
        return float(counts(work, choice, self.room) @ self.costs)

    def table(self, work: Work) -> Floats:
        """Expected seconds: a column for each grid, 1 work-group first; rows for none, the remainder, and that with
        one full wave streamed. Infinite are the last where there is no wave, and all but the first where there is no
        remainder.

        What is beyond whole waves gives every work-group as many iterations more whatever the number of full waves;
        with one at least, shares are longer than tiles, so that two at most meet in a tile.
        """
        start, _, _, _, tile, partial, peer, _, _ = self._costs
        grid, long, dealt, memory = (
            self._grid,
            work.iterations,
            Dealt.of(work, self._grid),
            MemoryDemand.of(work, self.room),
        )
        whole = self._iteration * long + tile
        # A share of more than one iteration ends in the tile after the one it begins in, unless shares are even.
        another = dealt.beyond > grid
        shares = dealt.waves * whole + dealt.share * self._iteration + tile * another
        shares[dealt.waves == dealt.turns] = np.inf
        fixed = start + partial * (long > 1)
        seconds: Floats = np.empty((3, len(grid)))
        seconds[0] = dealt.turns * whole + (start - tile)
        seconds[1] = shares - tile * (another & dealt.even) + (peer * dealt.met + (fixed - peer))
        seconds[2] = shares + (fixed + peer * (long > 1))
        seconds[2, work.tiles :] = np.inf
        if not memory.keeps_up:
            self._add_waiting(seconds, work, dealt, memory)
        return seconds

    def _add_waiting(self, seconds: Floats, work: Work, dealt: Dealt, memory: MemoryDemand) -> None:
        """Adds to a table what waiting for memory costs: `_stretches` of all grids."""
        tiles, long, misaligned, units = work.tiles, work.iterations, self._costs[MISALIGNED], memory.units
        shared = memory.cost_alone(misaligned, np.minimum(dealt.beyond / units, self._busy))
        for index in dealt.even.nonzero()[0].tolist():
            shared[index] = misaligned * memory.waiting(index + 1, int(dealt.remainder[index]))
        none, remainder, with_wave = seconds
        remainder += dealt.share * shared
        # Shares are longer than tiles with a wave beside them, and never even.
        with_wave += (dealt.share + long) * memory.cost_alone(misaligned, self._busy)
        if not memory.keeps_up_in_step(tiles):
            busy, together = np.minimum(tiles / units, self._busy), np.minimum(tiles, self._grid)
            whole = memory.cost_in_step(misaligned * long, busy, together)
            none += dealt.turns * whole
            remainder += dealt.waves * whole
            with_wave += (dealt.waves - 1) * whole

    def splits(self, work: Work, below: float = math.inf) -> list[Timed]:
        """Expected seconds of split-K for each number of parts that K has iterations for and that may take less than
        `below`."""
        timed = [(self._split(work, parts), parts) for parts in self._parts if parts <= work.iterations]
        timed = [one for one in timed if one[0] < below]
        if not timed:
            return []
        memory = MemoryDemand.of(work, self.room)
        return [
            (StreamKChoice.split_k(work, self.room, parts), seconds + self._out_of_step(work, parts, memory))
            for seconds, parts in timed
        ]

    def _out_of_step(self, work: Work, parts: int, memory: MemoryDemand) -> float:
        """Seconds that split-K waits for memory, and loses in several turns."""
        stretch = _turns(work, parts, self.room.groups)
        seconds = self._costs[MISALIGNED] * _waits(memory, [stretch])
        if work.tiles * parts > self.room.groups:
            seconds += self._costs[APART] * stretch[0] * memory.again
        return seconds

    def _split(self, work: Work, parts: int) -> float:
        """Where nobody waits for memory."""
        units, groups = work.tiles * parts, self.room.groups
        grid = units if units < groups else groups
        dealt = -(-units // grid)
        start, _, _, _, tile, partial, peer, _, _ = self._costs
        longest = -(-work.iterations // parts)
        collecting = partial + peer * (parts - 1)
        return start - tile + dealt * (longest * self._iterations[grid - 1] + tile + collecting)

    def candidates(self, work: Work) -> list[Timed]:
        """Whole tiles as they are launched; then the remainder streamed, and that with a wave, if there is such a
        thing, each on the largest of the grids that are as good."""
        table, whole = self.table(work), StreamKChoice.whole_tiles(work, self.room)
        found = [(whole, float(table[0, whole.grid - 1]))]
        for row in (1, 2):
            seconds = table[row]
            least = float(seconds.min())
            if least < math.inf:
                column = int((seconds <= least * (1 + AS_GOOD)).nonzero()[0][-1])
                found.append((row_on(work, column + 1, row), float(seconds[column])))
        return found

    def best(self, work: Work) -> Timed:
        """The fastest candidate; of equals whole tiles, then the fewest split ones, then split-K."""
        best, *others = self.candidates(work)
        for other in others:
            if _seconds(other) < _seconds(best) * (1 - ROUNDING):
                best = other
        below = _seconds(best) * (1 - ROUNDING)
        fastest = min(self.splits(work, below) if work.tiles else (), key=_seconds, default=best)
        return fastest if _seconds(fastest) < below else best

    def best_on(self, work: Work, grid: int | None, full_tiles: int | None) -> Timed:
        """The fastest with this grid, or this number of full waves beside the remainder, or both: an override launches
        just that, also whole tiles on fewer work-groups."""
        grids = range(1, self.room.groups + 1) if grid is None else (grid,)
        choices = (choice for one in grids for choice in choices_on(work, one, full_tiles))
        return min(((choice, self.seconds(work, choice)) for choice in choices), key=_seconds)


def row_on(work: Work, grid: int, row: int) -> StreamKChoice:
    """What a row of a table means in the column of a grid."""
    return StreamKChoice(grid, min(work.tiles % grid + (row - 1) * grid, work.tiles) if row else 0)


def choices_on(work: Work, grid: int, full_tiles: int | None) -> list[StreamKChoice]:
    """None, the remainder, or that and one full wave on this grid; or what `full_tiles` says."""
    rows = range(3) if full_tiles is None else (full_tiles + 1,)
    return list(dict.fromkeys(row_on(work, grid, row) for row in rows))
