"""Repeated plans on other memory and streams each time: the calls that a fake driver gets."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from cublas_fakes import FakeCuBlas
from cuda_runner import H200, cuda_device, toolchain
from tunesmith.devices import LaunchError
from tunesmith.devices.cuda import program as _cuda_program
from tunesmith.devices.cuda import repeated
from tunesmith.devices.cuda.arguments import ALIGNMENT, Convention, Parameters, TensorMap
from tunesmith.devices.cuda.cublas import CuBlas
from tunesmith.devices.cuda.program import (
    TENSOR_MAP_BYTES,
    CudaFunction,
    LaunchAttribute,
    LaunchConfig,
    LoadedModule,
    RepeatedLaunch,
    _MovableMap,
    encoded,
)
from tunesmith.devices.cuda.repeated import RepeatedPlan
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import (
    Configuration,
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
CONTEXT, FUNCTION = 0xC0, 0xF0


class Driver:
    """A fake driver. `log` holds the calls; a launch has its parameters as they were at that moment. A function that is
    in `status` fails with that status."""

    def __init__(self, monkeypatch, parameters, **status):
        self.log: list[tuple[object, ...]] = []
        self.encoded: list[int] = []
        self._sizes, self._status = parameters, status
        for module in (_cuda_program, repeated):
            monkeypatch.setattr(module, "driver_function", self.entry)
        monkeypatch.setattr(_cuda_program, "encoded", self.encode)

    def encode(self, tensor_map):
        self.encoded.append(tensor_map.address)
        return word(tensor_map.address) * 16

    def entry(self, name):
        arguments_of = {
            "cuLaunchKernelEx": self._launch,
            "cuTensorMapReplaceAddress": self._replace,
            "cuCtxPopCurrent_v2": lambda popped: (),
        }.get(name, lambda *arguments: tuple(argument.value for argument in arguments))

        def called(*arguments):
            self.log.append((name, *arguments_of(*arguments)))
            return self._status.get(name, 0)

        return called

    def _launch(self, config, function, parameters, extra):
        assert (function.value, extra) == (FUNCTION, None)
        addresses = (ctypes.c_void_p * len(self._sizes)).from_address(parameters.value)
        values = [ctypes.string_at(address, size) for address, size in zip(addresses, self._sizes, strict=True)]
        *shape, stream, attributes, count = (getattr(config._obj, name) for name, _ in LaunchConfig._fields_)
        assert (attributes, count) == (None, 0)
        return (tuple(shape), stream, *values)

    def _replace(self, tensor_map, address):
        location = ctypes.addressof(tensor_map._obj)
        assert location % ALIGNMENT == 0
        ctypes.memmove(location, word(address.value) * 16, 128)
        return (address.value,)

    def calls_of(self, name):
        return [entry[1:] for entry in self.log if entry[0] == name]

    @property
    def launched(self):
        return self.calls_of("cuLaunchKernelEx")


def program(**convention):
    return LoadedModule({"gemm": CudaFunction(FUNCTION)}, Convention.of(Configuration(convention)))


def word(value):
    return value.to_bytes(8, "little")


def at(a, d, workspace=0x9000):
    return {"": workspace, "A": a, "B": 0xB000, "C": d, "D": d}


@pytest.mark.parametrize("sizes", [False, True])
def test_a_launch_moves_to_other_addresses_in_pointers_and_in_tensor_maps(monkeypatch, sizes):
    """Also if a map's shape and strides follow it as parameters, as in Triton's kernels."""
    behind = (4, 4, 4, 8, 8, 8) if sizes else ()
    driver = Driver(monkeypatch, (4, 128, *behind, 8, 8))
    plan = RepeatedPlan(CONTEXT, Plan((LAUNCH,)), [program(tensor_map_sizes=sizes)], at(0x1000, 0x2000))
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


def test_a_tensor_map_is_encoded_once_and_then_only_its_address_is_replaced_where_it_is_another(monkeypatch):
    driver = Driver(monkeypatch, (4, 128, 8, 8))
    plan = RepeatedPlan(CONTEXT, Plan((LAUNCH,)), [program()], at(0x1000, 0x2000))
    for a in (0x1000, 0x3000, 0x1000, 0x3000, 0x3000):
        plan.enqueue(1, at(a, 0x2000))
    assert driver.encoded == [0x1000]
    assert driver.calls_of("cuTensorMapReplaceAddress") == [(0x3000,), (0x1000,), (0x3000,)]
    assert [values[3] for values in driver.launched] == [word(a) * 16 for a in (0x1000, 0x3000, 0x1000, 0x3000, 0x3000)]


def test_a_part_of_the_workspace_moves_with_the_workspace(monkeypatch):
    """A tensor map of it lies at its offset, as a pointer does."""
    driver = Driver(monkeypatch, (128, 8))
    part = TensorMapArgument("", "float32", (4, 4), (4, 1), (4, 4), offset=0x200)
    step = Launch(0, "gemm", (7, 2, 3), (128, 1, 1), (part, WorkspaceArgument(0x40)), shared_bytes=50)
    loaded = program(dynamic_shared_bytes=1000)
    plan = RepeatedPlan(CONTEXT, Plan((step,)), [loaded], at(0x1000, 0x2000))
    assert not loaded.kernels["gemm"].launched
    for workspace in (0x9000, 0x9000, 0x8000):
        plan.enqueue(5, at(0x1000, 0x2000, workspace))
    assert loaded.kernels["gemm"].launched
    assert driver.encoded == [0x9200]
    assert driver.calls_of("cuTensorMapReplaceAddress") == [(0x8200,)]
    assert [values[2:] for values in driver.launched] == [
        (word(address + 0x200) * 16, word(address + 0x40)) for address in (0x9000, 0x9000, 0x8000)
    ]
    assert {values[0][-1] for values in driver.launched} == {1050}, "shared memory of the plan and of the compiler"


def test_an_address_that_the_driver_refuses_is_not_taken_for_present(monkeypatch):
    driver = Driver(monkeypatch, (4, 128, 8, 8), cuTensorMapReplaceAddress=1)
    plan = RepeatedPlan(CONTEXT, Plan((LAUNCH,)), [program()], at(0x1000, 0x2000))
    for _ in range(2):
        with pytest.raises(LaunchError, match="cuTensorMapReplaceAddress"):
            plan.enqueue(1, at(0x3008, 0x2000))
    assert driver.launched == []


def test_work_goes_in_order_on_the_stream_in_the_devices_context(monkeypatch):
    """The preparation comes first every time, since the workspace may have been used meanwhile."""
    driver = Driver(monkeypatch, (4, 128, 8, 8))
    plan = Plan((Zero("", 16, 32), Zero("D", 0, 64), LAUNCH), 256, setup=(Write(8, b"table"),))
    RepeatedPlan(CONTEXT, plan, [program()], at(0x1000, 0x2000)).enqueue(5, at(0x1000, 0x2000))
    assert [entry[0] for entry in driver.log] == [
        *("cuCtxPushCurrent_v2", "cuMemcpyHtoDAsync_v2", "cuMemsetD8Async", "cuMemsetD8Async", "cuLaunchKernelEx"),
        "cuCtxPopCurrent_v2",
    ]
    assert driver.calls_of("cuCtxPushCurrent_v2") == [(CONTEXT,)]
    assert driver.calls_of("cuMemcpyHtoDAsync_v2") == [(0x9008, b"table", 5, 5)]
    assert driver.calls_of("cuMemsetD8Async") == [(0x9010, 0, 32, 5), (0x2000, 0, 64, 5)]


def test_zeros_are_made_unless_they_are_known_to_be_there(monkeypatch):
    driver = Driver(monkeypatch, (4, 128, 8, 8))
    plan = RepeatedPlan(CONTEXT, Plan((LAUNCH,), 256, zeroed=48), [program()], at(0x1000, 0x2000))
    plan.enqueue(5, at(0x1000, 0x2000), on_zeros=True)
    assert driver.calls_of("cuMemsetD8Async") == []
    plan.enqueue(5, at(0x1000, 0x2000))
    assert driver.calls_of("cuMemsetD8Async") == [(0x9000, 0, 48, 5)]
    assert len(driver.launched) == 2


def test_the_context_is_given_back_after_a_refusal(monkeypatch):
    driver = Driver(monkeypatch, (4, 128, 8, 8), cuLaunchKernelEx=1)
    plan = RepeatedPlan(CONTEXT, Plan((LAUNCH,)), [program()], at(0x1000, 0x2000))
    with pytest.raises(LaunchError, match="cuLaunchKernelEx"):
        plan.enqueue(5, at(0x1000, 0x2000))
    assert driver.log[-1] == ("cuCtxPopCurrent_v2",)


def test_a_context_that_is_refused_is_not_given_back(monkeypatch):
    driver = Driver(monkeypatch, (4, 128, 8, 8), cuCtxPushCurrent_v2=201)
    plan = RepeatedPlan(CONTEXT, Plan((LAUNCH,)), [program()], at(0x1000, 0x2000))
    with pytest.raises(LaunchError, match="cuCtxPushCurrent"):
        plan.enqueue(5, at(0x1000, 0x2000))
    assert [entry[0] for entry in driver.log] == ["cuCtxPushCurrent_v2"]


def test_the_vendors_blas_goes_to_the_memory_and_the_stream_of_each_call(monkeypatch):
    Driver(monkeypatch, ())
    family, problem = KERNELS["VendorBlas"], Problem(gemm_type(), (4, 5, 6))
    (step,) = family.plan(family.space(problem.type).defaults, problem, H200).steps
    fake = FakeCuBlas()
    plan = RepeatedPlan(CONTEXT, Plan((step,)), [CuBlas(fake)], at(0x1000, 0x2000))
    for stream, a in ((5, 0x1000), (6, 0x1000), (5, 0x3000)):
        plan.enqueue(stream, at(a, 0x2000))
    moves = [arguments[1] for name, arguments in fake.calls if name == "cublasSetStream_v2"]
    operands = [
        (arguments[7], arguments[10], arguments[14]) for name, arguments in fake.calls if name == "cublasGemmEx"
    ]
    assert moves == [5, 6, 5]
    assert operands == [(0x1000, 0xB000, 0x2000), (0x1000, 0xB000, 0x2000), (0x3000, 0xB000, 0x2000)]


def test_a_launch_is_configured_as_the_drivers_header_has_it():
    """The bindings are generated from the header. Our structure finds every number where the bindings wrote it."""
    driver = pytest.importorskip("cuda.bindings.driver")
    theirs, ours = driver.CUlaunchConfig(), LaunchConfig(1, 2, 3, 4, 5, 6, 7, 8, None, 0)
    for number, name in enumerate(("gridDim", "blockDim")):
        for index, axis in enumerate("XYZ"):
            setattr(theirs, name + axis, 1 + 3 * number + index)
    theirs.sharedMemBytes, theirs.hStream, theirs.numAttrs = 7, driver.CUstream(8), 0
    found = LaunchConfig.from_address(theirs.getPtr())
    assert [getattr(found, name) for name, _ in ours._fields_] == [getattr(ours, name) for name, _ in ours._fields_]


@pytest.mark.parametrize(("cluster", "early"), [(1, False), (6, False), (1, True), (6, True)])
def test_the_driver_is_told_of_clusters_and_of_an_early_start(monkeypatch, cluster, early):
    Driver(monkeypatch, ())
    driver = pytest.importorskip("cuda.bindings.driver")
    names = driver.CUlaunchAttributeID
    theirs = []
    if cluster > 1:
        theirs.append(driver.CUlaunchAttribute())
        theirs[-1].id, size = names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, theirs[-1].value.clusterDim
        size.x, size.y, size.z = cluster, 1, 1
    if early:
        theirs.append(driver.CUlaunchAttribute())
        theirs[-1].id = names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        theirs[-1].value.programmaticStreamSerializationAllowed = 1
    launch = RepeatedLaunch(replace(LAUNCH, arguments=(), cluster=cluster, early=early), program(), {})
    config = launch._config
    assert config.attribute_count == len(theirs)
    assert ctypes.sizeof(LaunchAttribute) == 72, "an attribute's number, and 64 bytes for its value"
    for index, expected in enumerate(theirs):
        named = 20 if expected.id == names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION else 12
        found = ctypes.string_at(config.attributes + 72 * index, named)
        assert found == ctypes.string_at(expected.getPtr(), named)
    if theirs:
        monkeypatch.setattr(_cuda_program, "address_of", lambda function: 1)
        kept = launch.native({}).kept
        assert ctypes.addressof(kept) == config.attributes, "a compiled launch keeps what its configuration points to"


@pytest.mark.gpu
def test_on_a_gpu_a_map_with_another_address_is_the_map_that_is_encoded_for_it():
    device, argument = cuda_device(), TensorMapArgument("A", "float32", (16, 64), (64, 1), (16, 32))
    first, other = (TensorMap.of(argument, device.allocate(2 * 16 * 64 * 4).address) for _ in range(2))
    with device.on(None):
        expected = [encoded(tensor_map) for tensor_map in (first, other)]
        moving = Parameters([expected[0]])
        moved = _MovableMap(ctypes.byref(moving.words[0]), "A", 0, first.address)
        for tensor_map, bytes_then in ((other, expected[1]), (first, expected[0])):
            moved.move(tensor_map.address)
            assert ctypes.string_at(ctypes.addressof(moving.words[0]), TENSOR_MAP_BYTES) == bytes_then


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
