"""Each promise of the device suite is broken by a device that is wrong in one way."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from broken_promises import assert_all_can_be_broken, assert_broken
from fake_device_suite import FakeDeviceSuite
from tunesmith.devices import FoundDevice, LaunchError, Prepared
from tunesmith.devices.fake import Fake, FakeDevice, fake_target
from tunesmith.records import Configuration, Zero
from tunesmith.testing import DeviceSuite


class Wrapped(Prepared):
    """Another prepared plan."""

    def __init__(self, inner):
        self.inner = inner

    def enqueue(self):
        self.inner.enqueue()


class RenamesItself(FakeDevice):
    def __init__(self, target):
        super().__init__(replace(target, name="another"))


class IgnoresReadOffsets(FakeDevice):
    def read(self, buffer, size, offset=0):
        return super().read(buffer, size, 0)


class NeverReadsNothing(FakeDevice):
    def read(self, buffer, size, offset=0):
        return np.zeros(max(size, 1), np.uint8)


class ViewsFromTheBeginning(FakeDevice):
    def view(self, buffer, offset, size):
        return super().view(buffer, 0, size)


class CopiesToTheBeginning(FakeDevice):
    def copy(self, source, target, size, source_offset=0, target_offset=0):
        super().copy(source, target, size, source_offset, 0)


class WrapsACopy(FakeDevice):
    def wrap(self, array):
        return super().wrap(array.copy())


class KeepsWhatLayThere(FakeDevice):
    def lasting(self, address, size, writeable):
        memory = (ctypes.c_uint8 * size).from_address(address)
        return super().wrap(np.frombuffer(memory, np.uint8).copy())


class PretendsToAllocate(FakeDevice):
    def allocate(self, size):
        return super().allocate(min(size, 1 << 20))


class NeverReleases(FakeDevice):
    def release(self, *buffers):
        """Nothing is given back."""


class RunsOnce(FakeDevice):
    def prepare(self, plan, programs, operands, workspace):
        class Once(Wrapped):
            done = False

            def enqueue(self):
                if not self.done:
                    self.inner.enqueue()
                self.done = True

        return Once(super().prepare(plan, programs, operands, workspace))


class SharesMemory(FakeDevice):
    """Every plan works on the memory of the first."""

    first = None

    def prepare(self, plan, programs, operands, workspace):
        self.first = self.first or operands
        return super().prepare(plan, programs, self.first, workspace)


class ReversesSteps(FakeDevice):
    def prepare(self, plan, programs, operands, workspace):
        return super().prepare(replace(plan, steps=plan.steps[::-1]), programs, operands, workspace)


class ZeroesFromTheBeginning(FakeDevice):
    def prepare(self, plan, programs, operands, workspace):
        steps = tuple(replace(step, offset=0) if isinstance(step, Zero) else step for step in plan.steps)
        return super().prepare(replace(plan, steps=steps), programs, operands, workspace)


class CopiesAtOnce(FakeDevice):
    def copy(self, source, target, size, source_offset=0, target_offset=0):
        target.bytes[target_offset : target_offset + size] = source.bytes[source_offset : source_offset + size]


class RunsSilently(FakeDevice):
    def run(self, prepared, running):
        super().run(prepared, lambda is_running: None)


class HasNoClock(FakeDevice):
    def time(self, executions):
        return 1.0


class LaunchesAnything(FakeDevice):
    def prepare(self, plan, programs, operands, workspace):
        steps = tuple(replace(step, work_group=(1, 1, 1)) if hasattr(step, "grid") else step for step in plan.steps)
        return super().prepare(replace(plan, steps=steps), programs, operands, workspace)


class ClosesOnce(FakeDevice):
    closed = False

    def close(self):
        if self.closed:
            raise LaunchError("closed", "already")
        self.closed = True


class FindsNothingButSaysNothing(Fake):
    def find(self):
        return (FoundDevice("a device"),)


class OpensAnything(Fake):
    def open(self, target):
        return FakeDevice(target)


class WritesPastTheEnd(FakeDeviceSuite):
    def work(self):
        work = super().work()
        constants = work.module.constants | {"Fault": "write past the end"}
        return replace(work, module=replace(work.module, constants=Configuration(constants)))


def suite_of(device):
    class Broken(Fake):
        def open(self, target):
            return device(target)

    return suite_with(Broken())


def suite_with(api):
    suite = FakeDeviceSuite()
    suite.api = api
    return suite


BROKEN = {
    "test_what_is_found_can_be_named_and_what_is_missing_says_why": suite_with(FindsNothingButSaysNothing()),
    "test_a_device_that_has_gone_is_told_to_the_user": suite_with(OpensAnything()),
    "test_a_device_is_the_one_that_was_asked_for": suite_of(RenamesItself),
    "test_what_is_written_is_read_again": suite_of(IgnoresReadOffsets),
    "test_nothing_can_be_allocated_written_and_read": suite_of(NeverReadsNothing),
    "test_a_view_is_a_part_of_its_buffer_and_of_nothing_else": suite_of(ViewsFromTheBeginning),
    "test_bytes_are_copied_between_buffers_and_within_one": suite_of(CopiesToTheBeginning),
    "test_a_wrapped_array_is_the_devices_memory": suite_of(WrapsACopy),
    "test_a_lasting_buffer_is_the_memory_that_lies_at_its_address": suite_of(KeepsWhatLayThere),
    "test_too_large_an_allocation_is_out_of_memory_and_the_device_goes_on": suite_of(PretendsToAllocate),
    "test_released_memory_can_be_allocated_again": suite_of(NeverReleases),
    "test_a_plan_is_carried_out_between_guard_bands": WritesPastTheEnd(),
    "test_a_plan_can_be_executed_again": suite_of(RunsOnce),
    "test_plans_prepared_together_keep_their_own_memory": suite_of(SharesMemory),
    "test_steps_are_carried_out_in_their_order": suite_of(ReversesSteps),
    "test_a_workspace_is_written_and_zeroed_where_the_plan_says": suite_of(ZeroesFromTheBeginning),
    "test_a_copy_comes_after_what_was_enqueued": suite_of(CopiesAtOnce),
    "test_run_tells_when_something_runs_and_waits": suite_of(RunsSilently),
    "test_time_is_positive_and_grows_with_the_executions": suite_of(HasNoClock),
    "test_a_launch_beyond_the_device_is_refused_and_the_device_goes_on": suite_of(LaunchesAnything),
    "test_a_device_can_be_closed_twice": suite_of(ClosesOnce),
}
WITHOUT_A_DEVICE = {
    "test_what_is_found_can_be_named_and_what_is_missing_says_why",
    "test_a_device_that_has_gone_is_told_to_the_user",
    "test_a_device_can_be_closed_twice",
}


@pytest.mark.parametrize("promise", BROKEN)
def test_a_broken_device_is_found_out(promise):
    suite = BROKEN[promise]
    device = () if promise in WITHOUT_A_DEVICE else (suite.api.open(fake_target()),)
    assert_broken(suite, promise, *device)


def test_every_promise_can_be_broken():
    assert_all_can_be_broken(DeviceSuite, BROKEN)
