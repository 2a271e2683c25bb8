"""Plans that are carried out on other memory and streams each time: what the driver is told then, without one."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from cuda_runner import H200, cuda_device, toolchain
from tunesmith.devices import _cuda_program, _cuda_repeated
from tunesmith.devices._cuda_arguments import Convention
from tunesmith.devices._cuda_program import REMEMBERED_MAPS, Kernel, LoadedModule, Repeated
from tunesmith.devices._cuda_repeated import RepeatedPlan
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import (
    Configuration,
    GemmCall,
    Launch,
    Module,
    OperandArgument,
    Plan,
    Problem,
    ScalarArgument,
    TensorMapArgument,
    WorkspaceArgument,
    Write,
    Zero,
)

MAP = TensorMapArgument("A", "float32", (3, 44, 36), (2112, 48, 1), (1, 16, 64))
ARGUMENTS = (ScalarArgument(5, "int32"), MAP, OperandArgument("D"), WorkspaceArgument(64))
LAUNCH = Launch(0, "gemm", (7, 2, 3), (128, 1, 1), ARGUMENTS)


class Driver:
    """Stands in for the driver: `log` has what it was told, each launch with its parameters as they were then."""

    def __init__(self, monkeypatch, parameters: tuple[int, ...]) -> None:
        self.log: list[tuple[object, ...]] = []
        self.encoded: list[int] = []
        self._sizes = parameters
        for module in (_cuda_program, _cuda_repeated):
            monkeypatch.setattr(module, "call", self.call)
        monkeypatch.setattr(_cuda_program, "encoded", self.encode)

    def encode(self, tensor_map) -> bytes:
        self.encoded.append(tensor_map.address)
        return tensor_map.address.to_bytes(8, "little") * 16

    def call(self, name: str, *given: object) -> None:
        if name == "cuLaunchKernel":
            _, *grid, stream, pointer, _ = given
            addresses = (ctypes.c_void_p * len(self._sizes)).from_address(pointer)
            values = [ctypes.string_at(address, size) for address, size in zip(addresses, self._sizes, strict=True)]
            given = (tuple(grid), stream, *values)
        self.log.append((name, *given))

    @property
    def launched(self) -> list[tuple[object, ...]]:
        return [entry[1:] for entry in self.log if entry[0] == "cuLaunchKernel"]


def program(**convention) -> LoadedModule:
    return LoadedModule({"gemm": Kernel("function")}, Convention.of(Configuration(convention)))


def word(value: int) -> bytes:
    return value.to_bytes(8, "little")


def at(a: int, d: int, workspace: int = 0x9000) -> dict[str, int]:
    return {"": workspace, "A": a, "B": 0xB000, "C": d, "D": d}


@pytest.mark.parametrize("sizes", [False, True])
def test_a_launch_moves_to_other_addresses_in_pointers_and_in_tensor_maps(monkeypatch, sizes):
    """Also where a map's shape and strides follow it as parameters of their own, as Triton passes them."""
    behind = (4, 4, 4, 8, 8, 8) if sizes else ()
    driver = Driver(monkeypatch, (4, 128, *behind, 8, 8))
    plan = RepeatedPlan("ours", Plan((LAUNCH,)), [program(tensor_map_sizes=sizes)], at(0x1000, 0x2000))
    for stream, where in ((5, at(0x1000, 0x2000)), (6, at(0x3000, 0x4000, 0x8000))):
        plan.enqueue(stream, where)
    for (grid, stream, *values), (on, a, d, workspace) in zip(
        driver.launched, [(5, 0x1000, 0x2000, 0x9000), (6, 0x3000, 0x4000, 0x8000)], strict=True
    ):
        assert (grid, stream) == ((7, 2, 3, 128, 1, 1, 0), on)
        assert values[:2] == [np.int32(5).tobytes(), word(a) * 16]
        assert values[2 + len(behind) :] == [word(d), word(workspace + 64)]
        if sizes:
            assert values[2:5] == [np.int32(extent).tobytes() for extent in MAP.shape]


def test_a_tensor_map_is_encoded_once_for_each_address(monkeypatch):
    driver = Driver(monkeypatch, (4, 128, 8, 8))
    repeated = Repeated(LAUNCH, program(), at(0x1000, 0x2000))
    for a in (0x1000, 0x3000, 0x1000, 0x3000, 0x3000):
        repeated.move(at(a, 0x2000))
        repeated.enqueue(1, 7)
    assert driver.encoded == [0x1000, 0x3000]
    assert [values[3][:8] for values in driver.launched] == [word(a) for a in (0x1000, 0x3000, 0x1000, 0x3000, 0x3000)]
    for place in range(2 * REMEMBERED_MAPS):
        repeated.move(at(0x10000 + 16 * place, 0x2000))
    assert len(repeated._places.maps[0].encodings) <= REMEMBERED_MAPS


def test_work_goes_in_order_on_the_stream_in_the_devices_context(monkeypatch):
    """Setup first, every time: somebody else may have used the workspace."""
    driver = Driver(monkeypatch, (4, 128, 8, 8))
    plan = Plan((Zero("", 16, 32), Zero("D", 0, 64), LAUNCH), 256, setup=(Write(8, b"table"),))
    RepeatedPlan("ours", plan, [program()], at(0x1000, 0x2000)).enqueue(5, at(0x1000, 0x2000))
    copied = driver.log[1]
    assert (copied[0], copied[1], *copied[3:]) == ("cuMemcpyHtoDAsync", 0x9008, 5, 5)
    assert [entry[0] for entry in driver.log] == [
        *("cuCtxPushCurrent", "cuMemcpyHtoDAsync", "cuMemsetD8Async", "cuMemsetD8Async", "cuLaunchKernel"),
        "cuCtxPopCurrent",
    ]
    assert [entry[1:] for entry in driver.log if entry[0] == "cuMemsetD8Async"] == [
        (0x9010, 0, 32, 5),
        (0x2000, 0, 64, 5),
    ]


def test_the_context_is_given_back_after_a_refusal(monkeypatch):
    driver = Driver(monkeypatch, (4, 128, 8, 8))
    plan = RepeatedPlan("ours", Plan((LAUNCH,)), [program()], at(0x1000, 0x2000))
    with pytest.raises(KeyError):
        plan.enqueue(5, {})
    assert driver.log[-1] == ("cuCtxPopCurrent",)


def test_a_call_of_the_vendors_blas_is_bound_once_for_each_stream_and_memory(monkeypatch):
    Driver(monkeypatch, ())
    family, problem = KERNELS["VendorBlas"], Problem(gemm_type(), (4, 5, 6))
    (step,) = family.plan(family.space(problem.type).defaults, problem, H200).steps
    bound, called = [], []

    def gemm(given: GemmCall, addresses, stream):
        bound.append((stream, addresses["A"]))
        return lambda where=bound[-1]: called.append(where)

    plan = RepeatedPlan("ours", Plan((step,)), [SimpleNamespace(gemm=gemm)], at(0x1000, 0x2000))
    for stream, a in ((5, 0x1000), (5, 0x1000), (6, 0x1000), (5, 0x3000), (5, 0x1000)):
        plan.enqueue(stream, at(a, 0x2000))
    assert bound == [(5, 0x1000), (6, 0x1000), (5, 0x3000)]
    assert called == [(5, 0x1000), (5, 0x1000), (6, 0x1000), (5, 0x3000), (5, 0x1000)]


@pytest.mark.gpu
def test_on_a_gpu_each_execution_writes_where_it_is_told():
    source = 'extern "C" __global__ void fill(int *out, int value) { out[threadIdx.x] = value; }'
    compiler, device = toolchain("CUDA"), cuda_device()
    loaded = device.load(compiler.compile(Module("CUDA", source, ("fill",)), device.target))
    launch = Launch(0, "fill", (1, 1, 1), (16, 1, 1), (OperandArgument("D"), ScalarArgument(9, "int32")))
    pieces = [device.allocate(64) for _ in range(3)]
    for piece in pieces:
        device.write(piece, np.zeros(64, np.uint8))
    with device.on(None):
        plan = device.repeated_plan(Plan((launch,)), [loaded], {"D": pieces[0].address})
    for piece in pieces[1:]:
        plan.enqueue(0, {"D": piece.address})
    with device.on(0):
        device.synchronize()
        assert not device.capturing()
    assert [int(device.read(piece, 64).view(np.int32).sum()) for piece in pieces] == [0, 144, 144]
