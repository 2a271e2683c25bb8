"""Verification by looking at every byte on the host: for devices that have no programs of ours."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith.devices import Buffer, Device, Program
from tunesmith.records import Plan

from ._case import Case
from ._poison import Bytes
from ._regions import WORKSPACE, Region, garbage, storage_region, workspace_region
from ._traces import Left, Seen, Wrong, not_zeroed, touched


class HostMemory:
    """Guarded device memory for a case: what is only read is written once, the rest before every run."""

    def __init__(self, device: Device, case: Case) -> None:
        self._device, self._case = device, case
        self._regions = {operand.name: storage_region(operand, device.alignment) for operand in case.operands}
        self._inputs = case.images(self._regions)
        self._whole: dict[str, Buffer] = {}

    def __enter__(self) -> HostMemory:
        try:
            for name, image in self._inputs.items():
                self._put(name, image)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._device.release(*self._whole.values())

    def run(self, programs: Sequence[Program], plan: Plan, poison: int) -> Seen:
        device, before = self._device, self._before(plan, poison)
        for region, image in before:
            self._put(region.name, image)
        regions = self._regions | {region.name: region for region, _ in before}
        parts = {name: device.view(self._whole[name], r.start, max(r.size, 1)) for name, r in regions.items()}
        workspace = parts.pop(WORKSPACE, None)
        device.prepare(plan.from_scratch, programs, parts, workspace).enqueue()
        device.synchronize()
        left = {region.name: self._left(region, image) for region, image in before}
        return Seen(self._case, poison, left)

    def not_zeroed(self, plan: Plan) -> Wrong | None:
        if not plan.zeroed:
            return None
        region = workspace_region(plan.workspace_bytes, self._device.alignment)
        return not_zeroed(self._device.read(self._whole[WORKSPACE], plan.zeroed, region.start))

    def modified_input(self) -> Wrong | None:
        """What no run may have touched: the inputs and what surrounds them."""
        for operand in self._case.operands:
            if (image := self._inputs.get(operand.name)) is not None:
                wrong = touched(operand, self._left(self._regions[operand.name], image))
                if wrong:
                    return wrong
        return None

    def _before(self, plan: Plan, poison: int) -> list[tuple[Region, Bytes]]:
        """What a run may write, and the bytes that it finds there: outputs, poisoned, and the workspace."""
        found = []
        for operand in self._case.outputs:
            region = self._regions[operand.name]
            found.append((region, region.image(self._case.before(operand, region, poison))))
        if plan.workspace_bytes:
            region = workspace_region(plan.workspace_bytes, self._device.alignment)
            found.append((region, region.image(garbage(region))))
        return found

    def _left(self, region: Region, image: Bytes) -> Left:
        return Left(region, image, self._device.read(self._whole[region.name], region.length))

    def _put(self, name: str, image: Bytes) -> None:
        if name not in self._whole:
            self._whole[name] = self._device.allocate(len(image))
        self._device.write(self._whole[name], image)
