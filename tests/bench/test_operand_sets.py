"""Operands to time with: every set holds the operands' numbers, which the host writes once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench_jobs import GPU, problem
from cuda_runner import cuda_device
from opencl_runner import opencl_device
from tunesmith.bench.operand_sets import OperandSets, OperandSetsCache, set_count, storage_bytes
from tunesmith.devices import LaunchError
from tunesmith.devices.fake import FakeDevice
from tunesmith.records import Operand

A = Operand("A", "float32", (33,), (1,), "in")
D = Operand("D", "float32", (5,), (1,), "out")
REAL = [
    pytest.param(opencl_device, marks=pytest.mark.opencl),
    pytest.param(cuda_device, marks=pytest.mark.gpu),
]
NUMBERS = np.arange(33, dtype=np.float32)


class Counting(FakeDevice):
    """Counts what the host writes."""

    def __init__(self, target):
        super().__init__(target)
        self.written = 0

    def write(self, buffer, data, offset=0):
        self.written += len(data)
        super().write(buffer, data, offset)


def operand_sets(device, count):
    return OperandSets(device, (A, D), {"A": lambda buffer: device.write(buffer, NUMBERS.view(np.uint8))}, count)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 21])
@pytest.mark.parametrize("sets_in_a_buffer", [1, 2, 3, 100])
def test_all_sets_hold_the_same_numbers_at_different_addresses(count, sets_in_a_buffer):
    most = sets_in_a_buffer * storage_bytes(A, 64)
    device = Counting(replace(GPU, max_allocation_bytes=most))
    sets = operand_sets(device, count).sets
    assert len(sets) == count
    assert all(np.array_equal(device.read(buffers["A"], NUMBERS.nbytes).view(np.float32), NUMBERS) for buffers in sets)
    for name in "AD":
        addresses = {(id(buffers[name].base), buffers[name].start) for buffers in sets}
        assert len(addresses) == count
    assert device.written == NUMBERS.nbytes, "the device makes the copies"


@pytest.mark.parametrize("opened", REAL)
@pytest.mark.parametrize("sets_in_a_buffer", [3, 100])
def test_a_real_device_copies_within_a_buffer_and_between_two(opened, sets_in_a_buffer):
    device = opened()
    target, most = device.target, sets_in_a_buffer * storage_bytes(A, device.alignment)
    device.target = replace(target, max_allocation_bytes=most)
    try:
        copies = operand_sets(device, 7)
    finally:
        device.target = target
    contents = [device.read(buffers["A"], NUMBERS.nbytes).view(np.float32) for buffers in copies.sets]
    assert all(np.array_equal(content, NUMBERS) for content in contents)
    copies.release()


@pytest.mark.parametrize("opened", REAL)
def test_a_copy_takes_bytes_at_any_offset_of_parts_of_buffers(opened):
    device = opened()
    step, numbers = device.alignment, np.arange(200, dtype=np.uint8)
    source, target = device.allocate(step + 200), device.allocate(2 * step + 200)
    device.write(source, numbers, step)
    device.write(target, np.zeros(2 * step + 200, np.uint8))
    device.copy(
        device.view(source, step, 200), device.view(target, 2 * step, 200), 50, source_offset=7, target_offset=31
    )
    device.copy(source, target, 0)
    after = device.read(target, 2 * step + 200)
    assert np.array_equal(after[2 * step + 31 :][:50], numbers[7:57])
    assert np.count_nonzero(after) == 50
    device.release(source, target)


def test_operand_sets_without_room_free_what_they_allocated():
    device = FakeDevice(replace(GPU, global_memory_bytes=1000))
    with pytest.raises(LaunchError):
        operand_sets(device, 10)
    device.release(device.allocate(1000))


def test_operand_sets_are_made_once_for_a_problem_that_comes_again():
    device = Counting(GPU)
    cache = OperandSetsCache(device, cold=True)
    put = {"A": lambda buffer: device.write(buffer, NUMBERS.view(np.uint8))}
    set_bytes = storage_bytes(A, 64) + storage_bytes(D, 64)
    first = cache.get(problem(), (A, D), set_bytes, put)
    assert cache.get(problem(), (A, D), set_bytes, put) is first
    assert device.written == NUMBERS.nbytes
    assert len(first.sets) == set_count(set_bytes, set_bytes, GPU, cold=True)


@pytest.mark.parametrize("touched", [1.0, 700.0, 1000.0, 9999.0])
def test_the_cache_is_filled_by_what_is_read_or_written_between_two_uses_of_a_set(touched):
    """A set has 1000 bytes. They count once, even if they are read more often."""
    target = replace(GPU, last_level_cache_bytes=30_000, global_memory_bytes=10**9)
    count = set_count(1000, touched, target, cold=True)
    assert count == 512 or (count - 1) * min(touched, 1000) >= 30_000 > (count - 2) * min(touched, 1000)
    assert set_count(1000, touched, target, cold=False) == 1
