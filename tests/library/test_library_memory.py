"""Memory that launches reuse: a pool's buffers, which grow, and a workspace for each stream."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_fakes import HostGpu, at
from library_fakes import TARGET, close, library, logic, normal
from tunesmith.devices.fake import FakeDevice
from tunesmith.library.launch._memory import Pool, Workspaces, lent
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import ZEROED_HEAD, Plan, UserError


class Counting(FakeDevice):
    """Keeps the sizes that were asked for, and counts what was given back."""

    def __init__(self):
        super().__init__(TARGET)
        self.sizes, self.released = [], 0

    def allocate(self, size):
        self.sizes.append(size)
        return super().allocate(size)

    def release(self, *buffers):
        self.released += len(buffers)
        super().release(*buffers)


def test_a_pools_buffer_serves_every_request_that_is_no_larger_than_the_largest():
    device = Counting()
    pool = Pool(device)
    first = pool.at_least("A", 64)
    assert pool.get("A") is first
    assert all(pool.at_least("A", size) is first for size in (64, 63, 0))
    assert (device.sizes, device.released, pool.generation) == ([64], 0, 0)
    larger = pool.at_least("A", 65)
    assert larger is pool.get("A") is not first
    assert (device.sizes, device.released, pool.generation) == ([64, 65], 1, 1)


def test_a_pool_has_a_buffer_for_each_name_also_an_empty_one():
    device = Counting()
    pool = Pool(device)
    assert pool.get("A") is None
    empty, other = pool.at_least("A", 0), pool.at_least("B", 8)
    assert (pool.at_least("A", 0), pool.at_least("B", 8)) == (empty, other)
    assert (device.sizes, pool.generation) == ([0, 8], 0)
    pool.close()
    assert (device.released, pool.get("A"), pool.get("B")) == (2, None, None)


@pytest.mark.parametrize("shares", [True, False])
def test_inputs_are_lent_so_that_they_cannot_be_written_and_outputs_come_back(shares):
    """The caller's own array stays as writeable as it was; what lies between an output's elements is left alone."""

    class Sharing(Counting):
        def wrap(self, array):
            wrapped.append(array.flags.writeable)
            return super().wrap(array) if shares else None

    wrapped, device = [], Sharing()
    arrays = {
        "A": np.arange(4, dtype=np.float32),
        "C": np.full(6, 2, np.float32)[::2],
        "D": np.ones(6, np.float32)[::2],
    }
    with lent(device, Pool(device), arrays, {"C": "inout", "D": "out"}) as buffers:
        assert set(buffers) == {"A", "C", "D"}
        for name in "CD":
            device.write(buffers[name], np.full(5, 7, np.float32).view(np.uint8))
    assert wrapped == [False, True, True]
    assert arrays["A"].flags.writeable
    assert arrays["A"].tolist() == [0, 1, 2, 3]
    assert arrays["C"].tolist() == arrays["D"].tolist() == [7, 7, 7]
    if not shares:
        assert arrays["C"].base.tolist() == [7, 2, 7, 2, 7, 2]
        assert sorted(device.sizes) == [16, 20, 20]


class SharingSome(FakeDevice):
    """Shares the memory of outputs, or that of inputs, and copies the others."""

    def __init__(self, outputs):
        super().__init__(TARGET)
        self.outputs = outputs

    def wrap(self, array):
        return super().wrap(array) if array.flags.writeable is self.outputs else None


@pytest.mark.parametrize("outputs", [True, False])
def test_a_launch_on_memory_that_is_shared_in_part_is_bound_to_the_arrays_of_each_call(outputs):
    kind = gemm_type(transpose_b=False)
    with library(logic(kind), device=SharingSome(outputs)) as lib:
        for _ in range(3):
            a, b = normal(6, 5), normal(5, 7)
            close(lib.matmul(a, b), a @ b)


# --- workspaces -------------------------------------------------------------------------------------------------------


def allocated(device):
    return [entry[1] for entry in device.log if entry[0] == "allocate"]


def test_a_streams_workspace_grows_to_the_largest_plan():
    device = HostGpu()
    workspaces = Workspaces(device)
    assert workspaces.of(7, Plan(())) == 0
    assert allocated(device) == []
    first = workspaces.of(7, Plan((), workspace_bytes=100))
    assert all(workspaces.of(7, Plan((), workspace_bytes=size)) == first for size in (100, 99, 1))
    assert workspaces.of(8, Plan((), workspace_bytes=100)) != first
    assert allocated(device) == [ZEROED_HEAD + 100] * 2
    workspaces.of(7, Plan((), workspace_bytes=101))
    assert allocated(device)[2:] == [ZEROED_HEAD + 101]
    workspaces.close()
    device.close()


def test_the_head_of_a_workspace_is_zeros_which_only_plans_that_need_them_use():
    device = HostGpu()
    workspaces = Workspaces(device)
    with_zeros = workspaces.of(7, Plan((), workspace_bytes=64, zeroed=64))
    assert allocated(device) == [ZEROED_HEAD], "even if the plan needs fewer"
    assert not at(with_zeros, ZEROED_HEAD, "uint8").any()
    workspaces.of(8, Plan((), workspace_bytes=1))
    behind, head = (workspaces.of(8, Plan((), workspace_bytes=1, zeroed=zeroed)) for zeroed in (0, 1))
    assert behind == head + ZEROED_HEAD
    assert not at(head, ZEROED_HEAD, "uint8").any()
    assert at(behind, 1, "uint8") == 0xAB, "what lies behind the head is not written"


def test_no_memory_is_made_while_a_stream_is_captured():
    device = HostGpu()
    workspaces = Workspaces(device)
    ready = workspaces.of(7, Plan((), workspace_bytes=100))
    device.captured = {7, 8}
    assert workspaces.of(7, Plan((), workspace_bytes=100)) == ready
    for stream, size in ((7, 101), (8, 1)):
        with pytest.raises(UserError, match="captured into a graph"):
            workspaces.of(stream, Plan((), workspace_bytes=size))
    assert np.array_equal(allocated(device), [ZEROED_HEAD + 100])
