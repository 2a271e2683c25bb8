"""Verification by the device's own programs: a case stays in its memory, and a right run sends back a few words.

The device answers whether anything is wrong, the host what: where a flag is raised, the run's bytes are fetched and
looked at as if there were no such programs, so a person reads the same in both ways, and the host has the last word.

What is kept from candidate to candidate (inputs, references) has a hash, taken when it was put there. It is compared
before every use, so that nobody is judged by what another wrote, and after it, when a change is the candidate's doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tunesmith.devices import Buffer, Device, Prepared, Program
from tunesmith.records import Launch, Operand, Plan, Step, Zero

from .case import VerificationCase
from .device_programs import FLAGS, SUMS, Checks, bound, places, readable, value
from .host_memory import HostMemory
from .poison import Bytes, itemsize, output_pattern
from .regions import WORD, Region, storage_region
from .run_inspection import Traces, Wrong, indices

_FLAGS_EACH = 4
"""Of an output: surroundings changed, an element not written, one between rows written, a value beyond its bound."""
_FLAG_BYTES, _SUM_BYTES = 4, 8


@dataclass(frozen=True, slots=True)
class Clean(Traces):
    """A run in which the device saw nothing wrong."""

    sums: tuple[float, float]

    def squares(self) -> tuple[float, float]:
        return self.sums


def fits(case: VerificationCase) -> bool:
    """Whether the programs understand all outputs of a case."""
    return all(readable(operand, case.expected.get(operand.name)) for operand in case.outputs)


class DeviceMemory(HostMemory):
    """A case that stays there. Use it as a context manager for each candidate; `release` gives it all back."""

    def __init__(self, device: Device, checks: Checks, case: VerificationCase) -> None:
        super().__init__(device, case)
        self._checks = checks
        self._lengths = _lengths(case, self._regions)
        self._fixed = [name for name in self._lengths if name not in {operand.name for operand in case.outputs}]
        self._flag_bytes = _FLAG_BYTES * (_FLAGS_EACH * len(case.outputs) + 1)
        self._slots = max(len(self._fixed), 2 * len(case.outputs))
        self._ready: dict[tuple[str, int], Prepared] = {}
        self._hashing: Prepared | None = None
        try:
            for name, length in self._lengths.items():
                self._buffers[name] = device.allocate(length)
            self._buffers[FLAGS] = device.allocate(self._flag_bytes)
            self._buffers[SUMS] = device.allocate(_SUM_BYTES * self._slots * checks.groups)
            self._fill()
        except BaseException:
            self.release()
            raise

    @property
    def size(self) -> int:
        """Bytes of device memory, with the last workspace."""
        return sum(self._lengths.values()) + (self._workspace.length if self._workspace else 0)

    @property
    def inputs(self) -> Mapping[str, Buffer]:
        """The storage of what is only read, without its guard bands."""
        return {operand.name: self._storage(self._regions[operand.name]) for operand in self.case.inputs_only}

    def release(self) -> None:
        self._ready.clear()
        self._hashing = None
        super().release()

    def __enter__(self) -> Self:
        if not np.array_equal(self._digests(), self._wanted):
            self._fill()
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, programs: Sequence[Program], plan: Plan, poison: int) -> Traces:
        if self._provide(plan.workspace_bytes):
            self._ready.clear()
        self._prepared(self._before, poison).enqueue()
        for operand in self.case.outputs:
            if operand.role == "inout":
                pristine = self._buffers[_pristine(operand)]
                self._device.copy(pristine, self._buffers[operand.name], self._lengths[operand.name])
        self._carry_out(programs, plan)
        self._prepared(self._after, poison).enqueue()
        is_flagged = self._device.read(self._buffers[FLAGS], self._flag_bytes).any()
        return self._seen(poison) if is_flagged else Clean(self._sums_of_squares())

    def modified_input(self) -> Wrong | None:
        """As there, and of all else that is kept."""
        changed = self._digests() != self._wanted
        names = [name for name, is_changed in zip(self._fixed, changed, strict=True) if is_changed]
        if wrong := self._touched(operand for operand in self.case.inputs_only if operand.name in names):
            return wrong
        return Wrong("wrote outside the output", f"into memory that is none of its: {names[0]}") if names else None

    def _fill(self) -> None:
        """Put in place what is kept, and take its hash."""
        device, case = self._device, self.case
        kept = {name: self._buffers[name] for name in self._lengths}
        regions = [self._regions[operand.name] for operand in case.inputs_only]
        self._bound(self._checks.lay(region, region.around) for region in regions).enqueue()
        for operand in case.inputs_only:
            device.write(kept[operand.name], case.content(operand), self._regions[operand.name].start)
        for operand in case.outputs:
            if operand.role == "inout":
                device.write(kept[_pristine(operand)], self._regions[operand.name].image(case.content(operand)))
        for operand, expected in case.compared():
            device.write(kept[places(operand)], _bytes(_storage_elements(operand, expected.where)))
            if expected.value.dtype.kind in "iu":
                words = np.ascontiguousarray(expected.value).view(f"u{itemsize(operand.dtype)}")
                device.write(kept[value(operand)], _bytes(words.astype(np.uint64)))
            else:
                device.write(kept[value(operand)], _bytes(expected.value.astype(np.float64)))
                device.write(kept[bound(operand)], _bytes(expected.bound))
        self._wanted = self._digests()

    def _prepared(self, steps: Callable[[int], Iterable[Step]], poison: int) -> Prepared:
        """Steps before a run or after it, bound once as long as the workspace stays."""
        key = (steps.__name__, poison)
        if key not in self._ready:
            self._ready[key] = self._bound(steps(poison))
        return self._ready[key]

    def _before(self, poison: int) -> Iterable[Step]:
        yield Zero(FLAGS, 0, self._flag_bytes)
        for operand in self.case.outputs:
            if operand.role == "out":
                region = self._regions[operand.name]
                yield self._checks.lay(region, output_pattern(operand.dtype, poison))
        if self._workspace:
            yield self._checks.lay(self._workspace, self._workspace.around)

    def _after(self, poison: int) -> Iterable[Launch]:
        checks, case = self._checks, self.case
        flags = {operand.name: _FLAGS_EACH * index for index, operand in enumerate(case.outputs)}
        for operand in case.outputs:
            region, flag = self._regions[operand.name], flags[operand.name]
            yield checks.guards(region, flag)
            if operand.role == "out" and region.size:
                yield checks.elements(operand, region, output_pattern(operand.dtype, poison), flag + 1)
        for slot, (operand, expected) in enumerate(case.compared()):
            yield checks.compare(operand, self._regions[operand.name], expected, flags[operand.name] + 3, 2 * slot)
        if self._workspace:
            yield checks.guards(self._workspace, _FLAGS_EACH * len(case.outputs))

    def _bound(self, steps: Iterable[Step]) -> Prepared:
        return self._device.prepare(Plan(tuple(steps)), [self._checks.program], self._buffers, None)

    def _sums(self) -> Bytes:
        return self._device.read(self._buffers[SUMS], _SUM_BYTES * self._slots * self._checks.groups)

    def _sums_of_squares(self) -> tuple[float, float]:
        """Over the outputs of reals; of others nothing was left."""
        by_slot = self._sums().view(np.float64).reshape(self._slots, -1).sum(axis=1)
        real = [slot for slot, (_, e) in enumerate(self.case.compared()) if e.value.dtype.kind == "f"]
        return float(sum(by_slot[2 * slot] for slot in real)), float(sum(by_slot[2 * slot + 1] for slot in real))

    def _digests(self) -> NDArray[np.uint64]:
        """A hash of each thing that is kept."""
        if self._hashing is None:
            lengths = self._lengths
            launches = [self._checks.digest(name, lengths[name], slot) for slot, name in enumerate(self._fixed)]
            self._hashing = self._bound(launches)
        self._hashing.enqueue()
        by_slot = self._sums().view(np.uint64).reshape(self._slots, -1)
        return np.asarray(by_slot.sum(axis=1, dtype=np.uint64)[: len(self._fixed)])


def needed_bytes(case: VerificationCase, alignment: int) -> int:
    """Device memory that a case takes, without a workspace."""
    return sum(_lengths(case, {o.name: storage_region(o, alignment) for o in case.operands}).values())


def _lengths(case: VerificationCase, regions: Mapping[str, Region]) -> dict[str, int]:
    """Bytes of every buffer, by name: operands, copies of those that are read and written, references."""
    found = {operand.name: regions[operand.name].length for operand in case.operands}
    found |= {_pristine(o): regions[o.name].length for o in case.outputs if o.role == "inout"}
    for operand, expected in case.compared():
        names = [places(operand), value(operand)] + ([bound(operand)] if expected.value.dtype.kind == "f" else [])
        found |= dict.fromkeys(names, WORD * expected.value.size)
    return found


def _pristine(operand: Operand) -> str:
    return f"{operand.name} before"


def _storage_elements(operand: Operand, where: tuple[object, ...]) -> NDArray[np.uint64]:
    """The number in the storage of every element that is compared."""
    axes = indices(operand.shape, where)
    steps = (axis.astype(np.uint64) * np.uint64(stride) for axis, stride in zip(axes, operand.strides, strict=True))
    return np.asarray(sum(steps), np.uint64)


def _bytes(array: NDArray[np.generic]) -> Bytes:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
