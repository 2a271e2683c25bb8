"""What the CUDA device asks of the driver, and what it makes of the answers. The driver is a fake."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cublas_fakes import ADDRESSES, FakeCuBlas, call
from cuda_driver_fake import FakeDriver
from cuda_runner import H200
from tunesmith.devices import APIS, FoundDevice, LaunchError
from tunesmith.devices.cuda import device as cuda_device_module
from tunesmith.devices.cuda import program as cuda_program_module
from tunesmith.devices.cuda.arguments import Convention, TensorMap
from tunesmith.devices.cuda.cublas import CuBlas
from tunesmith.devices.cuda.device import (
    CudaDevice,
    CudaMemory,
    Mark,
    context_kept,
    ordinal_of,
)
from tunesmith.devices.cuda.program import CudaFunction, LoadedModule, encoded
from tunesmith.devices.cuda.target import cuda_target
from tunesmith.records import Binary, CompiledFacts, Launch, OperandArgument, Plan, UserError, WorkspaceArgument
from tunesmith.toolchains.forked import CUDA

ATTRIBUTES = {
    "COMPUTE_CAPABILITY_MAJOR": 9,
    "COMPUTE_CAPABILITY_MINOR": 0,
    "MULTIPROCESSOR_COUNT": 132,
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232_448,
    "L2_CACHE_SIZE": 62_914_560,
    "WARP_SIZE": 32,
}


def attribute(name, device):
    return ATTRIBUTES[name.removeprefix("CU_DEVICE_ATTRIBUTE_")]


# --- which devices there are ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "text"), [(13_010, "CUDA 13.1"), (12_080, "CUDA 12.8"), (13_000, "CUDA 13.0")])
def test_a_target_is_what_the_driver_says_of_the_device(monkeypatch, version, text):
    """The driver writes the name into 256 bytes, as many as NVIDIA's runtime has for it, and ends it with a zero."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    fake = FakeDriver(
        monkeypatch,
        cuDeviceGetAttribute=attribute,
        cuDeviceTotalMem=150_000_000_000,
        cuDeviceGetName=lambda size, device: b"NVIDIA H200".ljust(size, b"\0"),
        cuDriverGetVersion=version,
    )
    found = cuda_target(2)
    assert fake.calls_of("cuDeviceGet") == [[2]]
    assert fake.calls_of("cuDeviceGetName") == [[256, 3]]
    assert (found.selector, found.name, found.architecture, found.driver) == ("CUDA:2", "NVIDIA H200", "sm_90", text)
    assert (found.compute_units, found.max_work_group_size, found.sub_group_size) == (132, 1024, 32)
    assert (found.local_memory_bytes, found.last_level_cache_bytes) == (232_448, 62_914_560)
    assert found.global_memory_bytes == found.max_allocation_bytes == 150_000_000_000
    assert found.double_precision
    nvml = SimpleNamespace(
        nvmlInit=lambda: None, nvmlShutdown=lambda: None, nvmlSystemGetDriverVersion=lambda: b"580.159.04\0"
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert cuda_target(2).driver == f"580.159.04 ({text})"


def test_every_device_of_the_driver_is_found(monkeypatch):
    FakeDriver(monkeypatch, cuDeviceGetCount=2)
    monkeypatch.setattr(cuda_device_module, "cuda_target", lambda ordinal: replace(H200, selector=f"CUDA:{ordinal}"))
    assert [found.target.selector for found in APIS["CUDA"].find()] == ["CUDA:0", "CUDA:1"]


def test_a_driver_without_a_device_and_one_that_does_not_answer_are_told_apart(monkeypatch):
    fake = FakeDriver(monkeypatch, cuDeviceGetCount=0)
    (nothing,) = APIS["CUDA"].find()
    assert not nothing.usable
    assert "CUDA_VISIBLE_DEVICES" in nothing.remedy
    fake.refused["cuInit"] = LaunchError("no device", "cuInit")
    (silent,) = APIS["CUDA"].find()
    assert "no NVIDIA driver answers" in silent.problem


def test_a_device_is_opened_by_its_number_if_it_still_has_its_name(monkeypatch):
    opened, api = [], APIS["CUDA"]
    cards = [replace(H200, selector=f"CUDA:{number}", name=name) for number, name in enumerate(("H100", "H200"))]
    found = [FoundDevice(card.name, card) for card in cards]
    monkeypatch.setattr(type(api), "find", lambda self: tuple(found))
    monkeypatch.setattr(cuda_device_module, "CudaDevice", lambda target, ordinal: opened.append((target, ordinal)))
    for card in cards:
        api.open(card)
    assert opened == [(cards[0], 0), (cards[1], 1)]
    for gone in (replace(cards[1], name="H100"), replace(cards[1], selector="CUDA:2")):
        with pytest.raises(UserError, match=r"is no H.00 any more.*found: H100, H200"):
            api.open(gone)
    found[:] = [FoundDevice("CUDA", problem="no NVIDIA driver answers")]
    with pytest.raises(UserError, match="CUDA:0 is no CUDA any more"):
        api.open(replace(cards[0], name="CUDA"))


def test_the_driver_knows_which_gpu_has_an_address(monkeypatch):
    fake = FakeDriver(monkeypatch, cuPointerGetAttribute=1)
    assert ordinal_of(0x7000) == 1
    assert fake.calls_of("cuPointerGetAttribute") == [["CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL", 0x7000]]


def test_the_driver_is_started_without_flags_before_anything_is_asked_of_it(monkeypatch):
    """It knows none yet. Events are made without flags too, so that they have times."""
    fake = FakeDriver(monkeypatch, cuDeviceGetCount=0, cuPointerGetAttribute=0)
    CudaDevice(H200, 1)
    assert fake.calls[:2] == [("cuInit", 0), ("cuDeviceGet", 1)]
    assert fake.calls_of("cuEventCreate") == [[0], [0]]
    for use in (APIS["CUDA"].find, lambda: ordinal_of(0x7000), lambda: context_kept().__enter__()):
        fake.calls.clear()
        use()
        assert fake.calls[0] == ("cuInit", 0)


def test_a_threads_context_is_what_it_was_before_a_device_was_opened(monkeypatch):
    fake = FakeDriver(monkeypatch, cuCtxGetCurrent="theirs")
    with context_kept():
        CudaDevice(H200, 0)
    assert fake.calls_of("cuCtxSetCurrent") == [[0xC0], ["theirs"]]
    with pytest.raises(UserError, match="is no NVIDIA H200 any more"), context_kept():
        APIS["CUDA"].open(replace(H200, selector="CUDA:0"))
    assert fake.calls_of("cuCtxSetCurrent")[2:] == [["theirs"]]


def test_a_device_is_closed_once_and_not_in_a_forked_child(monkeypatch):
    """The context is counted, and in a child everything is the parent's."""
    fake = FakeDriver(monkeypatch, cuMemAlloc=0x1000)
    device = fake.opened()
    device.allocate(8)
    monkeypatch.setattr(CUDA, "lost", True)
    device.close()
    assert fake.names == ["cuMemAlloc"]
    monkeypatch.setattr(CUDA, "lost", False)
    for _ in range(2):
        device.close()
    assert fake.calls_of("cuMemFree") == [[0x1000]]
    assert fake.calls_of("cuDevicePrimaryCtxRelease") == [[3]]


def test_a_mark_is_set_on_one_stream_and_another_waits_for_it(monkeypatch):
    fake = FakeDriver(monkeypatch)
    device, mark = fake.opened(), Mark()
    assert fake.calls == [("cuEventCreate", "CU_EVENT_DISABLE_TIMING")]
    device.record(mark)
    with device.on(0):
        device.follow(mark)
    assert fake.calls_of("cuEventRecord") == [["event", 5]]
    assert fake.calls_of("cuStreamWaitEvent") == [[0, "event", 0]]
    del mark
    assert fake.calls[-1] == ("cuEventDestroy", "event")


@pytest.mark.parametrize("make", [Mark, lambda: LoadedModule.of("module", {}, Convention())])
def test_nothing_is_given_back_when_the_process_ends(monkeypatch, make):
    """The driver may have been unloaded by then."""
    finalizers = []

    def finalize(*arguments):
        finalizers.append(SimpleNamespace(atexit=True))
        return finalizers[-1]

    FakeDriver(monkeypatch)
    for module in (cuda_device_module, cuda_program_module):
        monkeypatch.setattr(module, "weakref", SimpleNamespace(finalize=finalize))
    make()
    assert [finalizer.atexit for finalizer in finalizers] == [False]


# --- memory -----------------------------------------------------------------------------------------------------------


def test_a_view_lies_within_its_buffer(monkeypatch):
    device, buffer = FakeDriver(monkeypatch).opened(), CudaMemory(0x1000, 64, owned=True)
    assert device.view(buffer, 0, 64) == CudaMemory(0x1000, 64, owned=False)
    assert device.view(buffer, 16, 48) == CudaMemory(0x1010, 48, owned=False)
    for offset, size in ((-1, 8), (0, 65), (17, 48), (64, 1)):
        with pytest.raises(ValueError, match="of a buffer of 64"):
            device.view(buffer, offset, size)


def test_memory_is_given_back_once_and_only_what_was_allocated(monkeypatch):
    """An empty buffer has an address too, so a byte is asked for."""
    fake = FakeDriver(monkeypatch, cuMemAlloc=0x1000)
    device = fake.opened()
    buffer = device.allocate(0)
    assert (fake.calls_of("cuMemAlloc"), buffer) == ([[1]], CudaMemory(0x1000, 0, owned=True))
    device.release(buffer, buffer, CudaMemory(0x2000, 8, owned=False))
    assert fake.calls_of("cuMemFree") == [[0x1000]]
    device.allocate(7)
    assert fake.calls_of("cuMemAlloc")[-1] == [7]


def test_bytes_are_copied_to_and_from_their_part_of_a_buffer_and_no_bytes_are_not_copied(monkeypatch):
    fake = FakeDriver(monkeypatch)
    device = fake.opened()
    source, destination = CudaMemory(0x1000, 64, owned=True), CudaMemory(0x2000, 64, owned=True)
    device.write(source, np.arange(1, dtype=np.uint8), 63)
    assert device.read(source, 1, 62).size == 1
    device.copy(source, destination, 1, 3, 5)
    ((to, _, written, _),) = fake.calls_of("cuMemcpyHtoDAsync")
    ((_, start, size, _),) = fake.calls_of("cuMemcpyDtoHAsync")
    assert (to, written, start, size) == (0x103F, 1, 0x103E, 1)
    assert fake.calls_of("cuMemcpyDtoDAsync") == [[0x2005, 0x1003, 1, 5]]
    assert len(fake.calls_of("cuStreamSynchronize")) == 2, "a copy on the device is not waited for"
    fake.calls.clear()
    device.write(source, np.zeros(0, np.uint8))
    assert device.read(source, 0).size == 0
    device.copy(source, destination, 0)
    assert set(fake.names) == {"cuStreamSynchronize"}


# --- programs ---------------------------------------------------------------------------------------------------------


def test_a_binary_is_a_module_of_kernels_or_the_location_of_a_blas(monkeypatch):
    fake = FakeDriver(monkeypatch, cuModuleLoadData="module", cuModuleGetFunction=lambda module, entry: entry.decode())
    device = fake.opened()
    monkeypatch.setattr(CuBlas, "load", lambda location: ("BLAS", location))
    facts = (CompiledFacts("gemm"), CompiledFacts("sum"))
    assert device.load(Binary("m", "BLAS", b"libcublas.so", facts)) == ("BLAS", "libcublas.so")
    assert fake.calls == []
    loaded = device.load(Binary("m", "CUDA", b"cubin", facts))
    assert {name: kernel.function for name, kernel in loaded.kernels.items()} == {"gemm": "gemm", "sum": "sum"}
    assert fake.calls_of("cuModuleLoadData") == [[b"cubin"]]
    assert fake.calls_of("cuModuleUnload") == []
    del loaded
    assert fake.calls_of("cuModuleUnload") == [["module"]], "once no object refers to it any more"


def test_a_tensor_map_takes_every_element_of_its_box(monkeypatch):
    """The stride through the box is 1 along each dimension. Nothing is interleaved, and beyond the edges are zeros."""
    content = (ctypes.c_char * 128)(*b"map")
    handle = SimpleNamespace(getPtr=lambda: ctypes.addressof(content))
    fake = FakeDriver(monkeypatch, cuTensorMapEncodeTiled=handle)
    tensor_map = TensorMap("FLOAT32", 0x1000, shape=(36, 44, 3), strides=(192, 8448), box=(64, 16, 1), swizzle=3)
    assert encoded(tensor_map) == b"map".ljust(128, b"\0")
    (arguments,) = fake.calls_of("cuTensorMapEncodeTiled")
    assert arguments[:7] == [
        *("CU_TENSOR_MAP_DATA_TYPE_FLOAT32", 3, 0x1000),
        *([36, 44, 3], [192, 8448], [64, 16, 1], [1, 1, 1]),
    ]
    assert arguments[7:] == [
        "CU_TENSOR_MAP_INTERLEAVE_NONE",
        3,
        "CU_TENSOR_MAP_L2_PROMOTION_L2_128B",
        "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE",
    ]


def test_more_dynamic_shared_memory_than_48_kib_is_asked_for_once(monkeypatch):
    fake = FakeDriver(monkeypatch)
    kernel = CudaFunction("gemm")
    for size in (48 * 1024, 48 * 1024 + 1, 48 * 1024 + 1, 50_000, 60_000):
        kernel.allow_shared(size)
    assert [arguments[-1] for arguments in fake.calls_of("cuFuncSetAttribute")] == [48 * 1024 + 1, 50_000, 60_000]


@pytest.mark.parametrize(("workspace", "address"), [(CudaMemory(0x9000, 64, owned=True), 0x9040), (None, 0x40)])
def test_an_operand_that_nobody_wrote_is_null(monkeypatch, workspace, address):
    """A launch that forgets to write an address then reads no other array."""
    device, sent = FakeDriver(monkeypatch).opened(), []

    def launch(config, function, parameters, extra):
        pointers = (ctypes.c_void_p * 2).from_address(parameters.value)
        values = [ctypes.c_uint64.from_address(pointer).value for pointer in pointers]
        sent.append((config._obj.grid_x, config._obj.stream, *values))
        return 0

    monkeypatch.setattr(cuda_program_module, "driver_function", lambda name: launch)
    program = LoadedModule({"gemm": CudaFunction(0xF0)}, Convention())
    step = Launch(0, "gemm", (7, 1, 1), (32, 1, 1), (OperandArgument("A"), WorkspaceArgument(64)))
    repeated = device.repeated(step, program, workspace)
    device.launch(repeated, 7, [])
    device.launch(repeated, 3, [(0, 0xA000)])
    assert sent == [(7, 5, None if not address else 0, address), (3, 5, 0xA000, address)]


def test_a_plan_is_prepared_on_its_memory_and_launched_with_its_whole_grid(monkeypatch):
    """Each kernel counts as launched once the plan was enqueued, and the plan if all of its kernels were."""
    device, sent = FakeDriver(monkeypatch).opened(), []

    def launch(config, function, parameters, extra):
        pointers = (ctypes.c_void_p * 2).from_address(parameters.value)
        values = [ctypes.c_uint64.from_address(pointer).value for pointer in pointers]
        shape = config._obj
        sent.append((function.value, (shape.grid_x, shape.grid_y, shape.grid_z), shape.stream, *values))
        return 0

    monkeypatch.setattr(cuda_program_module, "driver_function", lambda name: launch)
    kernels = {"gemm": CudaFunction(0xF0), "sum": CudaFunction(0xF1)}
    arguments = (OperandArgument("A"), WorkspaceArgument(64))
    plan = Plan(tuple(Launch(0, name, (7, 8, 9), (32, 1, 1), arguments) for name in kernels), 128)
    memory = {"A": CudaMemory(0xA000, 64, owned=True)}
    made = device.prepare(plan, [LoadedModule(kernels, Convention())], memory, CudaMemory(0x9000, 128, owned=True))
    assert not made.launched
    kernels["sum"].launched = True
    assert not made.launched
    made.enqueue()
    assert made.launched
    assert sent == [(function, (7, 8, 9), 5, 0xA000, 0x9040) for function in (0xF0, 0xF1)]


def test_the_vendors_blas_has_launched_once_its_call_was_enqueued(monkeypatch):
    device, blas, step = FakeDriver(monkeypatch).opened(), CuBlas(FakeCuBlas()), call(beta=0.0)
    memory = {name: CudaMemory(address, 64, owned=True) for name, address in ADDRESSES.items()}
    first, equal = (device.prepare(Plan((step,)), [blas], memory, None) for _ in range(2))
    assert not first.launched
    first.enqueue()
    assert (first.launched, equal.launched) == (True, True)
