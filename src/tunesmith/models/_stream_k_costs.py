"""What a launch costs, as a sum of counts times costs: the model that is calibrated, and the scan over all choices.

    t = start + L (iteration + busy min(1, g / P) + wave (ceil(g / P) - 1)) + tile (T - 1)
        + partial [p > 1] + peer (p - 1) + misaligned W

for g work-groups on P multiprocessors. L are the iterations of the work-group that has most, S those of them that are
streamed, T the tiles it begins, p the most work-groups that meet in one tile, in split-K in each turn again. Start,
iteration, partial and peer are the terms of Osama and others (arXiv 2301.03598) and of Tensile's grid model; busy says
that work-groups share the memory's bandwidth, wave that they share a multiprocessor, tile that a loop over tiles has a
beginning and an end.

Misaligned are W of the longest's iterations: those that wait for memory, since work-groups at different places of K
find nothing of each other's in the cache (`_stream_k_cache.py`).

Batch counts as tiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels.gemm.stream_k import Schedule, ceil_div

from ._stream_k_cache import Floats, fits, in_step, waits
from ._stream_k_records import Choice, Room, Work

COSTS = {
    "start": "launch, cold caches, the writing of one tile",
    "iteration": "one iteration of a tile by a work-group that has the device to itself",
    "busy": "what an iteration costs more when every multiprocessor has a work-group",
    "wave": "what an iteration costs more for each further work-group on the same multiprocessor",
    "tile": "each further tile that a work-group begins",
    "partial": "sums over part of a tile have to be written, and read again",
    "peer": "each further work-group whose sums make a tile",
    "misaligned": "an iteration that waits for memory: most do where everyone is at another place of K",
}
"""The terms of the model, in seconds."""

START, ITERATION, BUSY, WAVE, TILE, PARTIAL, PEER, MISALIGNED = range(len(COSTS))

ROUNDING = 1e-9
"""Relative: a difference as small is none."""
SPLITS = (2, 3, 4, 6, 8, 12, 16)
"""Parts of K that split-K may have, where the kernel can."""


def counts(work: Work, choice: Choice, room: Room) -> Floats:
    """What each of COSTS is multiplied by, for one choice."""
    schedule = Schedule(work.tiles, work.iterations, choice.grid, choice.streamed, choice.splits)
    share = schedule.per_group + (schedule.extra > 0)
    peers, aligned = (choice.splits, True) if choice.splits > 1 else _peers(schedule)
    dealt = ceil_div(schedule.alone * choice.splits, choice.grid)
    # The same work-groups collect in every turn of split-K.
    collected = dealt if choice.splits > 1 else 1
    begun = dealt + (ceil_div(share, work.iterations) if aligned else ceil_div(share - 1, work.iterations) + 1)
    longest = schedule.busiest
    return np.array(
        (
            1.0,
            longest,
            longest * min(1.0, choice.grid / room.multiprocessors),
            longest * (ceil_div(choice.grid, room.multiprocessors) - 1),
            max(begun - 1, 0),
            collected * (peers > 1),
            collected * (peers - 1),
            0.0 if fits(work, room) else float(waits(work, room, *_stretches(work, schedule)).sum()),
        ),
        np.float64,
    )


def _stretches(work: Work, schedule: Schedule) -> Floats:
    """Of the work-group that has most, first with whole tiles and then with shares: its iterations, the work-groups
    that are busy at the time, and how many of these are at the same place of K."""
    grid, long, alone, streamed = schedule.grid, work.iterations, schedule.alone, schedule.streamed
    if schedule.splits > 1:
        rows = [_turns(work, schedule.splits, grid)]
    else:
        whole = (ceil_div(alone, grid) * long, min(alone, grid), min(alone, grid))
        busy = min(streamed * long, grid)
        shared = (schedule.per_group + (schedule.extra > 0), busy, max(1, busy // _places(schedule)))
        rows = [row for row in (whole, shared) if row[0]]
    return np.array(rows, np.float64).reshape(-1, 3).T


def _turns(work: Work, parts: int, grid: int) -> tuple[int, int, int]:
    """The stretch of split-K. Work-groups lose step from turn to turn: on an H200 (2026-11-22) about as many were
    together as if each turn were a place of its own."""
    busy = min(work.tiles * parts, grid)
    turns = ceil_div(work.tiles * parts, grid)
    return turns * ceil_div(work.iterations, parts), busy, max(1, busy // parts // turns)


def _places(schedule: Schedule) -> int:
    """Of K, at which work-groups are with tiles side by side: one if they have whole tiles, several with equal parts
    of tiles, else everyone is at a place of its own."""
    per, long = schedule.per_group, schedule.iterations
    if schedule.extra == 0 and per and (per % long == 0 or long % per == 0):
        return max(1, long // per)
    return max(1, min(schedule.grid, schedule.streamed * long))


def _peers(schedule: Schedule) -> tuple[int, bool]:
    """The most work-groups that meet in a streamed tile (at most one too many), and whether shares are aligned: each
    is as long as all others, and a whole number of tiles or of equal parts of one."""
    per, long = schedule.per_group, schedule.iterations
    if not schedule.streamed:
        return 1, True
    if per == 0:  # a work-group an iteration, and some without
        return long, True
    if schedule.extra == 0 and (per % long == 0 or long % per == 0):
        return max(1, long // per), True
    # Most meet where shares are shortest, at the end: there, parts of `per` go so far, longer ones before them.
    short = min(long - 2, (schedule.grid - schedule.extra) * per)
    met = short // per + (long - 2 - short) // (per + 1) + 2
    return min(met, long, schedule.grid), False


class Scan:
    """The model over every grid that fits, all at once, and over split-K with as many parts as `parts` has. Made for a
    device and costs; the arrays that depend on them alone are kept."""

    def __init__(self, costs: Floats, room: Room, parts: Sequence[int] = SPLITS) -> None:
        self.costs, self.room, self._parts = costs, room, tuple(parts)
        grid = np.arange(1.0, room.groups + 1)
        busy = np.minimum(1.0, grid / room.multiprocessors)
        crowd = np.ceil(grid / room.multiprocessors) - 1
        self._grid = grid
        self._iteration = costs[ITERATION] + costs[BUSY] * busy + costs[WAVE] * crowd
        self._costs: tuple[float, ...] = tuple(costs.tolist())
        self._iterations: tuple[float, ...] = tuple(self._iteration.tolist())

    def seconds(self, work: Work, choice: Choice) -> float:
        return float(counts(work, choice, self.room) @ self.costs)

    def table(self, work: Work) -> Floats:
        """Expected seconds: a column for each grid, 1 work-group first; rows for none, the remainder, and that with
        one full wave streamed. Infinite are the last where there is no wave, and all but the first where there is no
        remainder.

        What is beyond whole waves gives every work-group as many iterations more whatever the number of full waves;
        with one at least, shares are longer than tiles, so that two at most meet in a tile.
        """
        # Numbers are whole and below 2^53, so that quotients of doubles round down as those of integers do.
        start, _, _, _, tile, partial, peer, waiting = self._costs
        grid, iteration, long = self._grid, self._iteration, float(work.iterations)
        seconds: Floats = np.empty((3, len(grid)))
        waves = np.floor(work.tiles / grid)
        beyond = (work.tiles - waves * grid) * long
        per = np.floor(beyond / grid)
        extra = beyond - per * grid
        uneven = extra > 0
        share = per + uneven
        seconds[0] = (waves + (share > 0)) * (iteration * long + tile) + (start - tile)
        computing = (waves * long + share) * iteration
        computing += tile * waves + start
        at_least = np.maximum(per, 1.0)
        groups_each = long / at_least
        parts = np.floor(groups_each)
        skewed = ((parts != groups_each) | uneven) & (per > 0)
        short = np.minimum(long - 2, (grid - extra) * per)
        met = np.floor(short / at_least)
        met += np.floor((long - 2 - short) / (per + 1))
        met = np.where(skewed, np.minimum(met + 2, np.minimum(grid, long)), parts)
        more = share > 1
        waited = [0.0, 0.0, 0.0] if fits(work, self.room) else waiting * self._waits(work, waves, per, ~skewed, share)
        seconds[0] += waited[0]
        np.add(computing, waited[1], out=seconds[1])
        seconds[1] += partial * (met > 1) + (peer * met - peer) + tile * (skewed & more)
        pairs = float(min(2, work.iterations))
        computing += waited[2] + tile * more
        np.add(computing, partial * (pairs > 1) + peer * (pairs - 1), out=seconds[2])
        seconds[1:, beyond == 0] = np.inf
        seconds[2, work.tiles :] = np.inf
        return seconds

    def _waits(self, work: Work, waves: Floats, per: Floats, even: NDArray[np.bool_], share: Floats) -> Floats:
        """Iterations that wait for memory, for each place of the table: `_stretches` of all grids."""
        grid, long = self._grid, float(work.iterations)
        streamed = work.tiles - waves * grid
        busy = np.minimum(np.stack((streamed, streamed + grid)) * long, grid)
        together = np.ones_like(busy)
        # Parts of tiles: with a wave beside them, shares are longer than tiles, and never even.
        parts = np.flatnonzero(even & (per > 0))
        together[0, parts] = busy[0, parts] // (long / per[parts])
        waited = np.zeros((3, len(grid)))
        waited[1:] = waits(work, self.room, np.stack((share, share + long)), busy, together)
        if not in_step(work, self.room):
            busy = np.minimum(work.tiles, grid)
            at_once = waits(work, self.room, np.full_like(grid, long), busy, busy)
            waited += at_once * np.stack((np.ceil(work.tiles / grid), waves, waves - 1))
        return waited

    def splits(self, work: Work, below: float = math.inf) -> list[tuple[float, int]]:
        """Expected seconds of split-K for each number of parts that K has iterations for and that may take less than
        `below`."""
        timed = [(self._split(work, parts), parts) for parts in self._parts if parts <= work.iterations]
        timed = [one for one in timed if one[0] < below]
        if not timed or fits(work, self.room):
            return timed
        stretches = [_turns(work, parts, self.room.groups) for _, parts in timed]
        waited = waits(work, self.room, *np.array(stretches, np.float64).T) * self._costs[MISALIGNED]
        return [(seconds + more, parts) for (seconds, parts), more in zip(timed, waited.tolist(), strict=True)]

    def split(self, work: Work, parts: int) -> Choice:
        return Choice(min(work.tiles * parts, self.room.groups), splits=parts)

    def _split(self, work: Work, parts: int) -> float:
        """Where nobody waits for memory."""
        units, groups = work.tiles * parts, self.room.groups
        grid = units if units < groups else groups
        dealt = -(-units // grid)
        start, _, _, _, tile, partial, peer, _ = self._costs
        longest = -(-work.iterations // parts)
        collecting = partial + peer * (parts - 1)
        return start - tile + dealt * (longest * self._iterations[grid - 1] + tile + collecting)

    def best(self, work: Work) -> tuple[Choice, float]:
        """The fastest of everything; of equals none split, then the fewest tiles on the smallest grid, then split-K."""
        table = self.table(work)
        row, column = divmod(int(table.argmin()), self.room.groups)
        whole = int(table[0].argmin())
        if table[0, whole] <= table[row, column] * (1 + ROUNDING):
            row, column = 0, whole
        choice, seconds = row_on(work, column + 1, row), float(table[row, column])
        below = seconds * (1 - ROUNDING)
        split = min(self.splits(work, below), default=(math.inf, 0)) if work.tiles else (math.inf, 0)
        return (self.split(work, split[1]), split[0]) if split[0] < below else (choice, seconds)

    def best_on(self, work: Work, grid: int | None, full_tiles: int | None) -> tuple[Choice, float]:
        """The fastest with this grid, or this number of full waves beside the remainder, or both."""
        grids = range(1, self.room.groups + 1) if grid is None else (grid,)
        choices = [choice for one in grids for choice in choices_on(work, one, full_tiles)]
        timed = [(self.seconds(work, choice), place) for place, choice in enumerate(choices)]
        seconds, place = min(timed, default=(math.inf, 0))
        return choices[place], seconds


def row_on(work: Work, grid: int, row: int) -> Choice:
    """What a row of a table means in the column of a grid."""
    return Choice(grid, min(work.tiles % grid + (row - 1) * grid, work.tiles) if row else 0)


def choices_on(work: Work, grid: int, full_tiles: int | None) -> list[Choice]:
    """None, the remainder, or that and one full wave on this grid; or what `full_tiles` says."""
    rows = range(3) if full_tiles is None else (full_tiles + 1,)
    return list(dict.fromkeys(row_on(work, grid, row) for row in rows))
