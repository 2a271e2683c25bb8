"""`benchmarks/sizes_left_out.py`: what a logic is worth at sizes that were taken away from it."""

from __future__ import annotations

import pytest

from sizes_left_out import left_out
from tunesmith.kernels import KERNELS
from tunesmith.logic import Document, NamedSolution, Origin, SizeRow
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Estimate, Solution

KIND = gemm_type()
ORIGIN = Origin("OpenCL", "a device", "CPU", "x86-64", "1", "x", "0", "today")
SMALL, LARGE = (
    Solution(KIND, "TiledGemm", KERNELS["TiledGemm"].space(KIND).defaults | Configuration({"DepthU": depth}))
    for depth in (8, 16)
)
WINNERS = {(16, 16, 16): 0, (32, 32, 32): 0, (512, 512, 512): 1}


def rows():
    return tuple(SizeRow(size, (), winner, Estimate(1e-3, 1e-3, 1e-3, 7), 1.0) for size, winner in WINNERS.items())


def document(fallback=0):
    return Document(ORIGIN, KIND, (NamedSolution("small", SMALL), NamedSolution("large", LARGE)), rows(), fallback)


def times(large_where_small_wins):
    """The winner takes 1 at each size. LARGE takes the given time where SMALL wins; SMALL takes 2 where LARGE wins."""
    seconds = {(512, 512, 512): {SMALL: 2.0, LARGE: 1.0}}
    for size in ((16, 16, 16), (32, 32, 32)):
        seconds[size] = {SMALL: 1.0, LARGE: large_where_small_wins}
    return {(size, ()): seconds_here for size, seconds_here in seconds.items()}


def test_a_size_is_judged_by_what_its_neighbours_choose():
    """16 and 32 decide for each other; 32 decides for 512, where its solution takes twice as long."""
    found = {left_size.size: left_size for left_size in left_out(document(), times(4.0), 3)}
    assert {size: left_size.efficiency for size, left_size in found.items()} == {
        (16, 16, 16): 1.0,
        (32, 32, 32): 1.0,
        (512, 512, 512): 0.5,
    }
    assert found[512, 512, 512].chosen == "small"
    assert found[512, 512, 512].distance == pytest.approx(4 * 3**0.5)


@pytest.mark.parametrize(("fallback", "chosen", "efficiency"), [(1, "large", 1.0), (0, "", 0.0)])
def test_what_did_not_run_is_passed_over_and_told_where_nothing_is_left(fallback, chosen, efficiency):
    times_by_size = times(4.0)
    del times_by_size[(512, 512, 512), ()][SMALL]
    found = {left_size.size: left_size for left_size in left_out(document(fallback), times_by_size, 3)}
    assert (found[512, 512, 512].chosen, found[512, 512, 512].efficiency) == (chosen, efficiency)
