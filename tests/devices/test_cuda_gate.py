"""The gate that holds a CUDA stream back, and the time of what ran behind it. The driver is a fake."""

from __future__ import annotations

import pytest

from cuda_driver_fake import FakeDriver
from cuda_runner import H200
from tunesmith.devices import LaunchError
from tunesmith.devices.cuda.device import HELD_BACK, CudaDevice, CudaPrepared, Gate
from tunesmith.devices.cuda.program import CudaFunction


def prepared(log, commands=1, was_launched=True):
    """An execution of so many commands, of a kernel that ran before or not."""
    enqueue = lambda: log("enqueue")  # noqa: E731
    return CudaPrepared([enqueue] * commands, [CudaFunction("gemm", launched=was_launched)], ())


def timed(monkeypatch, executions, **answers):
    """The seconds, and for each command the gate's number at that moment, with that of the wait before it."""
    fake = FakeDriver(monkeypatch, cuEventElapsedTime=2.5, **answers)
    device, states = fake.opened(), []
    made = [prepared(lambda name: states.append(fake.gate), *execution) for execution in executions]
    seconds = device.time(made)
    waits = [arguments[2] for arguments in fake.calls_of("cuStreamWaitValue32")]
    return fake, seconds, waits, states


def test_time_is_the_events_milliseconds_in_seconds(monkeypatch):
    fake, seconds, _, _ = timed(monkeypatch, [(1,)])
    assert seconds == 2.5e-3
    assert fake.names[-3:] == ["cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime"]


def test_a_gate_is_closed_whatever_its_memory_held(monkeypatch):
    """A word of 4 bytes: the stream waits until it is at least the number of times that the gate was closed."""
    fake = FakeDriver(monkeypatch)
    fake.gate = 77
    gate = Gate()
    assert fake.calls == [
        ("cuMemHostAlloc", 4, "CU_MEMHOSTALLOC_DEVICEMAP"),
        ("cuMemHostGetDevicePointer", fake.gate_address, 0),
    ]
    for number in (1, 2):
        gate.close(5)
        assert fake.calls[-1] == ("cuStreamWaitValue32", 5, 0x6000, number, "CU_STREAM_WAIT_VALUE_GEQ")
        assert fake.gate == number - 1
        gate.open()
        assert fake.gate == number


def test_commands_wait_behind_the_gate_until_all_of_them_are_enqueued(monkeypatch):
    """The gate was opened once when the device was, with the number 1."""
    fake, _, waits, states = timed(monkeypatch, [(HELD_BACK // 2,)] * 2)
    assert waits == [2]
    assert states == [1] * HELD_BACK
    assert fake.gate == 2


def test_the_gate_opens_before_more_commands_wait_than_the_drivers_queue_may_hold(monkeypatch):
    _, _, _, states = timed(monkeypatch, [(HELD_BACK,), (1,), (1,)])
    assert states == [1] * HELD_BACK + [2, 2]


def test_a_kernel_that_never_ran_is_not_held_back(monkeypatch):
    """Its code is loaded at its first launch, for which the driver may wait until the stream is idle: forever."""
    fake, _, waits, states = timed(monkeypatch, [(1,), (HELD_BACK, False)])
    assert (waits, fake.gate) == ([], 1)
    assert len(states) == HELD_BACK + 1


def test_a_device_without_a_gate_times_without_it(monkeypatch):
    fake = FakeDriver(monkeypatch, cuEventElapsedTime=1.0)
    fake.refused["cuStreamWaitValue32"] = LaunchError("not supported", "no such waits")
    device = fake.opened()
    assert device.time([prepared(lambda name: None, HELD_BACK + 1)]) == 1e-3
    assert fake.calls_of("cuStreamWaitValue32") == []
    fake.refused["cuStreamWaitValue32"] = LaunchError("illegal address", "the context is lost", poisoned=True)
    with pytest.raises(LaunchError, match="illegal address"):
        CudaDevice(H200, 0)


def test_the_gate_is_opened_if_a_command_is_refused(monkeypatch):
    fake = FakeDriver(monkeypatch)
    device = fake.opened()

    def refuse(name):
        raise LaunchError("invalid value", "refused")

    with pytest.raises(LaunchError, match="invalid value"):
        device.time([prepared(refuse)])
    assert fake.gate == 2
