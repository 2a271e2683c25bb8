"""The CUDA device: errors without a GPU, and memory, launches, events and failures on a GPU."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from cuda_runner import H200, cuda_device, toolchain
from tunesmith.devices import APIS, LaunchError
from tunesmith.devices.cuda import driver as driver
from tunesmith.devices.cuda.device import CudaDevice, CudaMemory
from tunesmith.records import Launch, Module, OperandArgument, Plan, ScalarArgument, UserError, WorkspaceArgument, Zero

SOURCE = """
extern "C" __global__ void fill(int *out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }
extern "C" __global__ void reverse(int *out, const int *in)
{
    extern __shared__ int staged[];
    staged[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = staged[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void spin(long long cycles) { long long begin = clock64(); while (clock64() - begin < cycles); }
extern "C" __global__ void wreck(int *out) { *(volatile int *)16 = out[0]; }
"""
OUT = OperandArgument("out")


def fake_driver(monkeypatch, **functions):
    monkeypatch.setattr(driver, "bindings", lambda: SimpleNamespace(**functions))


@pytest.mark.parametrize(
    ("name", "reason", "poisoned"),
    [
        ("CUDA_ERROR_ILLEGAL_ADDRESS", "illegal address", True),
        ("CUDA_ERROR_LAUNCH_FAILED", "launch failed", True),
        ("CUDA_ERROR_LAUNCH_TIMEOUT", "launch timeout", True),
        ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory", False),
        ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "launch out of resources", False),
        ("CUDA_ERROR_INVALID_VALUE", "invalid value", False),
        ("CUDA_ERROR_OF_NEXT_YEAR", "of next year", True),
    ],
)
def test_errors_that_stick_to_the_context_are_told_from_those_that_do_not(monkeypatch, name, reason, poisoned):
    status = type("Status", (int,), {"name": name})(1)
    fake_driver(monkeypatch, cuStreamSynchronize=lambda stream: (status,))
    with pytest.raises(LaunchError) as raised:
        driver.call("cuStreamSynchronize", 0)
    assert (raised.value.reason, raised.value.poisoned) == (reason, poisoned)


def test_an_error_says_what_the_driver_says_of_it(monkeypatch):
    status = type("Status", (int,), {"name": "CUDA_ERROR_INVALID_VALUE"})(1)
    described = {"cuMemFree": lambda address: (status,), "cuGetErrorString": lambda of: (0, b"invalid argument")}
    fake_driver(monkeypatch, **described)
    with pytest.raises(LaunchError, match="cuMemFree: invalid argument"):
        driver.call("cuMemFree", 0)


def test_a_bare_status_is_the_error_that_the_bindings_name_and_one_that_they_cannot_is_not_trusted():
    pytest.importorskip("cuda.bindings.driver")
    known, harmless, unknown = (driver.error_of_status("cuLaunchKernelEx", status) for status in (700, 1, 123456))
    assert (known.reason, known.poisoned) == ("illegal address", True)
    assert (harmless.reason, harmless.poisoned) == ("invalid value", False)
    assert (unknown.reason, unknown.poisoned) == ("123456", True)


def test_an_error_that_the_bindings_cannot_name_is_not_trusted(monkeypatch):
    def unknown():
        raise KeyError(12345)

    fake_driver(monkeypatch, cuInit=unknown)
    with pytest.raises(LaunchError) as raised:
        driver.call("cuInit")
    assert raised.value.poisoned


def test_a_call_gives_nothing_a_value_or_a_tuple(monkeypatch):
    ok = type("Status", (int,), {"name": "CUDA_SUCCESS"})(0)
    fake_driver(monkeypatch, none=lambda: (ok,), one=lambda: (ok, 5), two=lambda: (ok, 5, 6))
    assert [driver.call(name) for name in ("none", "one", "two")] == [None, 5, (5, 6)]


def test_finding_devices_never_raises_and_names_a_remedy(monkeypatch):
    def missing():
        raise ModuleNotFoundError("No module named 'cuda'", name="cuda")

    monkeypatch.setattr(driver, "bindings", missing)
    (found,) = APIS["CUDA"].find()
    assert not found.usable
    assert "cuda" in found.problem
    assert "pip install" in found.remedy


def test_a_device_is_closed_in_its_own_context_whichever_thread_closes_it(monkeypatch):
    """The context is released last, after it is no longer current in the thread."""
    ok, log = type("Status", (int,), {"name": "CUDA_SUCCESS"})(0), []
    names = "cuCtxPushCurrent", "cuMemFree", "cuStreamDestroy", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease"
    fake_driver(monkeypatch, **{name: lambda *_, name=name: (log.append(name) or ok,) for name in names})
    device = object.__new__(CudaDevice)
    device._context, device._device, device._own_stream = "context", 0, "stream"
    device._stream, device._memory = device._own_stream, {CudaMemory(512, 8, owned=True)}
    device.close()
    assert log == list(names)


def loaded(*entries):
    compiler, device = toolchain("CUDA"), cuda_device()
    return device, device.load(compiler.compile(Module("CUDA", SOURCE, entries), device.target))


@pytest.mark.gpu
def test_a_plan_runs_its_steps_in_order():
    device, program = loaded("fill")
    memory, space = device.allocate(64), device.allocate(64)
    fill = Launch(0, "fill", (4, 1, 1), (4, 1, 1), (OUT, ScalarArgument(7, "int32")))
    other = Launch(0, "fill", (1, 1, 1), (4, 1, 1), (WorkspaceArgument(16), ScalarArgument(9, "int32")))
    plan = Plan((fill, Zero("out", 8, 16), Zero("", 0, 64), other), workspace_bytes=64)
    device.prepare(plan, [program], {"out": memory}, space).enqueue()
    device.synchronize()
    assert device.read(memory, 64).view(np.int32).tolist() == [7, 7, 0, 0, 0, 0] + [7] * 10
    assert device.read(space, 64).view(np.int32).tolist() == [0] * 4 + [9] * 4 + [0] * 8


@pytest.mark.gpu
@pytest.mark.parametrize("shared", [4096, 100 * 1024])
def test_dynamic_shared_memory_may_exceed_48_kib(shared):
    device, program = loaded("reverse")
    source, target = device.allocate(4096), device.allocate(4096)
    device.write(source, np.arange(1024, dtype=np.int32).view(np.uint8))
    launch = Launch(0, "reverse", (1, 1, 1), (1024, 1, 1), (OUT, OperandArgument("in")), shared)
    device.prepare(Plan((launch,)), [program], {"out": target, "in": source}, None).enqueue()
    assert device.read(target, 4096).view(np.int32).tolist() == list(range(1023, -1, -1))


@pytest.mark.gpu
def test_time_is_the_devices_and_grows_with_the_number_of_executions():
    device, program = loaded("spin")
    launch = Launch(0, "spin", (1, 1, 1), (1, 1, 1), (ScalarArgument(1_000_000, "int64"),))
    spin = device.prepare(Plan((launch,)), [program], {}, None)
    device.time([spin] * 300)  # an idle GPU takes a while to raise its clock
    single, many = device.time([spin]), device.time([spin] * 100)
    assert 50 < many / single < 200
    assert 1e-4 < single < 1e-2


@pytest.mark.gpu
def test_more_launches_than_may_wait_at_once_do_not_block():
    device, program = loaded("fill")
    memory = device.allocate(64)
    launch = Launch(0, "fill", (1, 1, 1), (16, 1, 1), (OUT, ScalarArgument(1, "int32")))
    fill = device.prepare(Plan((launch,)), [program], {"out": memory}, None)
    assert 0 < device.time([fill] * 3000) < 1
    assert 0 < device.time([fill] * 3000) < 1


@pytest.mark.gpu
def test_a_device_that_is_another_now_is_the_users_to_know():
    cuda_device()
    with pytest.raises(UserError):
        APIS["CUDA"].open(H200.__class__(**{**{f: getattr(H200, f) for f in H200.__slots__}, "name": "GeForce 256"}))


WRECK = f"""
import numpy as np
from tunesmith.devices import APIS, LaunchError
from tunesmith.records import Launch, Module, OperandArgument, Plan
from tunesmith.toolchains import TOOLCHAINS
device = APIS["CUDA"].open(APIS["CUDA"].find()[0].target)
program = device.load(TOOLCHAINS["CUDA"].compile(Module("CUDA", {SOURCE!r}, ("wreck",)), device.target))
memory = device.allocate(64)
plan = Plan((Launch(0, "wreck", (1, 1, 1), (1, 1, 1), (OperandArgument("out"),)),))
device.prepare(plan, [program], {{"out": memory}}, None).enqueue()
for attempt in (device.synchronize, lambda: device.read(memory, 4)):
    try:
        attempt()
    except LaunchError as error:
        print(error.reason, error.poisoned)
device.close()
"""


@pytest.mark.gpu
def test_a_wild_write_poisons_its_own_process_and_no_other():
    toolchain("CUDA")
    device = cuda_device()
    done = subprocess.run([sys.executable, "-c", WRECK], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    lines = [line.rsplit(" ", 1) for line in done.stdout.splitlines()]
    assert [poisoned for _, poisoned in lines] == ["True", "True"]
    assert lines[0][0] in ("illegal address", "launch failed")
    device.synchronize()
