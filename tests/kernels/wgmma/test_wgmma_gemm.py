"""GEMM on Hopper's tensor cores: limits, launches, what NVRTC makes of it, and results where there is such a GPU."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest

from cuda_runner import H200, cuda_device, toolchain, unoptimised
from tunesmith.bench.verification.case import VerificationCase as Verified
from tunesmith.kernels import KERNELS, family_for
from tunesmith.kernels.gemm.cuda.aligned import aligned_module
from tunesmith.kernels.gemm.cuda.wgmma.shape import WgmmaShape
from tunesmith.kernels.gemm.cuda.wgmma.text import text
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, Launch, OperandArgument, TensorMapArgument, WorkspaceArgument
from verified import verify
from wgmma_cases import CASES, COMPILED, DIRECT, FAMILY, LAYOUTS, LESS, big, cases, config, kind, problem


@pytest.mark.parametrize(
    ("reason", "values", "target"),
    [
        ("device API", {}, {"api": "OpenCL"}),
        ("architecture", {}, {"architecture": "sm_80"}),
        ("architecture", {}, {"architecture": "sm_100"}),
        ("tile shape", {"InstructionColumns": 72}, {}),
        ("tile shape", {"InstructionColumns": 272}, {}),
        ("work-group size", {"WarpGroups": 4, "InstructionColumns": 32}, {}),
        ("local memory", {"Stages": 5}, {}),
        ("local memory", {}, {"local_memory_bytes": 99 * 1024}),
        ("registers", {"WarpGroups": 3, "InstructionColumns": 224}, {}),
        ("promotion", {"PromoteEvery": 1}, {}),
        ("cluster", {"ClusterShape": (3, 1)}, {}),
        ("stream-K", {"StreamKGrid": 133}, {}),
        ("stream-K", {"StreamKGrid": 132}, {"compute_units": 114}),
        ("stream-K", {"StreamKGrid": 33, "ClusterShape": (1, 2)}, {}),
        ("stream-K", {"StreamKGrid": 132, "GlobalSplitU": 2}, {}),
        ("stream-K", {"StreamKFullTiles": 1}, {}),
    ],
)
def test_an_illegal_configuration_has_a_named_reason(reason, values, target):
    found = FAMILY.rejections(config(**values), kind(), dataclasses.replace(H200, **target))
    assert reason in [rejection.reason for rejection in found]


@pytest.mark.parametrize(
    ("reason", "problem_type", "values"),
    [
        ("data type", gemm_type("s"), {}),
        ("data type", gemm_type("d"), {}),
        ("batch layout", gemm_type("h", batched=True, interleaved=True), {}),
        ("store path", kind("h", dest="s"), {"StorePath": "TMA"}),
        ("store path", kind("i8"), {"StorePath": "TMA"}),
    ],
)
def test_types_that_the_instruction_does_not_multiply_have_a_named_reason(reason, problem_type, values):
    assert reason in {
        rejection.reason for rejection in FAMILY.rejections(config(problem_type, **values), problem_type, H200)
    }


@pytest.mark.parametrize("problem_type", {id(case): case.problem_type for case in CASES}.values())
def test_the_defaults_are_legal_for_every_type_that_is_computed(problem_type):
    chosen = config(problem_type)
    assert not list(FAMILY.rejections(chosen, problem_type, H200))
    *_, launch = FAMILY.plan(chosen, problem(304, 200, 2, 112, problem_type=problem_type, multiple=16), H200).steps
    assert launch.shared_bytes <= H200.local_memory_bytes
    assert launch.shared_bytes > H200.local_memory_bytes // 2, "two work-groups fit, so that one has half the stages"


def test_operands_with_strides_that_the_copy_engine_cannot_take_are_copied_first():
    """Only those, each to a place of its own behind the partial sums, at strides that it can take."""
    chosen = config(GlobalSplitU=2, StorePath="Direct")
    fits, tight = problem(40, 21, 3, 145), dataclasses.replace(problem(40, 20, 3, 144), leading=(40, 40, 144, 145))
    assert {step.entry for step in FAMILY.plan(chosen, fits, H200).steps if isinstance(step, Launch)} == {"gemm"}
    assert not list(FAMILY.rejections_for(chosen, tight, H200))
    plan = FAMILY.plan(chosen, tight, H200)
    copy, *_, gemm = plan.steps
    assert (copy.entry, copy.module, copy.arguments[0]) == ("align", 1, OperandArgument("B"))
    b, a = (argument for argument in gemm.arguments if isinstance(argument, TensorMapArgument))
    assert (a.name, b.name, b.strides) == ("A", "", (144 * 20, 144, 1))
    assert b.offset == copy.arguments[1].offset
    assert b.offset % 256 == 0
    size = 3 * 20 * 144 * 2
    assert plan.workspace_bytes == b.offset + size + -size % 256
    assert b.offset >= FAMILY.plan(chosen, fits, H200).workspace_bytes


@pytest.mark.parametrize("data_type", ["f8", "b8", "i8", "s"])
@pytest.mark.parametrize(("layout", "names"), [("tn", ""), ("nn", "A"), ("tt", "B"), ("nt", "AB")])
def test_operands_that_are_not_contiguous_along_k_are_transposed_where_they_must_be(data_type, layout, names):
    """The product is then that of operands which were contiguous, by the same program."""
    problem_type, usual = (kind(data_type, transposes, tf32=data_type == "s") for transposes in (layout, "tn"))
    chosen = config(problem_type, InstructionColumns=96)
    assert not list(FAMILY.rejections(chosen, problem_type, H200))
    assert FAMILY.modules(chosen, problem_type) == FAMILY.modules(chosen, usual)
    plan = FAMILY.plan(chosen, problem(48, 33, 2, 100, problem_type=problem_type, multiple=16), H200)
    *copies, gemm = plan.steps
    assert [(launch.entry, launch.module, launch.arguments[0].name) for launch in copies] == [
        ("transpose", 1, n) for n in names
    ]
    b, a = (argument for argument in gemm.arguments if isinstance(argument, TensorMapArgument) and argument.name != "D")
    assert (a.shape, b.shape) == ((2, 48, 100), (2, 33, 100))
    assert (a.name, b.name) == ("" if "A" in names else "A", "" if "B" in names else "B")
    assert [launch.arguments[1].offset for launch in copies] == [
        argument.offset for argument in (a, b) if not argument.name
    ]
    assert (a.block[1], b.block[1]) == (96, 128)


def test_the_cases_send_sums_to_room_of_their_own_and_to_where_stages_were():
    shapes = [WgmmaShape.of(case.config, case.problem_type) for case in CASES]
    assert {shape.room_in_stages for shape in shapes if shape.is_joint} == {True, False}


def test_operands_of_16_bits_are_never_transposed():
    for layout in LAYOUTS:
        problem_type = kind("b", layout)
        (gemm,) = FAMILY.plan(config(problem_type), problem(48, 40, 2, 104, problem_type=problem_type), H200).steps
        assert gemm.entry == "gemm"


@pytest.mark.parametrize("m", [130, 131])
def test_a_copy_to_d_does_not_end_within_16_bytes(m):
    """On an H200 it wrote beyond the last row there; work-items write what they have."""
    (found,) = FAMILY.rejections_for(config(), problem(m, 20, 3, 44), H200)
    assert found.reason == "TMA store"
    odd = dataclasses.replace(problem(m, 20, 3, 44), leading=(m, m, 48, 48))
    assert not list(FAMILY.rejections_for(config(**DIRECT), odd, H200))


@pytest.mark.parametrize("sizes", [(0, 8, 1, 8), (8, 0, 1, 8), (8, 8, 0, 8), (8, 8, 1, 0)])
def test_nothing_is_no_view_of_memory(sizes):
    assert [rejection.reason for rejection in FAMILY.rejections_for(config(), problem(*sizes), H200)] == ["empty"]


def test_no_part_of_a_split_is_without_work():
    asked = problem(256, 256, 1, 256)
    assert not list(FAMILY.rejections_for(config(GlobalSplitU=4), asked, H200))
    assert [rejection.reason for rejection in FAMILY.rejections_for(config(GlobalSplitU=5), asked, H200)] == [
        "global split"
    ]


def test_work_groups_are_as_many_as_the_device_has_units_or_tiles():
    expected = {(4096, 4096, 1, 64): 132, (256, 300, 2, 64): 6}
    for size, groups in expected.items():
        (launch,) = FAMILY.plan(config(), problem(*size), H200).steps
        assert launch.grid == (groups, 1, 1)


def test_work_groups_with_few_stages_share_multiprocessors_where_tiles_are_whole():
    """64 x 64 elements at a time, in two stages: 33 KiB of shared memory, of 228 on a multiprocessor, and 256 of 2048
    work-items."""
    small = {"WarpGroups": 1, "InstructionColumns": 64, "StorePath": "Direct"}

    def groups(**values):
        return FAMILY.plan(config(**small, **values), problem(4096, 4096, 1, 640), H200).steps[-1].grid[0]

    assert groups() == 132
    assert groups(Stages=2) == 132 * 6
    assert groups(Stages=2, GlobalSplitU=2) == 132


@pytest.mark.parametrize(("values", "groups"), [({"GlobalSplitU": 4}, 24), ({"StreamKGrid": 50}, 50)])
def test_where_tiles_are_shared_there_are_as_many_as_share_them(values, groups):
    *_, launch = FAMILY.plan(config(**values), problem(256, 300, 2, 2048), H200).steps
    assert launch.grid == (groups, 1, 1)


def test_the_two_of_a_cluster_fetch_half_of_what_both_need():
    """Along M they have the same columns of B, which are its rows (N) here."""

    def boxes(**values):
        (launch,) = FAMILY.plan(config(**values), problem(1024, 1024, 1, 64), H200).steps
        return {
            argument.name: argument.block for argument in launch.arguments if isinstance(argument, TensorMapArgument)
        }

    assert boxes()["A"] == (1, 256, 64)
    assert boxes()["B"] == (1, 128, 64)
    assert boxes(ClusterShape=(2, 1))["B"] == (1, 64, 64)
    assert boxes(ClusterShape=(1, 2))["A"] == (1, 128, 64)


def test_with_rows_along_m_the_operands_change_places():
    along_n, along_m = (
        FAMILY.plan(config(RowsAlong=side), problem(64, 64, 1, 64), H200).steps[0].arguments[:3] for side in ("N", "M")
    )
    assert [argument.name for argument in along_n if isinstance(argument, TensorMapArgument)] == ["B", "A", "D"]
    assert [argument.name for argument in along_m if isinstance(argument, TensorMapArgument)] == ["A", "B", "D"]


def test_where_whole_waves_leave_nothing_to_share_no_workspace_is_asked_for():
    """Four tiles of 256 x 128 on four work-groups. Devices have no address for the workspace of a plan without one."""
    plan = FAMILY.plan(config(StreamKGrid=4), problem(256, 512, 1, 2048), H200)
    (launch,) = plan.steps
    assert plan.workspace_bytes == 0
    assert not [argument for argument in launch.arguments if isinstance(argument, WorkspaceArgument)]


def test_all_ways_to_split_share_a_program():
    """Only whether tiles are shared is compiled in."""
    problem_type = kind()
    first, *others = (
        FAMILY.modules(config(**values), problem_type)
        for values in ({"GlobalSplitU": 2}, {"GlobalSplitU": 4}, {"StreamKGrid": 132, "StreamKFullTiles": 1})
    )
    assert all(other == first for other in others)
    assert FAMILY.modules(config(), problem_type) != first


def test_a_configuration_means_this_family_by_naming_its_instruction():
    language = {"KernelLanguage": "CUDA"}
    assert family_for("GEMM", Configuration(language | {"MatrixInstruction": "wgmma"})) is FAMILY
    assert family_for("GEMM", Configuration(language)) is KERNELS["CudaSimtGemm"]
    assert FAMILY.derived(config())["MacroTile"] == (256, 128)


def guess(size, **values):
    return FAMILY.guess(config(**values), problem(size[0], size[1], 1, size[2]), H200)


def test_few_tiles_with_a_long_k_are_expected_to_gain_from_a_split():
    long, square = (256, 256, 65536), (4096, 4096, 4096)
    assert guess(long, StreamKGrid=132) < guess(long) / 10
    assert guess(square, GlobalSplitU=4) > guess(square)


def test_parts_of_a_cluster_are_expected_to_cost_less_than_parts_through_memory():
    """Four tiles of 512 iterations: eight parts fill a quarter of the device, and four times as many all of it."""
    sizes, tile = (256, 256, 32768), DIRECT | {"WarpGroups": 2, "InstructionColumns": 128}
    joint, through_memory = guess(sizes, **tile, ClusterShape=(1, 1, 8)), guess(sizes, **tile, GlobalSplitU=8)
    assert joint < through_memory < guess(sizes, **tile) / 4
    assert guess(sizes, **tile, ClusterShape=(1, 1, 8), GlobalSplitU=4) < joint


def test_tiles_that_fill_no_wave_are_expected_to_be_slower():
    """144 tiles of 256 x 128 are two waves of 132 work-groups; 96 of 256 x 192 are one."""
    assert guess((1536, 3000, 1536), WarpGroups=3) < guess((1536, 3000, 1536))


def test_a_transposed_operand_is_expected_to_cost_its_way_through_memory():
    """64 MiB of A read and written, and nothing where it is contiguous along K already."""
    there, turned = (
        FAMILY.guess(config(problem_type), problem(8192, 512, 1, 8192, problem_type=problem_type), H200)
        for problem_type in (kind("i8", layout) for layout in ("tn", "nn"))
    )
    least = 2 * 8192 * 8192 / 4.8e12
    assert least < turned - there < 2 * least


def test_nothing_is_expected_to_be_faster_than_memory():
    m, k = 16384, 8192
    weights = m * k * 2 / 4.8e12
    assert guess((m, 16, k), RowsAlong="M", InstructionColumns=32, StreamKGrid=132) > weights
    assert guess((m, 16, k), RowsAlong="M", InstructionColumns=32, StreamKGrid=132) < 3 * weights


@cache
def compiled(chosen, problem_type):
    """Once for the tests of a case with and without a GPU."""
    module, _ = FAMILY.modules(chosen, problem_type)
    binary = toolchain("CUDA").compile(module, H200)
    assert not list(FAMILY.rejections_compiled(chosen, binary.facts, H200))
    assert binary.facts[0].registers * 128 * (chosen.integer("WarpGroups") + 1) <= 65536
    return binary


@cache
def compiled_copies():
    return toolchain("CUDA").compile(aligned_module(), H200)


@pytest.mark.parametrize("case", cases(COMPILED))
def test_nvrtc_compiles_every_case_without_a_gpu(case):
    module, _ = FAMILY.modules(case.config, case.problem_type)
    toolchain("CUDA").compile(unoptimised(module), H200)


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_nvrtc_makes_of_every_case_can_be_launched(case):
    """The big tiles, which are nearest to the limits, are always looked at."""
    compiled(case.config, case.problem_type)


@pytest.mark.parametrize(("problem_type", "values"), big(LESS))
def test_the_sums_of_big_tiles_stay_in_registers(problem_type, values):
    binary = compiled(config(problem_type, **values), problem_type)
    assert (binary.facts[0].spill_bytes or 0) <= 64


@pytest.mark.parametrize(("problem_type", "values"), big(LESS))
def test_warp_groups_take_no_more_registers_than_there_are_at_launch(problem_type, values):
    """They would wait for the rest forever. By the numbers of kernel.cu: what one fetches with, and the others have."""
    chosen = config(problem_type, **values)
    groups = chosen.integer("WarpGroups")
    fetching, multiplying = {2: (40, 232), 3: (32, 160)}[groups]
    at_launch = compiled(chosen, problem_type).facts[0].registers * (groups + 1)
    assert fetching + multiplying * groups <= at_launch


@pytest.mark.parametrize("data_type", ["h", "b", "f8", "b8", "i8", "s"])
def test_nvrtc_knows_every_instruction(data_type):
    """Of each type the narrowest; the widest are among the big tiles."""
    problem_type = kind(data_type, tf32=data_type == "s", use_beta=False)
    chosen = config(problem_type, WarpGroups=1, InstructionColumns=32, PromoteEvery=0, RowsAlong="M")
    module, _ = FAMILY.modules(chosen, problem_type)
    assert "m64n32k" in module.text
    toolchain("CUDA").compile(unoptimised(module), H200)


def test_only_one_text_speaks_to_the_hardware():
    """What stands in for it in the tests replaces that one."""
    others = ("layout.cu", "schedule.cu", "epilogue.cu", "kernel.cu")
    assert "asm" in text("hardware.cu")
    assert not [name for name in others if "asm" in text(name)]


def test_only_new_barriers_are_released_to_the_cluster():
    """That is a fence of the GPU's memory, 1.2 us on an H200 where something was written before."""
    (line,) = [
        line for line in text("hardware.cu").splitlines() if ".release.cluster" in line or "arrive.release" in line
    ]
    assert "fence.mbarrier_init" in line


# --- on a GPU -------------------------------------------------------------------------------------------------------


def hopper():
    device = cuda_device()
    if device.target.architecture != "sm_90":
        pytest.skip("needs a GPU of the Hopper generation")
    return device


def wrong_on_hopper(chosen, problem_type, problems):
    """Every check of each problem between guard bands, as the bench does it; the program is compiled once."""
    device, operation = hopper(), GemmOperation()
    programs = [device.load(compiled(chosen, problem_type)), device.load(compiled_copies())]
    for asked in problems:
        assert not list(FAMILY.rejections_for(chosen, asked, device.target))
        for check in operation.checks(asked):
            inputs = operation.inputs(check, np.random.default_rng(7))
            case = Verified(operation.operands(check), inputs, operation.reference(check, inputs))
            if found := verify(device, programs, FAMILY.plan(chosen, check, device.target), case):
                yield check.sizes, found


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_is_right_on_a_gpu(case):
    problem_type = case.problem_type
    sizes = [(8 if case.config.word("StorePath") == "TMA" else 1, 1, 1, 129 * case.parts - 64)]
    tiny = [problem(*size, problem_type=problem_type, pad=16, multiple=16) for size in sizes]
    assert list(wrong_on_hopper(case.config, problem_type, [case.problem, *tiny])) == []


@pytest.mark.gpu
@pytest.mark.parametrize(("problem_type", "values"), big())
def test_big_tiles_are_right_on_a_gpu(problem_type, values):
    asked = [
        problem(m, n, 2, k, problem_type=problem_type, pad=16, multiple=16)
        for m, n, k in ((520, 391, 333), (1000, 1999, 64))
    ]
    assert list(wrong_on_hopper(config(problem_type, **values), problem_type, asked)) == []


@pytest.mark.gpu
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("side", ["N", "M"])
def test_every_layout_is_right_on_a_gpu(layout, side):
    problem_type = kind("b", layout)
    asked = [
        problem(136, 77, 3, 1013, problem_type=problem_type, pad=8),
        problem(264, 513, 1, 64, problem_type=problem_type),
    ]
    chosen = config(problem_type, RowsAlong=side, InstructionColumns=64, WorkGroupMapping=8)
    assert list(wrong_on_hopper(chosen, problem_type, asked)) == []


def test_two_stages_are_enough():
    assert not list(FAMILY.rejections(config(Stages=2), kind(), H200))
