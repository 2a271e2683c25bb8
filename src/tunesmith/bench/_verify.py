"""Is it right? One execution of a plan on guarded, poisoned memory, compared with a reference."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tunesmith.devices import Buffer, Device, Program
from tunesmith.problems import Array, Expected
from tunesmith.records import Operand, Plan

from ._poison import POISONS, Bytes, around_pattern, filled, itemsize, output_pattern

_NARROWEST_GUARD, _WIDEST_GUARD = 512 * 1024, 1024 * 1024
_PIECE = 1 << 19
WORKSPACE = "workspace"


@dataclass(frozen=True, slots=True)
class Wrong:
    """What was wrong, first of all: `reason` is a constant, `detail` names the place."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class _Region:
    """An array in guarded memory: its bytes as first written, and where in them the storage lies."""

    name: str
    image: Bytes
    start: int
    size: int

    @property
    def storage(self) -> slice:
        return slice(self.start, self.start + self.size)


@dataclass(frozen=True)
class Case:
    """A problem to verify a plan on: operands with contents, and what the outputs must hold."""

    operands: tuple[Operand, ...]
    inputs: Mapping[str, Array]
    expected: Mapping[str, Expected]
    _guarded: dict[int, dict[str, _Region]] = field(default_factory=dict, compare=False)

    @property
    def size(self) -> int:
        """Bytes of host memory that it holds, with the inputs' images once they are made."""
        arrays = [*self.inputs.values(), *(a for e in self.expected.values() for a in (e.value, e.bound))]
        images = [region.image for regions in self._guarded.values() for region in regions.values()]
        return sum(array.nbytes for array in [*arrays, *images])

    def guarded_inputs(self, alignment: int) -> dict[str, _Region]:
        """The images of what is only read: made once, since they are the same for every candidate."""
        if alignment not in self._guarded:
            contents = {o: _with_poisoned_padding(o, self.inputs[o.name]) for o in self.operands if o.role == "in"}
            self._guarded[alignment] = {o.name: _region(o.name, o.dtype, c, alignment) for o, c in contents.items()}
        return self._guarded[alignment]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was wrong, or how far the outputs of a right result are from the reference."""

    wrong: Wrong | None
    error: float | None = None


def verify(device: Device, programs: Sequence[Program], plan: Plan, case: Case) -> Wrong | None:
    """What `judge` finds wrong; None when all is right."""
    return judge(device, programs, plan, case).wrong


def judge(device: Device, programs: Sequence[Program], plan: Plan, case: Case) -> Verdict:
    """Run a plan and look at every byte that it could have touched; raises LaunchError.

    It runs once for each poison in the outputs, so that a kernel that reads what it should only write is found out.

    Inputs and what surrounds them must be as before; so must the elements between an output's rows; every element of
    an output must be written, and those that the reference covers must be within its bound. NaN is never right.
    """
    with _Memory(device, case) as memory:
        runs = []
        for poison in POISONS:
            runs.append(memory.run(programs, plan, poison))
            if wrong := _trespass(case, runs[-1]):
                return Verdict(memory.modified_input() or wrong)
        if wrong := memory.modified_input():
            return Verdict(wrong)
    values = (_value(case, operand, after) for after in runs for operand in _outputs(case))
    found = _unwritten(case, runs) or next(filter(None, values), None)
    return Verdict(found) if found else Verdict(None, _relative_error(case, runs[0]))


def logical(operand: Operand, storage: NDArray[np.generic]) -> NDArray[np.generic]:
    """The operand's array as a view of its storage."""
    steps = tuple(stride * storage.itemsize for stride in operand.strides)
    return as_strided(storage, operand.shape, steps)


def in_float64(dtype: str, words: NDArray[np.generic]) -> NDArray[np.float64]:
    """Elements as float64, given as unsigned words of their size; bfloat16 is the upper half of a float32."""
    if dtype == "bfloat16":
        return (words.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return words.view(dtype).astype(np.float64)


@dataclass(frozen=True, slots=True)
class _After:
    before: dict[str, _Region]
    bytes: dict[str, Bytes]

    def storage(self, name: str) -> Bytes:
        return self.bytes[name][self.before[name].storage]


class _Memory:
    """Guarded device memory for a case: what is only read is written once, the rest before every run."""

    def __init__(self, device: Device, case: Case) -> None:
        self._device, self._case = device, case
        self._inputs = case.guarded_inputs(device.alignment)
        self._whole: dict[str, Buffer] = {}

    def __enter__(self) -> _Memory:
        try:
            for name, region in self._inputs.items():
                self._put(name, region)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._device.release(*self._whole.values())

    def run(self, programs: Sequence[Program], plan: Plan, poison: int) -> _After:
        device, written = self._device, _written(self._case, plan, self._device.alignment, poison)
        for name, region in written.items():
            self._put(name, region)
        regions = self._inputs | written
        parts = {name: device.view(self._whole[name], r.start, max(r.size, 1)) for name, r in regions.items()}
        workspace = parts.pop(WORKSPACE, None)
        for part in (plan.preparation, plan) if plan.setup else (plan,):
            device.prepare(part, programs, parts, workspace).enqueue()
        device.synchronize()
        return _After(written, {name: device.read(self._whole[name], len(r.image)) for name, r in written.items()})

    def modified_input(self) -> Wrong | None:
        """What no run may have touched: the inputs and what surrounds them."""
        for operand in self._case.operands:
            if region := self._inputs.get(operand.name):
                after = self._device.read(self._whole[operand.name], len(region.image))
                if wrong := _touched(operand, region, after):
                    return wrong
        return None

    def _put(self, name: str, region: _Region) -> None:
        if name not in self._whole:
            self._whole[name] = self._device.allocate(len(region.image))
        self._device.write(self._whole[name], region.image)


def _touched(operand: Operand, region: _Region, after: Bytes) -> Wrong | None:
    where = _first_change(region.image, after)
    if where is None:
        return None
    changed = after[region.storage] != region.image[region.storage]
    if changed.any():
        index = int(np.argmax(changed)) // itemsize(operand.dtype)
        return Wrong("modified an input", f"{operand.name}: storage element {index} changed")
    return _outside(operand.name, itemsize(operand.dtype), region, where)


def _first_change(before: Bytes, after: Bytes) -> int | None:
    """Index of the first byte that differs; in pieces that stay in a cache."""
    for first in range(0, len(before), _PIECE):
        changed = before[first : first + _PIECE] != after[first : first + _PIECE]
        if changed.any():
            return first + int(np.argmax(changed))
    return None


def _outputs(case: Case) -> list[Operand]:
    return [operand for operand in case.operands if operand.role != "in"]


def _region(name: str, dtype: str, content: Bytes, alignment: int) -> _Region:
    guard = min(max(len(content), _NARROWEST_GUARD), _WIDEST_GUARD)
    guard = -(-guard // max(alignment, 8)) * max(alignment, 8)
    around = around_pattern(dtype)
    # The pattern goes on behind the content in step with the elements, so that an element read there is the NaN.
    image = np.concatenate([filled(around, guard), content, filled(around, guard)])
    return _Region(name, image, guard, len(content))


def _with_poisoned_padding(operand: Operand, storage: Array) -> Bytes:
    """An input whose elements between rows are NaN: they belong to nobody, so nobody's result may depend on them."""
    content = np.array(storage).view(np.uint8)
    padding = _padding_mask(operand)
    if padding is not None:
        content.reshape(len(padding), -1)[padding] = around_pattern(operand.dtype)
    return content


def _padding_mask(operand: Operand) -> NDArray[np.bool_] | None:
    """Storage elements that are none of the array's; None where there are none."""
    if operand.storage_elements == np.prod(operand.shape, dtype=np.int64):
        return None
    mask = np.ones(operand.storage_elements, np.bool_)
    logical(operand, mask)[...] = False
    return mask


def _written(case: Case, plan: Plan, alignment: int, poison: int) -> dict[str, _Region]:
    """The regions that a run may write: outputs, poisoned, and the workspace."""
    regions = {}
    for operand in _outputs(case):
        if operand.role == "out":
            size = operand.storage_elements * itemsize(operand.dtype)
            content = filled(output_pattern(operand.dtype, poison), size)
        else:
            content = _with_poisoned_padding(operand, case.inputs[operand.name])
        regions[operand.name] = _region(operand.name, operand.dtype, content, alignment)
    if plan.workspace_bytes:
        # A workspace comes with whatever was left in it, which may well be NaN.
        garbage = filled(around_pattern("float32"), plan.workspace_bytes)
        regions[WORKSPACE] = _region(WORKSPACE, "float32", garbage, alignment)
    return regions


def _trespass(case: Case, after: _After) -> Wrong | None:
    """What was written that belongs to nobody."""
    sizes = {operand.name: itemsize(operand.dtype) for operand in case.operands}
    for name, region in after.before.items():
        for guard in (slice(0, region.start), slice(region.start + region.size, len(region.image))):
            where = _first_change(region.image[guard], after.bytes[name][guard])
            if where is not None:
                return _outside(name, sizes.get(name, 1), region, guard.start + where)
    return next(filter(None, (_padding(operand, after) for operand in _outputs(case))), None)


def _outside(name: str, size: int, region: _Region, index: int) -> Wrong:
    where = index - region.start
    elements = where // size if where < 0 else (where - region.size) // size + 1
    side = "before the first" if where < 0 else "behind the last"
    return Wrong("wrote outside the output", f"{name}: {abs(elements)} elements {side}")


def _padding(operand: Operand, after: _After) -> Wrong | None:
    padding = _padding_mask(operand)
    if padding is None:
        return None
    changed = after.storage(operand.name) != after.before[operand.name].image[after.before[operand.name].storage]
    changed = changed.reshape(len(padding), -1).any(axis=1) & padding
    if not changed.any():
        return None
    where = f"storage element {int(np.argmax(changed))}, between its rows; {int(changed.sum())} of these"
    return Wrong("wrote outside the output", f"{operand.name}: {where}")


def _unwritten(case: Case, runs: Sequence[_After]) -> Wrong | None:
    for operand in case.operands:
        if operand.role != "out":
            continue
        untouched = np.logical_and.reduce([_holds_poison(operand, runs[poison], poison) for poison in POISONS])
        if untouched.any():
            place = _first(untouched)
            return Wrong(
                "unwritten element",
                f"{operand.name}{list(place)} was not written; {int(untouched.sum())} of {untouched.size} elements",
            )
    return None


def _holds_poison(operand: Operand, after: _After, poison: int) -> NDArray[np.bool_]:
    word = np.dtype(f"u{itemsize(operand.dtype)}")
    pattern = output_pattern(operand.dtype, poison).view(word)[0]
    return np.asarray(logical(operand, after.storage(operand.name).view(word)) == pattern)


def _value(case: Case, operand: Operand, after: _After) -> Wrong | None:
    expected = case.expected.get(operand.name)
    if expected is None or 0 in operand.shape:
        return None
    is_exact = expected.value.dtype.kind in "iu"
    got = _found(operand, expected, after)
    # Written so that a NaN on either side counts as wrong.
    wrong = got != expected.value if is_exact else ~(np.abs(got - expected.value) <= expected.bound)
    if not wrong.any():
        return None
    first = _first(wrong)
    place = [int(axis[first]) for axis in _indices(operand.shape, expected.where)]
    value, bound = expected.value[first], expected.bound[first]
    said = (
        f"{got[first]}, expected {value}" if is_exact else f"{got[first]:.9g}, expected {value:.9g} within {bound:.3g}"
    )
    return Wrong("wrong value", f"{operand.name}{place} is {said}; {int(wrong.sum())} of {wrong.size} elements wrong")


def _found(operand: Operand, expected: Expected, after: _After) -> NDArray[Any]:
    """What was written where the reference has values, in its data type."""
    words = after.storage(operand.name).view(f"u{itemsize(operand.dtype)}")
    written = logical(operand, words)[cast(Any, expected.where)]
    return written.view(operand.dtype) if expected.value.dtype.kind in "iu" else in_float64(operand.dtype, written)


def _relative_error(case: Case, after: _After) -> float | None:
    """Square root of the sum of squared differences over that of squared values; None where there is nothing to it."""
    differences, values = 0.0, 0.0
    for operand in _outputs(case):
        expected = case.expected.get(operand.name)
        if expected is not None and 0 not in operand.shape and expected.value.dtype.kind == "f":
            difference = _found(operand, expected, after) - expected.value
            differences += float(np.vdot(difference, difference))
            values += float(np.vdot(expected.value, expected.value))
    return math.sqrt(differences / values) if values else None


def _first(mask: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), mask.shape))


def _indices(shape: tuple[int, ...], where: tuple[object, ...]) -> list[NDArray[np.intp]]:
    """For each axis of the whole array, the index of every element of `array[where]`."""
    axes = np.meshgrid(*(np.arange(extent) for extent in shape), indexing="ij", sparse=True)
    return [np.broadcast_to(axis, shape)[cast(Any, where)] for axis in axes]
