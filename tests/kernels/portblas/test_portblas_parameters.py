"""Each of portBLAS's parameters acts: on the program, the local memory, the order of blocks, the launches."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from opencl_runner import opencl_device
from portblas_kernels import ALGORITHMS, GPU, OPENCL, config, problem, type_for
from tunesmith.kernels.gemm.portblas.algorithms import ALGORITHMS as TABLE
from tunesmith.kernels.gemm.portblas.staged import parts_of_k
from tunesmith.kernels.gemm.portblas.text import text_of
from tunesmith.kernels.gemm.portblas.tiling import ProgramTraits, Tiling
from tunesmith.problems.gemm import Gemm
from tunesmith.records import (
    Binary,
    Launch,
    Module,
    OperandArgument,
    Plan,
    ScalarArgument,
    Solution,
)
from tunesmith.toolchains.opencl import OpenCLToolchain

# --- every parameter acts ---------------------------------------------------------------------------------------------

CHANGES = {
    "Vectorization": "none",
    "VectorSize": 2,
    "CacheLine": 128,
    "WorkItem": (8, 4),
    "WorkGroup": (8, 8, 1),
    "TopTile": (2, 2),
    "BatchTile": (8, 2),
    "DoubleBuffer": True,
    "PadA": True,
    "PadB": False,
}
ALWAYS = {"WorkGroup", "TopTile"}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_parameter_changes_the_program_where_it_says_so_and_nowhere_else(algorithm, name):
    """Legal before and after; with the text goes the identity, so that what is the same program is measured once."""
    type_ = type_for(algorithm)
    before, after = config(algorithm), config(algorithm, **{name: CHANGES[name]})
    for configuration in (before, after):
        assert not list(OPENCL.rejections(configuration, type_, GPU))
    differs = OPENCL.modules(before, type_) != OPENCL.modules(after, type_)
    assert differs == (name in ALWAYS | set(TABLE[algorithm].parameters_used))
    identities = {OPENCL.identity(Solution(type_, OPENCL.name, configuration)) for configuration in (before, after)}
    assert len(identities) == 1 + differs


def test_every_parameter_is_tried_above_and_documented():
    names = {parameter.name for parameter in OPENCL.space(type_for("local"))}
    assert names == CHANGES.keys() | {"KernelLanguage", "PortBlasAlgorithm"}
    for parameter in OPENCL.space(type_for("local")):
        assert len(parameter.doc) > 20
        assert parameter.default in parameter.values
        for value in parameter.values:
            parameter.check(value, "here")


def test_every_algorithm_is_another_program():
    texts = {OPENCL.modules(config(algorithm), type_for(algorithm))[0].text for algorithm in ALGORITHMS}
    assert len(texts) == len(ALGORITHMS)


def local_bytes(data_type="s", **values):
    made = config(WorkItem=(8, 8), CacheLine=64, **values)
    return TABLE["local"].local_bytes(Tiling.of(made), ProgramTraits.of(type_for("local", data_type)))


def test_local_memory_holds_stages_with_gaps_of_one_access():
    """Blocks of 128 x 128, 16 steps deep; a gap is 16 bytes."""
    plain = local_bytes(PadA=False, PadB=False)
    assert plain == 4 * 16 * (128 + 128)
    assert local_bytes(PadA=True, PadB=False) - plain == 4 * 16 * 4
    assert local_bytes(PadA=True, PadB=True) - plain == 2 * 4 * 16 * 4
    assert local_bytes(PadA=False, PadB=False, DoubleBuffer=True) == 2 * plain
    assert local_bytes("d", PadA=False, PadB=False) == local_bytes("h", PadA=False, PadB=False) == plain
    assert local_bytes("d", PadA=True, PadB=False) - plain == 8 * 8 * 2


def test_a_gap_is_no_wider_than_what_a_work_item_reads():
    odd = config(WorkItem=(3, 1), CacheLine=32, PadA=True, PadB=True)
    assert TABLE["local"].local_bytes(Tiling.of(odd), ProgramTraits.of(type_for("local"))) == 4 * 8 * (48 + 1 + 16 + 1)


@pytest.mark.opencl
@pytest.mark.parametrize("algorithm", ["local", "tall_skinny"])
def test_the_compiler_finds_the_local_memory_that_was_predicted(algorithm):
    made, type_ = config(algorithm, WorkItem=(2, 2), WorkGroup=(4, 4, 1)), type_for(algorithm)
    target = opencl_device().target
    (fact, *_) = OpenCLToolchain().compile(OPENCL.modules(made, type_)[0], target).facts
    assert fact.local_bytes == TABLE[algorithm].local_bytes(Tiling.of(made), ProgramTraits.of(type_))


# --- the order of blocks ----------------------------------------------------------------------------------------------

GRIDS = [((7, 5), (2, 3)), ((7, 5), (1, 1)), ((4, 8), (2, 2)), ((3, 3), (8, 8)), ((1, 9), (4, 2)), ((6, 1), (3, 5))]


def visits(count, top):
    """Blocks in the order in which work-groups take them, as `visits.h` says it in C."""
    for band in range(0, count[1], top[1]):
        for tile in range(0, count[0], top[0]):
            for column in range(band, min(band + top[1], count[1])):
                for row in range(tile, min(tile + top[0], count[0])):
                    yield row, column


@pytest.mark.parametrize(("count", "top"), GRIDS)
def test_top_tiles_are_visited_one_after_the_other(count, top):
    order = list(visits(count, top))
    assert sorted(order) == list(product(range(count[0]), range(count[1])))
    tiles = [(row // top[0], column // top[1]) for row, column in order]
    assert len(set(tiles)) == sum(a != b for a, b in zip(tiles, [None, *tiles], strict=False))


def test_without_top_tiles_columns_of_blocks_follow_one_another():
    assert list(visits((3, 2), (1, 1))) == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]


OBSERVER = """
KERNEL(1, 1) gemm(GLOBAL int *d, int blocks_m, int blocks_n)
{
    int block_m, block_n;
    visited(GROUP_NUMBER, blocks_m, blocks_n, &block_m, &block_n);
    d[2 * GROUP_NUMBER] = block_m;
    d[2 * GROUP_NUMBER + 1] = block_n;
}
"""


@pytest.mark.opencl
@pytest.mark.parametrize(("count", "top"), GRIDS)
def test_work_groups_visit_blocks_in_that_order(count, top):
    """Through the kernels' own function, in a grid of the shape that they are launched with."""
    device = opencl_device()
    text = text_of({"REAL": "float", "HALF": 0, "USE_BETA": 1, "TOP_M": top[0], "TOP_N": top[1]}, ()) + OBSERVER
    module = Module("OpenCL", text, ("gemm",))
    binary: Binary = OpenCLToolchain().compile(module, device.target)
    size = count[0] * count[1] * 2 * 4
    output = device.allocate(size)
    arguments = (OperandArgument("D"), *(ScalarArgument(extent, "int32") for extent in count))
    plan = Plan((Launch(0, "gemm", (*count, 1), (1, 1, 1), arguments),))
    device.prepare(plan, [device.load(binary)], {"D": output}, None).enqueue()
    device.synchronize()
    blocks = device.read(output, size).view(np.int32).reshape(-1, 2)
    device.release(output)
    assert [tuple(map(int, block)) for block in blocks] == list(visits(count, top))


# --- what is launched -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "grid", "items"),
    [
        ("local", (3, 2, 3), 256),
        ("non_local", (3, 2, 3), 256),
        ("naive", (9, 5, 3), 256),
        ("interleaved", (3, 2, 1), 512),
    ],
)
def test_every_block_has_a_work_group(algorithm, grid, items):
    """Rounding up, not down, on sizes that divide nothing; 3 matrices are less than one batch tile of 8."""
    (step,) = OPENCL.plan(config(algorithm), problem(type_for(algorithm), 129, 65, 3, 7), GPU).steps
    assert (step.grid, step.work_group) == (grid, (items, 1, 1))


def test_tall_skinny_adds_a_launch_and_a_workspace_of_partial_sums():
    asked = problem(type_for("tall_skinny", "h"), 16, 16, 1, 100_000)
    plan = OPENCL.plan(config("tall_skinny", WorkItem=(2, 2), WorkGroup=(8, 8, 1)), asked, GPU)
    assert [step.entry for step in plan.steps] == ["gemm", "reduce"]
    parts = plan.steps[0].grid[2]
    assert parts > GPU.compute_units
    assert plan.workspace_bytes == parts * 16 * 16 * 4


@pytest.mark.parametrize("k", [0, 1, 63, 64, 65, 1000, 100_000])
def test_the_parts_of_k_cover_it_with_whole_stages_and_none_is_empty(k):
    tiling, kind = Tiling.of(config("tall_skinny")), ProgramTraits.of(type_for("tall_skinny"))
    parts, part_k = parts_of_k(tiling, kind, Gemm.of(problem(type_for("tall_skinny"), 16, 16, 1, k)), GPU)
    assert part_k % 16 == 0
    assert parts * part_k >= k
    assert (parts - 1) * part_k < max(k, 1)


def test_a_busy_device_splits_nothing():
    tiling, kind = Tiling.of(config("tall_skinny")), ProgramTraits.of(type_for("tall_skinny"))
    asked = problem(type_for("tall_skinny"), 4096, 4096, 1, 4096)
    assert parts_of_k(tiling, kind, Gemm.of(asked), GPU)[0] == 1


def test_an_empty_matrix_launches_nothing():
    for algorithm in ALGORITHMS:
        assert not OPENCL.plan(config(algorithm), problem(type_for(algorithm), 0, 5, 1, 3), GPU).steps


def test_more_columns_of_blocks_than_a_device_counts_along_y_go_along_x():
    single_item = config("naive", WorkGroup=(1, 1, 1))
    assert OPENCL.plan(single_item, problem(type_for("naive"), 3, 70_000, 1, 1), GPU).steps[0].grid == (210_000, 1, 1)
