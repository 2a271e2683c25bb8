"""What one run of a plan left behind, and what is wrong with it: the questions, and the answers by looking at bytes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems import Expected
from tunesmith.records import Operand

from .case import VerificationCase
from .poison import Bytes, itemsize, output_pattern
from .regions import Region, logical, padding_mask

_PIECE = 1 << 19


@dataclass(frozen=True, slots=True)
class Wrong:
    """What was wrong, first of all: `reason` is a constant, `detail` names the place."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Left:
    """A region's bytes before a run and after."""

    region: Region
    before: Bytes
    after: Bytes

    @property
    def storage(self) -> Bytes:
        return self.after[self.region.storage]


def not_zeroed(left: Bytes) -> Wrong | None:
    """Of the beginning of a workspace that the next run should find zeroed."""
    bytes_ = np.flatnonzero(left)
    return Wrong("left no zeros", f"byte {bytes_[0]} of the workspace is {left[bytes_[0]]}") if bytes_.size else None


class Traces(ABC):
    """One run's outputs and workspace, as it left them; nothing is wrong with them unless a subclass sees it."""

    def trespass(self) -> Wrong | None:
        """What was written that belongs to nobody."""
        return None

    def untouched(self, operand: Operand) -> NDArray[np.bool_] | None:
        """For each element of an output whether it still holds this run's poison; None when none does."""
        return None

    def wrong_value(self) -> Wrong | None:
        """The first element beyond its bound; NaN is never within."""
        return None

    @abstractmethod
    def squares(self) -> tuple[float, float]:
        """The sums of squared differences from the reference, and of its squared values, over all real outputs."""


def relative_error(traces: Traces) -> float | None:
    """Norm of the difference over that of the reference; None where there is nothing to it."""
    differences, values = traces.squares()
    return math.sqrt(differences / values) if values else None


@dataclass(frozen=True, slots=True)
class Seen(Traces):
    """By looking at every byte, which are all here."""

    case: VerificationCase
    poison: int
    left: Mapping[str, Left]

    def trespass(self) -> Wrong | None:
        sizes = {operand.name: itemsize(operand.dtype) for operand in self.case.operands}
        for name, left in self.left.items():
            region = left.region
            for guard in (slice(0, region.start), slice(region.storage.stop, region.length)):
                where = _first_change(left.before[guard], left.after[guard])
                if where is not None:
                    return _outside(region, sizes.get(name, 1), guard.start + where)
        return next(filter(None, (_padding(operand, self.left[operand.name]) for operand in self.case.outputs)), None)

    def untouched(self, operand: Operand) -> NDArray[np.bool_] | None:
        word = np.dtype(f"u{itemsize(operand.dtype)}")
        pattern = output_pattern(operand.dtype, self.poison).view(word)[0]
        holding = np.asarray(logical(operand, self.left[operand.name].storage.view(word)) == pattern)
        return holding if holding.any() else None

    def wrong_value(self) -> Wrong | None:
        found = (_wrong_value(o, e, self.left[o.name]) for o, e in self.case.compared())
        return next(filter(None, found), None)

    def squares(self) -> tuple[float, float]:
        differences, values = 0.0, 0.0
        for operand, expected in self.case.compared():
            if expected.value.dtype.kind == "f":
                difference = _found(operand, expected, self.left[operand.name]) - expected.value
                differences += float(np.vdot(difference, difference))
                values += float(np.vdot(expected.value, expected.value))
        return differences, values


def touched(operand: Operand, left: Left) -> Wrong | None:
    """What was changed of an input, or around it."""
    where = _first_change(left.before, left.after)
    if where is None:
        return None
    changed = left.storage != left.before[left.region.storage]
    size = itemsize(operand.dtype)
    if changed.any():
        index = int(np.argmax(changed)) // size
        return Wrong("modified an input", f"{operand.name}: storage element {index} changed")
    return _outside(left.region, size, where)


def never_written(operand: Operand, runs: Sequence[Traces]) -> Wrong | None:
    """An element that held the poison after every run."""
    untouched = np.ones(operand.shape, np.bool_)
    for run in runs:
        holding = run.untouched(operand)
        if holding is None:
            return None
        untouched &= holding
    if not untouched.any():
        return None
    said = (
        f"{operand.name}{list(_first(untouched))} was not written; {int(untouched.sum())} of {untouched.size} elements"
    )
    return Wrong("unwritten element", said)


def indices(shape: tuple[int, ...], where: tuple[object, ...]) -> list[NDArray[np.intp]]:
    """For each axis of the whole array, the index of every element of `array[where]`."""
    axes = np.meshgrid(*(np.arange(extent) for extent in shape), indexing="ij", sparse=True)
    return [np.broadcast_to(axis, shape)[cast(Any, where)] for axis in axes]


def in_float64(dtype: str, words: NDArray[np.generic]) -> NDArray[np.float64]:
    """Elements as float64, given as unsigned words of their size; bfloat16 is the upper half of a float32."""
    if dtype == "bfloat16":
        return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return words.view(dtype).astype(np.float64)


def _first_change(before: Bytes, after: Bytes) -> int | None:
    """Index of the first byte that differs; in pieces that stay in a cache."""
    for first in range(0, len(before), _PIECE):
        changed = before[first : first + _PIECE] != after[first : first + _PIECE]
        if changed.any():
            return first + int(np.argmax(changed))
    return None


def _outside(region: Region, size: int, index: int) -> Wrong:
    where = index - region.start
    elements = where // size if where < 0 else (where - region.size) // size + 1
    side = "before the first" if where < 0 else "behind the last"
    return Wrong("wrote outside the output", f"{region.name}: {abs(elements)} elements {side}")


def _padding(operand: Operand, left: Left) -> Wrong | None:
    padding = padding_mask(operand)
    if padding is None:
        return None
    changed = left.storage != left.before[left.region.storage]
    changed = changed.reshape(len(padding), -1).any(axis=1) & padding
    if not changed.any():
        return None
    where = f"storage element {int(np.argmax(changed))}, between its rows; {int(changed.sum())} of these"
    return Wrong("wrote outside the output", f"{operand.name}: {where}")


def _wrong_value(operand: Operand, expected: Expected, left: Left) -> Wrong | None:
    is_exact = expected.value.dtype.kind in "iu"
    got = _found(operand, expected, left)
    # Written so that a NaN on either side counts as wrong.
    wrong = got != expected.value if is_exact else ~(np.abs(got - expected.value) <= expected.bound)
    if not wrong.any():
        return None
    first = _first(wrong)
    location = [int(axis[first]) for axis in indices(operand.shape, expected.where)]
    value, bound = expected.value[first], expected.bound[first]
    said = (
        f"{got[first]}, expected {value}" if is_exact else f"{got[first]:.9g}, expected {value:.9g} within {bound:.3g}"
    )
    return Wrong(
        "wrong value", f"{operand.name}{location} is {said}; {int(wrong.sum())} of {wrong.size} elements wrong"
    )


def _found(operand: Operand, expected: Expected, left: Left) -> NDArray[Any]:
    """What was written where the reference has values, in its data type."""
    words = left.storage.view(f"u{itemsize(operand.dtype)}")
    written = logical(operand, words)[cast(Any, expected.where)]
    return written.view(operand.dtype) if expected.value.dtype.kind in "iu" else in_float64(operand.dtype, written)


def _first(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
