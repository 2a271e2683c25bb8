"""Verification by programs on the device: a case stays in device memory, and a right run sends back a few words.

The device says whether anything is wrong, and the host says what. If a flag is raised, the run's bytes are fetched and
inspected on the host, as without these programs. So messages are the same in both cases, and the host decides.

Inputs and references stay on the device from candidate to candidate. Their hashes are taken when they are written. The
hashes are compared before every use, so that no candidate is judged by memory that another candidate changed, and after
every use, when a change is the candidate's fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tunesmith.devices import Buffer, Device, Prepared, Program
from tunesmith.problems import Expected
from tunesmith.records import Launch, Operand, Plan, Step, Zero

from .case import Comparison, VerificationCase
from .device_programs import FLAGS, SUMS, VerificationPrograms, bound_name, is_supported, positions_name, value_name
from .host_memory import HostMemory
from .poison import POISONS, Bytes, itemsize, output_pattern
from .regions import WORD, Region, is_padded, storage_region
from .run_inspection import Defect, RunInspection, indices, not_finite, root_mean

_FLAGS_EACH = 4
"""Flags of an output: guard band changed, element not written, element between rows written, value beyond its bound."""
_FLAG_BYTES, _SUM_BYTES = 4, 8


@dataclass(frozen=True, slots=True)
class CleanRun(RunInspection):
    """A run in which the device found nothing wrong."""

    sums: tuple[float, float]

    def sums_of_squares(self) -> tuple[float, float]:
        return self.sums


def supports(case: VerificationCase) -> bool:
    """Whether the programs support all outputs of a case."""
    comparisons = {comparison.operand.name: comparison for comparison in case.comparisons()}
    is_dense = not any(is_padded(operand) for operand in case.outputs if operand.name in case.agreement)
    return is_dense and all(is_supported(operand, comparisons.get(operand.name)) for operand in case.outputs)


class DeviceMemory(HostMemory):
    """A case that stays on the device. Use it as a context manager for each candidate; `release` frees its memory."""

    def __init__(self, device: Device, programs: VerificationPrograms, case: VerificationCase) -> None:
        super().__init__(device, case)
        self._programs = programs
        self._lengths = _lengths(case, self._regions)
        self._unchanging = [name for name in self._lengths if name not in {operand.name for operand in case.outputs}]
        self._flag_bytes = _FLAG_BYTES * (_FLAGS_EACH * len(case.outputs) + 1)
        # A hash of each. These are no fewer than two for each output that is compared, so its two sums have room too.
        self._slots = max(len(self._unchanging), 1)
        self._prepared_steps: dict[tuple[str, int], Prepared] = {}
        self._hashing: Prepared | None = None
        self._has_learned = False
        try:
            for name, length in self._lengths.items():
                self._buffers[name] = device.allocate(length)
            self._buffers[FLAGS] = device.allocate(self._flag_bytes)
            self._buffers[SUMS] = device.allocate(_SUM_BYTES * self._slots * programs.groups)
            self._fill()
        except BaseException:
            self.release()
            raise

    @property
    def size(self) -> int:
        """Bytes of device memory that the case takes, with the last workspace."""
        return sum(self._lengths.values()) + (self._workspace.length if self._workspace else 0)

    @property
    def inputs(self) -> Mapping[str, Buffer]:
        """Where the content of each operand that is read lies, as it is before a launch and without guard bands."""
        return {operand.name: self._storage(region) for operand, region in self._contents()}

    def release(self) -> None:
        self.case.learned.clear()
        self._prepared_steps.clear()
        self._hashing = None
        super().release()

    def __enter__(self) -> Self:
        if not np.array_equal(self._digests(), self._expected_digests):
            self._fill()
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, programs: Sequence[Program], plan: Plan, poison: int) -> RunInspection:
        self._execute(programs, plan, poison)
        self._prepared(self._after, poison).enqueue()
        if not self._flags().any():
            return CleanRun(self._sums_of_squares())
        if self.case.agreement and not self.case.learned:
            self.case.learned.update(self._learned_values())
        return self._inspection(poison)

    @property
    def awaits_first(self) -> bool:
        return bool(self.case.agreement) and not self._has_learned

    def learn(self, programs: Sequence[Program], plan: Plan) -> Defect | None:
        self._execute(programs, plan, POISONS[0])
        comparisons = self.case.comparisons()
        reals = [comparison for comparison in comparisons if not comparison.is_exact]
        self._prepare(self._changes(real, index) for index, real in enumerate(reals)).enqueue()
        infinite = self._flags()[: len(reals)]
        if infinite.any():
            return not_finite(reals[int(np.argmax(infinite))].operand)
        sums = self._sums_by_slot()
        typical = {real: root_mean(sums[2 * index], sums[2 * index + 1]) for index, real in enumerate(reals)}
        self._prepare(self._learning(comparison, typical.get(comparison, 0.0)) for comparison in comparisons).enqueue()
        self._has_learned, self._expected_digests = True, self._digests()
        return None

    def _execute(self, programs: Sequence[Program], plan: Plan, poison: int) -> None:
        if self._provide_workspace(plan.workspace_bytes):
            self._prepared_steps.clear()
        self._prepared(self._before, poison).enqueue()
        for operand in self.case.outputs:
            if operand.role == "inout":
                pristine = self._buffers[_pristine(operand)]
                self._device.copy(pristine, self._buffers[operand.name], self._lengths[operand.name])
        self._carry_out(programs, plan)

    def _learned_values(self) -> dict[str, Expected]:
        """What `learn` left on the device, by output."""
        learned = {}
        for comparison in self.case.comparisons():
            operand, size = comparison.operand, WORD * comparison.count
            words = self._device.read(self._buffers[value_name(operand)], size).view(np.uint64)
            if comparison.is_exact:
                value = words.astype(f"u{itemsize(operand.dtype)}").view(operand.dtype)
                bound = np.zeros(comparison.count)
            else:
                value = words.view(np.float64)
                bound = self._device.read(self._buffers[bound_name(operand)], size).view(np.float64)
            learned[operand.name] = Expected((...,), value.reshape(operand.shape), bound.reshape(operand.shape))
        return learned

    def _changes(self, real: Comparison, index: int) -> Launch:
        operand = real.operand
        before = _pristine(operand) if operand.role == "inout" else ""
        return self._programs.changes(real, self._regions[operand.name], before, index, 2 * index)

    def _learning(self, comparison: Comparison, typical: float) -> Launch:
        name = comparison.operand.name
        return self._programs.learn(comparison, self._regions[name], self.case.agreement[name], typical)

    def _flags(self) -> Bytes:
        return self._device.read(self._buffers[FLAGS], self._flag_bytes).view(np.uint32)

    def modified_input(self) -> Defect | None:
        """As in HostMemory, and also the first change of any other memory that is kept."""
        names = list(compress(self._unchanging, self._digests() != self._expected_digests))
        if wrong := self._changed_input(operand for operand in self.case.inputs_only if operand.name in names):
            return wrong
        return Defect("wrote outside the output", f"into memory that is not its own: {names[0]}") if names else None

    def _fill(self) -> None:
        """Write everything that is kept, and take the hashes. What was learned is gone."""
        self.case.learned.clear()
        device, case = self._device, self.case
        kept = {name: self._buffers[name] for name in self._lengths}
        contents = self._contents()
        self._prepare(self._programs.fill(region, region.around) for _, region in contents).enqueue()
        for operand, region in contents:
            device.write(kept[region.name], case.content(operand), region.start)
        for operand, expected in () if case.agreement else case.compared():
            device.write(kept[positions_name(operand)], _bytes(_storage_positions(operand, expected.where)))
            if expected.value.dtype.kind in "iu":
                words = np.ascontiguousarray(expected.value).view(f"u{itemsize(operand.dtype)}")
                device.write(kept[value_name(operand)], _bytes(words.astype(np.uint64)))
            else:
                device.write(kept[value_name(operand)], _bytes(expected.value.astype(np.float64)))
                device.write(kept[bound_name(operand)], _bytes(expected.bound))
        self._has_learned, self._expected_digests = False, self._digests()

    def _contents(self) -> list[tuple[Operand, Region]]:
        """The operands that are read, each with the memory that keeps its content."""
        inputs = [(operand, self._regions[operand.name]) for operand in self.case.inputs_only]
        updated = [operand for operand in self.case.outputs if operand.role == "inout"]
        copies = [(operand, replace(self._regions[operand.name], name=_pristine(operand))) for operand in updated]
        return inputs + copies

    def _prepared(self, steps: Callable[[int], Iterable[Step]], poison: int) -> Prepared:
        """The steps before or after a run. They are prepared once, and again when the workspace changes."""
        key = (steps.__name__, poison)
        if key not in self._prepared_steps:
            self._prepared_steps[key] = self._prepare(steps(poison))
        return self._prepared_steps[key]

    def _before(self, poison: int) -> Iterable[Step]:
        yield Zero(FLAGS, 0, self._flag_bytes)
        for operand in self.case.outputs:
            if operand.role == "out":
                region = self._regions[operand.name]
                yield self._programs.fill(region, output_pattern(operand.dtype, poison))
        if self._workspace:
            yield self._programs.fill(self._workspace, self._workspace.around)

    def _after(self, poison: int) -> Iterable[Launch]:
        programs, case = self._programs, self.case
        flags = {operand.name: _FLAGS_EACH * index for index, operand in enumerate(case.outputs)}
        for operand in case.outputs:
            region, flag = self._regions[operand.name], flags[operand.name]
            yield programs.check_guards(region, flag)
            if operand.role == "out" and region.size:
                yield programs.check_written(operand, region, output_pattern(operand.dtype, poison), flag + 1)
        for slot, comparison in enumerate(case.comparisons()):
            name = comparison.operand.name
            yield programs.compare(comparison, self._regions[name], flags[name] + 3, 2 * slot)
        if self._workspace:
            yield programs.check_guards(self._workspace, _FLAGS_EACH * len(case.outputs))

    def _prepare(self, steps: Iterable[Step]) -> Prepared:
        return self._device.prepare(Plan(tuple(steps)), [self._programs.program], self._buffers, None)

    def _sums(self) -> Bytes:
        return self._device.read(self._buffers[SUMS], _SUM_BYTES * self._slots * self._programs.groups)

    def _sums_by_slot(self) -> NDArray[np.float64]:
        sums = self._sums().view(np.float64).reshape(self._slots, self._programs.groups).sum(axis=1)
        return np.asarray(sums, np.float64)

    def _sums_of_squares(self) -> tuple[float, float]:
        """Sums over the outputs of reals; other outputs leave no sums."""
        by_slot = self._sums_by_slot()
        real = [slot for slot, comparison in enumerate(self.case.comparisons()) if not comparison.is_exact]
        return float(sum(by_slot[2 * slot] for slot in real)), float(sum(by_slot[2 * slot + 1] for slot in real))

    def _digests(self) -> NDArray[np.uint64]:
        """A hash of each buffer whose content must not change."""
        if self._hashing is None:
            lengths = self._lengths
            launches = [self._programs.digest(name, lengths[name], slot) for slot, name in enumerate(self._unchanging)]
            self._hashing = self._prepare(launches)
        self._hashing.enqueue()
        by_slot = self._sums().view(np.uint64).reshape(self._slots, self._programs.groups)
        return np.asarray(by_slot.sum(axis=1, dtype=np.uint64)[: len(self._unchanging)])


def needed_bytes(case: VerificationCase, alignment: int) -> int:
    """Device memory that a case takes, without a workspace."""
    regions = {operand.name: storage_region(operand, alignment) for operand in case.operands}
    return sum(_lengths(case, regions).values())


def _lengths(case: VerificationCase, regions: Mapping[str, Region]) -> dict[str, int]:
    """Bytes of every buffer, by name: operands, copies of operands that are read and written, references."""
    lengths = {operand.name: regions[operand.name].length for operand in case.operands}
    updated = [operand for operand in case.outputs if operand.role == "inout"]
    lengths |= {_pristine(operand): regions[operand.name].length for operand in updated}
    for comparison in case.comparisons():
        operand = comparison.operand
        names = [positions_name(operand), value_name(operand)]
        if not comparison.is_exact:
            names.append(bound_name(operand))
        lengths |= dict.fromkeys(names, WORD * comparison.count)
    return lengths


def _pristine(operand: Operand) -> str:
    return f"{operand.name} before"


def _storage_positions(operand: Operand, where: tuple[object, ...]) -> NDArray[np.uint64]:
    """The storage position of every element that is compared."""
    return np.asarray(sum(map(np.multiply, indices(operand.shape, where), operand.strides)), np.uint64)


def _bytes(array: NDArray[np.generic]) -> Bytes:
    return np.ravel(array).view(np.uint8)
