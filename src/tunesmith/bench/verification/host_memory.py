"""Guarded device memory for a case. The host verifies a run by looking at every byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np

from tunesmith.devices import Buffer, Device, Prepared, Program
from tunesmith.problems import Expected
from tunesmith.records import Operand, Plan

from .case import VerificationCase
from .poison import POISONS, Bytes, filled
from .regions import WORKSPACE, Region, storage_region, workspace_region
from .run_inspection import (
    Defect,
    HostInspection,
    RegionBytes,
    RunInspection,
    changed_input,
    not_finite,
    not_zeroed,
    root_mean,
)


class HostMemory:
    """Memory for a case: inputs are written once, outputs before every run. Use it as a context manager."""

    def __init__(self, device: Device, case: VerificationCase) -> None:
        self.case, self._device = case, device
        self._regions = {operand.name: storage_region(operand, device.alignment) for operand in case.operands}
        self._buffers: dict[str, Buffer] = {}
        self._workspace: Region | None = None
        self._bound: tuple[Plan, Sequence[Program], Prepared] | None = None
        """The last plan and programs, bound to this memory: a plan runs once for each poison."""

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
        """Free all memory."""
        self._bound = None
        self._device.release(*self._buffers.values())
        self._buffers.clear()

    def run(self, programs: Sequence[Program], plan: Plan, poison: int) -> RunInspection:
        """Carry the plan out once, with freshly filled outputs and workspace. Raises LaunchError."""
        self._execute(programs, plan, poison)
        return self._inspection(poison)

    @property
    def awaits_first(self) -> bool:
        """Whether the case needs the results of a first launch."""
        return bool(self.case.agreement) and not self.case.learned

    def learn(self, programs: Sequence[Program], plan: Plan) -> Defect | None:
        """Make the results of a plan what later runs are compared with; or say why they cannot be. Raises LaunchError.

        The bound of a real is the case's `agreement` times its own magnitude and the root mean square of all that the
        run changed.
        """
        self._execute(programs, plan, POISONS[0])
        inspection, learned = self._inspection(POISONS[0]), {}
        for comparison in self.case.comparisons():
            operand = comparison.operand
            after, changed = inspection.result(operand)
            bound = np.zeros(operand.shape)
            if not comparison.is_exact:
                if not np.isfinite(after).all():
                    return not_finite(operand)
                squares = after[changed] ** 2
                typical = root_mean(float(squares.sum()), squares.size)
                bound = self.case.agreement[operand.name] * (np.abs(after) + typical)
            learned[operand.name] = Expected((...,), after, bound)
        self.case.learned.update(learned)
        return None

    def not_zeroed(self, plan: Plan) -> Defect | None:
        """The first byte of the workspace that the last run should have zeroed for the next run."""
        if not plan.zeroed or not self._workspace:
            return None
        return not_zeroed(self._device.read(self._buffers[WORKSPACE], plan.zeroed, self._workspace.start))

    def modified_input(self) -> Defect | None:
        """The first change of an input or its guard bands, which no run may change."""
        return self._changed_input(self.case.inputs_only)

    def _provide_workspace(self, workspace_bytes: int) -> bool:
        """Allocate a workspace of that size; returns whether it differs from the last run's."""
        region = workspace_region(workspace_bytes, self._device.alignment) if workspace_bytes else None
        if region == self._workspace:
            return False
        self._bound = None
        if self._workspace:
            self._workspace = None
            self._device.release(self._buffers.pop(WORKSPACE))
        if region:
            self._buffers[WORKSPACE] = self._device.allocate(region.length)
            self._workspace = region
        return True

    def _execute(self, programs: Sequence[Program], plan: Plan, poison: int) -> None:
        self._provide_workspace(plan.workspace_bytes)
        for region, image in self._images(poison):
            self._device.write(self._buffers[region.name], image)
        self._carry_out(programs, plan)

    def _carry_out(self, programs: Sequence[Program], plan: Plan) -> None:
        if self._bound is None or self._bound[0] is not plan or self._bound[1] is not programs:
            parts = {name: self._storage(region) for name, region in self._regions.items()}
            workspace = self._storage(self._workspace) if self._workspace else None
            self._bound = plan, programs, self._device.prepare(plan.from_scratch, programs, parts, workspace)
        self._bound[2].enqueue()

    def _images(self, poison: int) -> list[tuple[Region, Bytes]]:
        """The regions that a run may write, with their bytes before the run: poisoned outputs, and a workspace that
        holds garbage."""
        regions = [(operand, self._regions[operand.name]) for operand in self.case.outputs]
        images = [(region, region.image(self.case.before(operand, region, poison))) for operand, region in regions]
        if self._workspace:
            images.append((self._workspace, filled(self._workspace.around, self._workspace.length)))
        return images

    def _inspection(self, poison: int) -> HostInspection:
        self._device.synchronize()
        return HostInspection(
            self.case,
            poison,
            {region.name: self._region_bytes(region, image) for region, image in self._images(poison)},
        )

    def _changed_input(self, operands: Iterable[Operand]) -> Defect | None:
        """The first change of these inputs or their guard bands."""
        for operand in operands:
            image = self.case.images(self._regions)[operand.name]
            if wrong := changed_input(operand, self._region_bytes(self._regions[operand.name], image)):
                return wrong
        return None

    def _region_bytes(self, region: Region, image: Bytes) -> RegionBytes:
        return RegionBytes(region, image, self._device.read(self._buffers[region.name], region.length))

    def _storage(self, region: Region) -> Buffer:
        return self._device.view(self._buffers[region.name], region.start, max(region.size, 1))
