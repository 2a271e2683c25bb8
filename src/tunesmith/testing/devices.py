"""What every device promises: see `devices.Device` and `devices.Api`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tunesmith.devices import Api, Buffer, Bytes, Device, LaunchError, Prepared, Program
from tunesmith.records import Launch, Module, OperandArgument, Plan, Step, Target, UserError, Write, Zero
from tunesmith.toolchains import TOOLCHAINS

from .guarded import UNWRITTEN_BYTE, GuardedBuffer
from .promises import raised

_ITEMS = 64
_TOO_MUCH = 1 << 50
"""Bytes that no device has."""


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """A launch to carry out: what `operands` hold before it, and what the operand `output` must hold after it."""

    module: Module
    launch: Launch
    operands: Mapping[str, Bytes]
    output: str
    expected: Bytes


class DeviceSuite:
    """Set `api`. The suite opens the first device that the API finds, and skips, with the reason, where there is none.

    What is launched is the trial of the API; where an API has no trial, override `work`.
    """

    api: Api

    def target(self) -> Target:
        found = self.api.find()
        usable = [device.target for device in found if device.target and device.usable]
        if not usable:
            problems = "; ".join(f"{device.name}: {device.problem}" for device in found)
            pytest.skip(problems or f"{self.api.name} finds no device")
        return usable[0]

    def work(self) -> DeviceWork:
        """The trial of the API: it writes i + 1 to element i."""
        assert self.api.trial is not None, "an API without a trial needs `work` in its suite"
        launch = Launch(0, "trial", (_ITEMS // 16, 1, 1), (16, 1, 1), (OperandArgument("out"),))
        expected = np.arange(1, _ITEMS + 1, dtype=np.int32).view(np.uint8)
        return DeviceWork(self.api.trial, launch, {"out": np.zeros_like(expected)}, "out", expected)

    @pytest.fixture
    def device(self) -> Iterator[Device]:
        live = self.api.open(self.target())
        yield live
        live.close()

    def test_what_is_found_can_be_named_and_what_is_missing_says_why(self) -> None:
        for found in self.api.find():
            if found.target is None:
                assert found.problem, f"{found.name} has no target, so it must have a problem"
            else:
                api_and_kind = (found.target.api, found.target.selector.partition(":")[0])
                begin = f"api and selector must begin with {self.api.name!r}, not {api_and_kind}"
                assert api_and_kind == (self.api.name,) * 2, begin
            assert bool(found.problem) == bool(found.remedy), f"a problem needs a remedy, and nothing else: {found}"

    def test_a_device_that_has_gone_is_told_to_the_user(self) -> None:
        target = self.target()
        gone = replace(target, selector=re.sub(r"\d+$", "77", target.selector), name="no such device")
        raised(UserError, lambda: self.api.open(gone), "`open` must raise UserError for a device that is not there")

    def test_a_device_is_the_one_that_was_asked_for(self, device: Device) -> None:
        assert device.target == self.target(), "a device must have the target that it was opened with"
        assert not device.lost, "a device must not be lost in the process that opened it"

    def test_what_is_written_is_read_again(self, device: Device) -> None:
        data = np.arange(1000, dtype=np.int64).astype(np.uint8)
        buffer = device.allocate(2000)
        device.write(buffer, data, 300)
        back = device.read(buffer, 500, 400)
        assert np.array_equal(back, data[100:600]), "read must give the bytes that were written, at any offset"
        device.write(buffer, data[:1], 301)
        changed = device.read(buffer, 3, 300)
        assert changed.tolist() == [0, 0, 2], "write must change its own bytes and no others"
        device.release(buffer)

    def test_nothing_can_be_allocated_written_and_read(self, device: Device) -> None:
        empty = device.allocate(0)
        device.write(empty, np.zeros(0, np.uint8))
        assert device.read(empty, 0).size == 0, "an allocation of no bytes must hold nothing"
        device.release(empty)

    def test_a_view_is_a_part_of_its_buffer_and_of_nothing_else(self, device: Device) -> None:
        step = device.alignment
        assert step > 0, "the alignment must be positive"
        whole = device.allocate(4 * step)
        device.write(whole, np.repeat(np.arange(4, dtype=np.uint8), step))
        inner = device.view(device.view(whole, step, 3 * step), step, step)
        assert (device.read(inner, step) == 2).all(), "a view of a view must begin at the sum of both offsets"
        device.write(inner, np.full(step, 9, np.uint8))
        found = device.read(whole, 4 * step).reshape(4, step)
        assert (found == np.array([[0], [1], [9], [3]])).all(), "writing a view must change its part of the whole alone"
        device.release(whole)

    def test_bytes_are_copied_between_buffers_and_within_one(self, device: Device) -> None:
        source, destination = device.allocate(256), device.allocate(256)
        device.write(source, np.arange(256, dtype=np.int64).astype(np.uint8))
        device.write(destination, np.zeros(256, np.uint8))
        device.copy(source, destination, 100, 20, 50)
        expected = np.zeros(256, np.uint8)
        expected[50:150] = np.arange(20, 120)
        assert np.array_equal(device.read(destination, 256), expected), (
            "copy must move its bytes alone, from and to its offsets"
        )
        device.copy(source, source, 16, 0, 128)
        assert device.read(source, 16, 128).tolist() == list(range(16)), "copy must work within one buffer"
        device.release(source, destination)

    def test_a_wrapped_array_is_the_devices_memory(self, device: Device) -> None:
        array = np.arange(64, dtype=np.float32)
        buffer = device.wrap(array)
        if buffer is None:
            return
        found = device.read(buffer, array.nbytes).view(np.float32)
        assert np.array_equal(found, array), "a wrapped array must be seen by the device"
        device.write(buffer, np.full(8, 0, np.uint8))
        device.release(buffer)
        assert array[:3].tolist() == [0, 0, 2], "what the device wrote must be in the array once the buffer is released"

    def test_a_lasting_buffer_is_the_memory_that_lies_at_its_address(self, device: Device) -> None:
        array = np.arange(64, dtype=np.float32)
        buffer = device.lasting(array.ctypes.data, array.nbytes, writeable=True)
        if buffer is None:
            return
        for _ in range(2):
            found = device.read(buffer, array.nbytes).view(np.float32)
            assert np.array_equal(found, array), "the buffer must show what is in the memory now"
            array += 1
        device.write(buffer, np.full(8, 0, np.uint8))
        assert array[:3].tolist() == [0, 0, 4], "what the device wrote must be in the memory at once"
        device.release(buffer)

    def test_too_large_an_allocation_is_out_of_memory_and_the_device_goes_on(self, device: Device) -> None:
        too_much = "an allocation of more than there is must raise LaunchError"
        refused = raised(LaunchError, lambda: device.allocate(_TOO_MUCH), too_much)
        refusal = (refused.reason, refused.poisoned)
        assert refusal == ("out of memory", False), f"the LaunchError must say 'out of memory', not poisoned: {refusal}"
        self._carried_out(device)

    def test_released_memory_can_be_allocated_again(self, device: Device) -> None:
        size = min(device.target.max_allocation_bytes // 2, 1 << 30)
        for _ in range(device.target.global_memory_bytes // size + 2):
            try:
                device.release(device.allocate(size))
            except LaunchError as error:
                raise AssertionError(f"memory that was released must be given out again: {error}") from error

    def test_a_plan_is_carried_out_between_guard_bands(self, device: Device) -> None:
        self._carried_out(device)

    def test_a_plan_can_be_executed_again(self, device: Device) -> None:
        work, program = self.work(), self._program(device)
        buffers = _buffers(device, work)
        prepared = _prepare(device, work, program, buffers, (work.launch,))
        for _ in range(2):
            device.write(buffers[work.output].memory, np.full(work.expected.size, UNWRITTEN_BYTE, np.uint8))
            prepared.enqueue()
            device.synchronize()
            assert np.array_equal(buffers[work.output].read()[0], work.expected), "each execution must do all the work"

    def test_plans_prepared_together_keep_their_own_memory(self, device: Device) -> None:
        work, program = self.work(), self._program(device)
        sets = [_buffers(device, work) for _ in range(2)]
        for prepared in [_prepare(device, work, program, buffers, (work.launch,)) for buffers in sets]:
            prepared.enqueue()
        device.synchronize()
        for buffers in sets:
            assert np.array_equal(buffers[work.output].read()[0], work.expected), "each plan must write its own memory"

    def test_steps_are_carried_out_in_their_order(self, device: Device) -> None:
        work, program = self.work(), self._program(device)
        half = work.expected.size // 2
        cleared = work.expected.copy()
        cleared[:half] = 0
        zero = Zero(work.output, 0, half)
        for steps, expected in (((work.launch, zero), cleared), ((zero, work.launch), work.expected)):
            buffers = _buffers(device, work)
            _prepare(device, work, program, buffers, steps).enqueue()
            device.synchronize()
            assert np.array_equal(buffers[work.output].read()[0], expected), "steps must be carried out in their order"

    def test_a_workspace_is_written_and_zeroed_where_the_plan_says(self, device: Device) -> None:
        work, program = self.work(), self._program(device)
        workspace = GuardedBuffer(device, np.full(64, UNWRITTEN_BYTE, np.uint8))
        steps = (Write(32, bytes(range(1, 17))), Zero("", 0, 16), Zero("", 40, 4))
        _prepare(device, work, program, _buffers(device, work), steps, workspace).enqueue()
        device.synchronize()
        expected = [0] * 16 + [UNWRITTEN_BYTE] * 16 + [*range(1, 9), 0, 0, 0, 0, *range(13, 17)] + [UNWRITTEN_BYTE] * 16
        found, untouched = workspace.read()
        assert found.tolist() == expected, "Write and Zero must change their bytes of the workspace, and no others"
        assert untouched, "Write and Zero must change nothing around the workspace"

    def test_a_copy_comes_after_what_was_enqueued(self, device: Device) -> None:
        work, program = self.work(), self._program(device)
        buffers, other = _buffers(device, work), device.allocate(work.expected.size)
        _prepare(device, work, program, buffers, (work.launch,)).enqueue()
        device.copy(buffers[work.output].memory, other, work.expected.size)
        assert np.array_equal(device.read(other, work.expected.size), work.expected), "copy must come after the launch"

    def test_run_tells_when_something_runs_and_waits(self, device: Device) -> None:
        work, program = self.work(), self._program(device)
        buffers, reports = _buffers(device, work), list[bool]()
        device.run(_prepare(device, work, program, buffers, (work.launch,)), reports.append)
        assert reports[:1] == [True], "run must tell first that a launch begins to run"
        assert reports == [True, False] * (len(reports) // 2), (
            f"run must tell of each begin and end by turns, not {reports}"
        )
        assert np.array_equal(buffers[work.output].read()[0], work.expected), "run must wait for the result"

    def test_time_is_positive_and_grows_with_the_executions(self, device: Device) -> None:
        work, program = self.work(), self._program(device)
        prepared = _prepare(device, work, program, _buffers(device, work), (work.launch,))
        device.time([prepared])
        once = min(device.time([prepared]) for _ in range(10))
        often = min(device.time([prepared] * 50) for _ in range(3))
        assert once > 0, f"an execution must take time, not {once} s"
        assert once < often, f"50 executions must take longer than one: {often} s and {once} s"

    def test_a_launch_beyond_the_device_is_refused_and_the_device_goes_on(self, device: Device) -> None:
        work, program = self.work(), self._program(device)
        items = 2 * device.target.max_work_group_size
        launch = replace(work.launch, grid=(1, 1, 1), work_group=(items, 1, 1))

        def launched() -> None:
            _prepare(device, work, program, _buffers(device, work), (launch,)).enqueue()
            device.synchronize()

        refused = raised(LaunchError, launched, f"a work-group of {items} work-items must raise LaunchError")
        assert refused.reason, "a LaunchError must have a reason"
        assert not refused.poisoned, "a launch that never ran must not poison the context"
        self._carried_out(device)

    def test_a_device_can_be_closed_twice(self) -> None:
        device, other = (self.api.open(self.target()) for _ in range(2))
        device.close()
        try:
            device.close()
        except Exception as error:  # whatever a driver raises
            raise AssertionError(f"closing a device again must do nothing: {error}") from error
        self._carried_out(other)  # closing one device must leave another as it is
        other.close()

    def _program(self, device: Device) -> Program:
        module = self.work().module
        return device.load(TOOLCHAINS[module.language].compile(module, device.target))

    def _carried_out(self, device: Device) -> None:
        work, program = self.work(), self._program(device)
        buffers = _buffers(device, work)
        _prepare(device, work, program, buffers, (work.launch,)).enqueue()
        device.synchronize()
        for name, buffer in buffers.items():
            found, untouched = buffer.read()
            expected = work.expected if name == work.output else work.operands[name]
            assert np.array_equal(found, expected), f"after the plan, {name} must hold what its launches compute"
            assert untouched, f"a plan must change nothing around {name}"
            buffer.release()


def _buffers(device: Device, work: DeviceWork) -> dict[str, GuardedBuffer]:
    return {name: GuardedBuffer(device, data) for name, data in work.operands.items()}


def _prepare(
    device: Device,
    work: DeviceWork,
    program: Program,
    buffers: Mapping[str, GuardedBuffer],
    steps: tuple[Step, ...],
    workspace: GuardedBuffer | None = None,
) -> Prepared:
    memory: dict[str, Buffer] = {name: buffer.memory for name, buffer in buffers.items()}
    workspace_memory = workspace.memory if workspace else None
    return device.prepare(Plan(steps, 64 if workspace else 0), [program], memory, workspace_memory)
