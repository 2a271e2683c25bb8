"""A stream-K schedule as arrays, all work-groups at once: what tests hold against the scalar form and the models."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tunesmith.kernels.gemm.stream_k import StreamKSchedule

Integers = NDArray[np.int64]

NO_SLOT = -1


@dataclass(frozen=True)
class Segments:
    """Every segment of a schedule, one an element: work-group by work-group, each in the order of its work. `slot` is
    NO_SLOT where a work-group has the whole tile."""

    group: Integers
    tile: Integers
    begin: Integers
    end: Integers
    slot: Integers


@dataclass(frozen=True)
class Loads:
    """What each work-group of a grid has to do."""

    iterations: Integers
    segments: Integers
    partials: Integers
    """Sums that it leaves in the workspace for somebody to add."""


def segments(schedule: StreamKSchedule) -> Segments:
    """What `StreamKSchedule.segments` yields for each work-group, without a loop over them."""
    dealt, streamed = _dealt(schedule), _streamed(schedule)
    columns = [np.concatenate(pair) for pair in zip(dealt, streamed, strict=True)]
    # Stable: a work-group's dealt tiles come before its share, both in their order.
    order = np.argsort(columns[0], kind="stable")
    return Segments(*(column[order] for column in columns))


def loads(schedule: StreamKSchedule) -> Loads:
    every = segments(schedule)
    lengths = (every.end - every.begin).astype(np.float64)

    def sums(weights: NDArray[np.float64] | None = None) -> Integers:
        return np.bincount(every.group, weights, minlength=schedule.grid).astype(np.int64)

    return Loads(sums(lengths), sums(), sums((every.slot != NO_SLOT).astype(np.float64)))


def peers(schedule: StreamKSchedule) -> Integers:
    """For each tile, how many sums make it."""
    return np.bincount(segments(schedule).tile, minlength=schedule.tiles).astype(np.int64)


def _dealt(schedule: StreamKSchedule) -> tuple[Integers, ...]:
    """Whole tiles, or parts of them, in turn."""
    number = np.arange(schedule.alone * schedule.splits, dtype=np.int64)
    tile, part = np.divmod(number, schedule.splits)
    each, longer = divmod(schedule.iterations, schedule.splits)
    begin = part * each + np.minimum(part, longer)
    slot = np.full_like(number, NO_SLOT) if schedule.splits == 1 else number
    return number % schedule.grid, tile, begin, begin + each + (part < longer), slot


def _streamed(schedule: StreamKSchedule) -> tuple[Integers, ...]:
    """Between two neighbouring cuts lies a segment: cuts are where a share begins and where a tile does."""
    long = schedule.iterations
    total = schedule.streamed * long
    group = np.arange(schedule.grid, dtype=np.int64)
    starts = group * schedule.per_group + np.minimum(group, schedule.extra)
    cuts = np.union1d(starts, np.arange(schedule.streamed + 1, dtype=np.int64) * long)
    cuts = cuts[cuts <= total]
    at, stop = cuts[:-1], cuts[1:]
    # Of work-groups that begin at the same place only the last can have anything; those behind the end have nothing.
    owner = np.searchsorted(starts, at, side="right") - 1
    tile, begin = np.divmod(at, long)
    slot = np.where(begin == 0, owner + schedule.grid, owner)
    slot[stop - at == long] = NO_SLOT
    return owner, schedule.alone + tile, begin, begin + stop - at, slot
