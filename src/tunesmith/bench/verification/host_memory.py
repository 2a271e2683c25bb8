"""Guarded device memory for a case, and verification by looking at every byte on the host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from tunesmith.devices import Buffer, Device, Program
from tunesmith.records import Operand, Plan

from .case import VerificationCase
from .poison import Bytes, filled
from .regions import WORKSPACE, Region, storage_region, workspace_region
from .run_inspection import Left, Seen, Traces, Wrong, not_zeroed, touched


class HostMemory:
    """What is only read is written once, the rest before every run. Use it as a context manager."""

    def __init__(self, device: Device, case: VerificationCase) -> None:
        self.case, self._device = case, device
        self._regions = {operand.name: storage_region(operand, device.alignment) for operand in case.operands}
        self._buffers: dict[str, Buffer] = {}
        self._workspace: Region | None = None

    def __enter__(self) -> Self:
        try:
            for name, region in self._regions.items():
                self._buffers[name] = self._device.allocate(region.length)
            for name, image in self.case.images(self._regions).items():
                self._device.write(self._buffers[name], image)
        except BaseException:
            self.release()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def release(self) -> None:
        """Give all memory back."""
        self._device.release(*self._buffers.values())
        self._buffers.clear()

    def run(self, programs: Sequence[Program], plan: Plan, poison: int) -> Traces:
        """Carry the plan out once, outputs and workspace holding what they held before no other run. LaunchError."""
        self._provide(plan.workspace_bytes)
        for region, image in self._images(poison):
            self._device.write(self._buffers[region.name], image)
        self._carry_out(programs, plan)
        return self._seen(poison)

    def not_zeroed(self, plan: Plan) -> Wrong | None:
        """What the last run should have zeroed again for the next one."""
        if not plan.zeroed or not self._workspace:
            return None
        return not_zeroed(self._device.read(self._buffers[WORKSPACE], plan.zeroed, self._workspace.start))

    def modified_input(self) -> Wrong | None:
        """What was changed of what no run may change: the inputs and what surrounds them."""
        return self._touched(self.case.inputs_only)

    def _provide(self, workspace_bytes: int) -> bool:
        """Memory for a workspace of that size; whether it is not the last one's."""
        region = workspace_region(workspace_bytes, self._device.alignment) if workspace_bytes else None
        if region == self._workspace:
            return False
        if self._workspace:
            self._workspace = None
            self._device.release(self._buffers.pop(WORKSPACE))
        if region:
            self._buffers[WORKSPACE] = self._device.allocate(region.length)
            self._workspace = region
        return True

    def _carry_out(self, programs: Sequence[Program], plan: Plan) -> None:
        parts = {name: self._storage(region) for name, region in self._regions.items()}
        workspace = self._storage(self._workspace) if self._workspace else None
        self._device.prepare(plan.from_scratch, programs, parts, workspace).enqueue()

    def _images(self, poison: int) -> list[tuple[Region, Bytes]]:
        """What a run may write, and the bytes that it finds there: outputs, poisoned, and the workspace, which comes
        with whatever was left in it."""
        regions = [(operand, self._regions[operand.name]) for operand in self.case.outputs]
        found = [(region, region.image(self.case.before(operand, region, poison))) for operand, region in regions]
        if self._workspace:
            found.append((self._workspace, filled(self._workspace.around, self._workspace.length)))
        return found

    def _seen(self, poison: int) -> Seen:
        self._device.synchronize()
        return Seen(
            self.case, poison, {region.name: self._left(region, image) for region, image in self._images(poison)}
        )

    def _touched(self, operands: Iterable[Operand]) -> Wrong | None:
        """What was changed of these inputs, and around them."""
        for operand in operands:
            image = self.case.images(self._regions)[operand.name]
            if wrong := touched(operand, self._left(self._regions[operand.name], image)):
                return wrong
        return None

    def _left(self, region: Region, image: Bytes) -> Left:
        return Left(region, image, self._device.read(self._buffers[region.name], region.length))

    def _storage(self, region: Region) -> Buffer:
        return self._device.view(self._buffers[region.name], region.start, max(region.size, 1))
