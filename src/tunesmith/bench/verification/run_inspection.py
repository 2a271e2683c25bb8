"""Inspection of one run of a plan: what is wrong with the outputs and the workspace after the run."""

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
from .poison import Bytes, is_whole, itemsize, output_pattern
from .regions import Region, logical, padding_mask

_PIECE = 1 << 19
NOT_FINITE = "not finite"


@dataclass(frozen=True, slots=True)
class Defect:
    """The first defect of a run: `reason` is a constant, `detail` names the element or byte."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class RegionBytes:
    """A region's bytes before a run and after."""

    region: Region
    before: Bytes
    after: Bytes

    @property
    def storage(self) -> Bytes:
        return self.after[self.region.storage]


def not_zeroed(left: Bytes) -> Defect | None:
    """The defect of a workspace whose first bytes, `left`, should be zero for the next run."""
    nonzero = np.flatnonzero(left)
    return (
        Defect("left no zeros", f"byte {nonzero[0]} of the workspace is {left[nonzero[0]]}") if nonzero.size else None
    )


def not_finite(operand: Operand) -> Defect:
    """The defect of a first launch that leaves NaN or infinity in an output."""
    return Defect(NOT_FINITE, f"{operand.name} holds numbers that are not finite, so no other result can be compared")


def root_mean(squares: float, count: float) -> float:
    """The root of the mean of `count` squares, given their sum; 0 if there are none."""
    return math.sqrt(squares / count) if count else 0.0


class RunInspection(ABC):
    """The outputs and workspace after one run. By default nothing is wrong; subclasses inspect them."""

    def outside_write(self) -> Defect | None:
        """The first write outside an output: into a guard band or between rows."""
        return None

    def still_poisoned(self, operand: Operand) -> NDArray[np.bool_] | None:
        """For each element of an output whether it still holds this run's poison; None if no element does."""
        return None

    def wrong_value(self) -> Defect | None:
        """The first element beyond its bound. NaN is always beyond."""
        return None

    @abstractmethod
    def sums_of_squares(self) -> tuple[float, float]:
        """The sums of squared differences from the reference, and of its squared values, over all real outputs."""


def relative_error(run: RunInspection) -> float | None:
    """Norm of the difference over the norm of the reference; None if the reference is zero or has no reals."""
    differences, values = run.sums_of_squares()
    return math.sqrt(differences / values) if values else None


@dataclass(frozen=True, slots=True)
class HostInspection(RunInspection):
    """Inspection on the host, which looks at every byte. `regions` holds those of outputs and workspace."""

    case: VerificationCase
    poison: int
    regions: Mapping[str, RegionBytes]

    def outside_write(self) -> Defect | None:
        sizes = {operand.name: itemsize(operand.dtype) for operand in self.case.operands}
        for name, run in self.regions.items():
            region = run.region
            for guard in (slice(0, region.start), slice(region.storage.stop, region.length)):
                index = _first_change(run.before[guard], run.after[guard])
                if index is not None:
                    return _outside(region, sizes.get(name, 1), guard.start + index)
        defects = (_changed_padding(operand, self.regions[operand.name]) for operand in self.case.outputs)
        return next(filter(None, defects), None)

    def still_poisoned(self, operand: Operand) -> NDArray[np.bool_] | None:
        word = np.dtype(f"u{itemsize(operand.dtype)}")
        pattern = output_pattern(operand.dtype, self.poison).view(word)[0]
        holding = np.asarray(logical(operand, self.regions[operand.name].storage.view(word)) == pattern)
        return holding if holding.any() else None

    def wrong_value(self) -> Defect | None:
        compared = self.case.compared()
        defects = (_wrong_value(operand, expected, self.regions[operand.name]) for operand, expected in compared)
        return next(filter(None, defects), None)

    def result(self, operand: Operand) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """An output's elements, as integers or float64, and which of them the run changed."""
        region = self.regions[operand.name]
        words = f"u{itemsize(operand.dtype)}"
        after, before = (
            logical(operand, np.ascontiguousarray(part).view(words))
            for part in (region.storage, region.before[region.region.storage])
        )
        values = after.view(operand.dtype).copy() if is_whole(operand.dtype) else in_float64(operand.dtype, after)
        return values, after != before

    def sums_of_squares(self) -> tuple[float, float]:
        differences, values = 0.0, 0.0
        for operand, expected in self.case.compared():
            if expected.value.dtype.kind == "f":
                difference = _written_values(operand, expected, self.regions[operand.name]) - expected.value
                differences += float(np.vdot(difference, difference))
                values += float(np.vdot(expected.value, expected.value))
        return differences, values


def changed_input(operand: Operand, run: RegionBytes) -> Defect | None:
    """The first change of an input or its guard bands."""
    first = _first_change(run.before, run.after)
    if first is None:
        return None
    changed = run.storage != run.before[run.region.storage]
    size = itemsize(operand.dtype)
    if changed.any():
        index = int(np.argmax(changed)) // size
        return Defect("modified an input", f"{operand.name}: storage element {index} changed")
    return _outside(run.region, size, first)


def never_written(operand: Operand, runs: Sequence[RunInspection]) -> Defect | None:
    """The first element that held the poison after every run."""
    unwritten: NDArray[np.bool_] | None = None
    for run in runs:
        holding = run.still_poisoned(operand)
        if holding is None:
            return None
        unwritten = holding if unwritten is None else unwritten & holding
    if unwritten is None or not unwritten.any():
        return None
    element = f"{operand.name}{list(_first(unwritten))}"
    detail = f"{element} was not written; {int(unwritten.sum())} of {unwritten.size} elements"
    return Defect("unwritten element", detail)


def indices(shape: tuple[int, ...], where: tuple[object, ...]) -> list[NDArray[np.intp]]:
    """For each axis of the whole array, the index of every element of `array[where]`."""
    axes = np.meshgrid(*(np.arange(extent) for extent in shape), indexing="ij", sparse=True)
    return [np.broadcast_to(axis, shape)[cast(Any, where)] for axis in axes]


def in_float64(dtype: str, words: NDArray[np.generic]) -> NDArray[np.float64]:
    """Elements as float64. `words` are their bits as unsigned integers; bfloat16 is the upper half of a float32."""
    if dtype == "bfloat16":
        return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return words.view(dtype).astype(np.float64)


def _first_change(before: Bytes, after: Bytes) -> int | None:
    """Index of the first byte that differs. Compares in pieces that fit into a cache."""
    for first in range(0, len(before), _PIECE):
        changed = before[first : first + _PIECE] != after[first : first + _PIECE]
        if changed.any():
            return first + int(np.argmax(changed))
    return None


def _outside(region: Region, size: int, index: int) -> Defect:
    offset = index - region.start
    elements = offset // size if offset < 0 else (offset - region.size) // size + 1
    side = "before the first" if offset < 0 else "behind the last"
    return Defect("wrote outside the output", f"{region.name}: {abs(elements)} elements {side}")


def _changed_padding(operand: Operand, run: RegionBytes) -> Defect | None:
    padding = padding_mask(operand)
    if padding is None:
        return None
    word = f"u{itemsize(operand.dtype)}"
    changed = (run.storage.view(word) != run.before[run.region.storage].view(word)) & padding
    if not changed.any():
        return None
    detail = f"storage element {int(np.argmax(changed))}, between its rows; {int(changed.sum())} of these"
    return Defect("wrote outside the output", f"{operand.name}: {detail}")


def _wrong_value(operand: Operand, expected: Expected, run: RegionBytes) -> Defect | None:
    is_exact = expected.value.dtype.kind in "iu"
    got = _written_values(operand, expected, run)
    # In this form a NaN on either side counts as wrong.
    wrong = got != expected.value if is_exact else ~(np.abs(got - expected.value) <= expected.bound)
    if not wrong.any():
        return None
    first = _first(wrong)
    location = [int(axis[first]) for axis in indices(operand.shape, expected.where)]
    value, bound = expected.value[first], expected.bound[first]
    exact = f"{got[first]}, expected {value}"
    comparison = exact if is_exact else f"{got[first]:.9g}, expected {value:.9g} within {bound:.3g}"
    detail = f"{operand.name}{location} is {comparison}; {int(wrong.sum())} of {wrong.size} elements wrong"
    return Defect("wrong value", detail)


def _written_values(operand: Operand, expected: Expected, run: RegionBytes) -> NDArray[Any]:
    """The written elements that the reference covers, as integers or float64 like the reference."""
    words = run.storage.view(f"u{itemsize(operand.dtype)}")
    written = logical(operand, words)[cast(Any, expected.where)]
    return written.view(operand.dtype) if expected.value.dtype.kind in "iu" else in_float64(operand.dtype, written)


def _first(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))
