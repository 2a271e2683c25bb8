"""Plans on streams of their own, for tests of what runs beside other work on a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from cuda_runner import cuda_device
from tunesmith.devices import Program
from tunesmith.problems import OPERATIONS
from tunesmith.records import Plan, Problem


class Running:
    """A plan bound to memory of its own on a stream of its own."""

    def __init__(self, programs: Sequence[Program], plan: Plan, asked: Problem) -> None:
        from tunesmith.devices.cuda.driver import call

        device, operation = cuda_device(), OPERATIONS[asked.type.operation]
        self._call, self.stream = call, call("cuStreamCreate", 1)
        d = next(operand for operand in operation.operands(asked) if operand.role == "out")
        self.size = d.storage_elements * np.dtype(d.dtype).itemsize
        inputs = operation.inputs(asked, np.random.default_rng(5))
        self.memory = {name: device.allocate(array.nbytes) for name, array in inputs.items()}
        for name, array in inputs.items():
            device.write(self.memory[name], array.view(np.uint8))
        self.memory["D"] = device.allocate(self.size)
        self.workspace = device.allocate(plan.workspace_bytes)
        device.write(self.workspace, np.full(plan.workspace_bytes, 0xFF, np.uint8))
        with device.on(int(self.stream)):
            device.prepare(plan.preparation, programs, self.memory, self.workspace).enqueue()
            self.prepared = device.prepare(plan, programs, self.memory, self.workspace)

    def synchronize(self) -> None:
        self._call("cuStreamSynchronize", self.stream)

    def result(self) -> bytes:
        self.synchronize()
        return cuda_device().read(self.memory["D"], self.size).tobytes()

    def close(self) -> None:
        cuda_device().release(*self.memory.values(), self.workspace)
        self._call("cuStreamDestroy", self.stream)


@contextmanager
def running(*launches: tuple[Sequence[Program], Plan, Problem]) -> Iterator[list[Running]]:
    all_ = [Running(*launch) for launch in launches]
    try:
        yield all_
    finally:
        for bound in all_:
            bound.close()


def repeats_beside(asked: Running, other: Running) -> None:
    """The same bits a hundred times, whatever part of the GPU another stream's work leaves."""
    asked.prepared.enqueue()
    first = asked.result()
    for _ in range(100):
        other.prepared.enqueue()
        asked.prepared.enqueue()
        other.prepared.enqueue()
        assert asked.result() == first
