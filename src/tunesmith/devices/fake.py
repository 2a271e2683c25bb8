"""A device for tests: it computes with NumPy, takes times from a model, and can give wrong results, hang and crash.

The device has one kernel, `gemm`. Its arguments are D, C, A, B; the sizes M, N, batch, K; the strides of rows, columns
and batches of D, C, A and B in elements; alpha; beta; and the seconds that one execution takes by the model. The
module's constants may hold `DataType` (NumPy's name), `Fault` (one of FAULTS), `Noise` (standard deviation of the
logarithm of the time) and `Drift` (relative increase of the time with every execution that was ever timed).
"""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tunesmith.records import Binary, Launch, OperandArgument, Plan, ScalarArgument, Target, UserError, Write, Zero

from .api import Api, FoundDevice
from .base import NOT_SUPPORTED, Buffer, Bytes, Device, LaunchError, Prepared, Program

ALIGNMENT = 64


def fake_target(kind: str = "GPU", compute_units: int = 8) -> Target:
    """The target of a small device of that kind ("GPU" or "CPU")."""
    return Target(
        api="fake",
        selector=f"fake:{kind}:{compute_units}",
        name=f"fake {kind}",
        kind=kind,
        architecture="fake",
        driver="1.0",
        compute_units=compute_units,
        max_work_group_size=1024,
        local_memory_bytes=48 * 1024,
        global_memory_bytes=1 << 30,
        max_allocation_bytes=1 << 28,
        last_level_cache_bytes=1 << 18,
        sub_group_size=32,
        double_precision=True,
    )


class Fake(Api):
    """Two devices that are always present. A search finds them only if the selector names them."""

    name = "fake"
    languages = ("fake",)

    def find(self) -> tuple[FoundDevice, ...]:
        return tuple(FoundDevice(target.name, target) for target in (fake_target("GPU"), fake_target("CPU")))

    def open(self, target: Target) -> Device:
        if target.name not in (known := [found.name for found in self.find()]):
            raise UserError("device", f"there is no {target.name}", f"give one of {', '.join(known)}")
        return FakeDevice(target)


@dataclass(frozen=True, slots=True)
class FakeMemory:
    """A part of an allocation. Memory around the part can be reached, as on a real device."""

    base: Bytes
    start: int
    size: int

    @property
    def bytes(self) -> Bytes:
        return self.base[self.start : self.start + self.size]


class FakeDevice(Device):
    """Executes plans when `synchronize` or `copy` is called. `time` only asks the model, so that tests are fast."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._random = np.random.default_rng(0)
        self._queue: list[FakePrepared] = []
        self._allocated = 0
        self._timed = 0
        self.broken_by = ""

    @property
    def alignment(self) -> int:
        return ALIGNMENT

    def allocate(self, size: int) -> Buffer:
        self._allocated += size
        if size > self.target.max_allocation_bytes or self._allocated > self.target.global_memory_bytes:
            self._allocated -= size
            raise LaunchError("out of memory", f"{size} bytes more than the fake device has")
        return FakeMemory(np.zeros(size, np.uint8), 0, size)

    def view(self, buffer: Buffer, offset: int, size: int) -> Buffer:
        if offset % ALIGNMENT or offset + size > buffer.size:
            raise ValueError(f"no view of {size} bytes at {offset} in a buffer of {buffer.size}")
        return FakeMemory(buffer.base, buffer.start + offset, size)

    def write(self, buffer: Buffer, data: Bytes, offset: int = 0) -> None:
        buffer.bytes[offset : offset + len(data)] = data

    def read(self, buffer: Buffer, size: int, offset: int = 0) -> Bytes:
        return np.array(buffer.bytes[offset : offset + size])

    def copy(self, source: Buffer, target: Buffer, size: int, source_offset: int = 0, target_offset: int = 0) -> None:
        self.synchronize()
        target.bytes[target_offset : target_offset + size] = source.bytes[source_offset : source_offset + size]

    def wrap(self, array: NDArray[Any]) -> Buffer | None:
        flat = array.reshape(-1).view(np.uint8)
        return FakeMemory(flat, 0, flat.size)

    def load(self, binary: Binary) -> Program:
        return binary

    def prepare(
        self, plan: Plan, programs: Sequence[Program], operands: Mapping[str, Buffer], workspace: Buffer | None
    ) -> Prepared:
        return FakePrepared(self, plan, programs, operands, workspace)

    def time(self, executions: Sequence[Prepared]) -> float:
        return sum(self._seconds(prepared) for prepared in executions if isinstance(prepared, FakePrepared))

    def synchronize(self) -> None:
        queue, self._queue = self._queue, []
        for prepared in queue:
            prepared.execute()

    def release(self, *buffers: Buffer) -> None:
        self._allocated -= sum(buffer.size for buffer in buffers)

    def close(self) -> None:
        self._queue.clear()

    def enqueue(self, prepared: FakePrepared) -> None:
        """Queue a plan. If an earlier program broke the context, any other program crashes the process here."""
        if self.broken_by and self.broken_by != prepared.module:
            os.kill(os.getpid(), signal.SIGSEGV)
        self._queue.append(prepared)

    def _seconds(self, prepared: FakePrepared) -> float:
        prepared.check("time")
        self._timed += 1
        seconds = prepared.seconds * (1 + prepared.constants.get("Drift", 0.0) * self._timed)
        noise = prepared.constants.get("Noise", 0.0)
        return float(seconds * np.exp(noise * self._random.standard_normal())) if noise else float(seconds)


class FakePrepared(Prepared):
    """A plan with its memory."""

    def __init__(
        self,
        device: FakeDevice,
        plan: Plan,
        programs: Sequence[Program],
        operands: Mapping[str, Buffer],
        workspace: Buffer | None,
    ) -> None:
        self._device, self._plan, self._operands, self._workspace = device, plan, operands, workspace
        for launch in (step for step in plan.steps if isinstance(step, Launch)):
            if (items := math.prod(launch.work_group)) > (most := device.target.max_work_group_size):
                raise LaunchError("invalid work-group size", f"{items} work-items, the device allows {most}")
        self.module: str = programs[0].module
        self.constants: dict[str, Any] = json.loads(programs[0].payload)
        self.fault: str = self.constants.get("Fault", "")
        self.check("prepare")

    @property
    def seconds(self) -> float:
        return float(sum(_scalars(step)[-1] for step in self._plan.steps if isinstance(step, Launch)))

    def enqueue(self) -> None:
        self._device.enqueue(self)

    def check(self, moment: str) -> None:
        """Fail, if the module's constants ask for a failure at this moment."""
        failure_moment, fail = _FAILURES.get(self.fault, ("never", _hang))
        if failure_moment == moment:
            fail()

    def execute(self) -> None:
        self.check("execute")
        for step in self._plan.steps:
            match step:
                case Zero(operand, offset, size):
                    memory = self._operands[operand] if operand else self._workspace
                    assert memory is not None
                    memory.bytes[offset : offset + size] = 0
                case Write(offset, data):
                    assert self._workspace is not None
                    self._workspace.bytes[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
                case Launch():
                    call = _Gemm.of(step, self._operands, np.dtype(self.constants["DataType"]))
                    call.d[...] = _WRONG_RESULTS.get(self.fault, _Gemm.result)(call)
                    if damage := _DAMAGES.get(self.fault):
                        damage(call)
        if self.fault == "break the next":
            self._device.broken_by = self.module


def _scalars(launch: Launch) -> list[int | float]:
    return [argument.value for argument in launch.arguments if isinstance(argument, ScalarArgument)]


def _view(memory: FakeMemory, dtype: np.dtype[Any], shape: Sequence[float], strides: Sequence[float]) -> NDArray[Any]:
    whole = memory.bytes[: memory.size // dtype.itemsize * dtype.itemsize].view(dtype)
    return as_strided(whole, [int(extent) for extent in shape], [int(stride) * dtype.itemsize for stride in strides])


@dataclass(frozen=True)
class _Gemm:
    """One call: logical arrays in the operands' memory (M x N, M x N, M x K, K x N, each with the batch last)."""

    d: NDArray[Any]
    c: NDArray[Any]
    a: NDArray[Any]
    b: NDArray[Any]
    alpha: float
    beta: float
    output: FakeMemory

    @staticmethod
    def of(launch: Launch, operands: Mapping[str, FakeMemory], dtype: np.dtype[Any]) -> _Gemm:
        names = [argument.name for argument in launch.arguments if isinstance(argument, OperandArgument)]
        memories = [operands[name] for name in names]
        m, n, batch, k, *rest = _scalars(launch)
        shapes = [(m, n, batch), (m, n, batch), (m, k, batch), (k, n, batch)]
        d, c, a, b = (
            _view(memory, dtype, shape, rest[3 * index : 3 * index + 3])
            for index, (memory, shape) in enumerate(zip(memories, shapes, strict=True))
        )
        return _Gemm(d, c, a, b, rest[12], rest[13], memories[0])

    def result(self, k: int | None = None) -> NDArray[Any]:
        """The right D, or with `k` the D from the first `k` terms of each sum only."""
        # Contiguous matrices, since NumPy multiplies other matrices without BLAS, ten times slower.
        a, b = (np.ascontiguousarray(np.moveaxis(matrices, 2, 0)) for matrices in (self.a[:, :k], self.b[:k]))
        product = np.moveaxis(a @ b, 0, 2)
        return np.asarray(self.alpha * product + (self.beta * self.c if self.beta else 0.0))

    def scribble(self, offset: int) -> None:
        """Overwrite an element at an offset in bytes from the output's first byte, inside or outside the output."""
        first = self.output.start + offset
        self.output.base[first : first + self.d.itemsize] = 1


def _wrong_value(call: _Gemm) -> None:
    call.d[-1, 0, 0] *= 1.5


def _modified_input(call: _Gemm) -> None:
    call.a[0, 0, 0] += 1


def _without_the_last(call: _Gemm) -> NDArray[Any]:
    result = call.result()
    result[-1, -1, -1] = call.d[-1, -1, -1]
    return result


_WRONG_RESULTS: dict[str, Callable[[_Gemm], NDArray[Any]]] = {
    "unwritten element": _without_the_last,
    # An initialisation is missing: the result is combined with the output's old content.
    "maximum with the old": lambda call: np.fmax(call.result(), call.d),
    "minimum with the old": lambda call: np.fmin(call.result(), call.d),
    "skip the last K": lambda call: call.result(call.a.shape[1] - 1),
    # Only for square problems: with others it would read beyond the operands.
    "swap operands": lambda call: replace(call, a=call.b, b=call.a).result(),
    "index off by one": lambda call: np.roll(call.result(), 1, axis=0),
}
"""Programs that finish with a wrong result."""

_DAMAGES: dict[str, Callable[[_Gemm], None]] = {
    "wrong value": _wrong_value,
    "modify an input": _modified_input,
    "write past the end": lambda call: call.scribble(call.output.size),
    "write before the start": lambda call: call.scribble(-call.d.itemsize),
    "write between rows": lambda call: call.scribble(call.d.shape[0] * call.d.itemsize),
}
"""Programs that compute the right result and then damage memory. `write between rows` does no damage if the leading
dimension is the number of rows."""


def _signal(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


def _hang() -> None:
    while True:
        signal.pause()


def _launch_error(reason: str, poisoned: bool) -> Callable[[], None]:
    def fail() -> None:
        raise LaunchError(reason, "the fake device was told to fail", poisoned)

    return fail


_FAILURES: dict[str, tuple[str, Callable[[], None]]] = {
    "out of memory": ("prepare", _launch_error("out of memory", False)),
    "launch error": ("execute", _launch_error("invalid launch", False)),
    "refusal": ("execute", _launch_error(NOT_SUPPORTED, False)),
    "poison": ("execute", _launch_error("illegal address", True)),
    "segfault": ("execute", _signal(signal.SIGSEGV)),
    "abort": ("execute", _signal(signal.SIGABRT)),
    "hang": ("execute", _hang),
    "segfault when timed": ("time", _signal(signal.SIGSEGV)),
    "hang when timed": ("time", _hang),
}
"""Programs that do not finish: the moment of the failure, and the failure."""

FAULTS = (*_WRONG_RESULTS, *_DAMAGES, *_FAILURES, "break the next")
"""With `break the next`, the program runs well, but the next other program in the same process crashes."""
