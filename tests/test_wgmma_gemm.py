"""GEMM on Hopper's tensor cores: limits, launches, what NVRTC makes of it, and results where there is such a GPU."""

from __future__ import annotations

import dataclasses

import pytest

from cuda_runner import H200, configuration, toolchain, wrong_on_gpu
from tunesmith.kernels import KERNELS, family_for
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, Problem, TensorMapArgument

FAMILY = KERNELS["CudaWgmmaGemm"]
TRANSPOSES = [(False, False), (True, False), (False, True), (True, True)]
SHAPES = [
    {},
    {"RowsAlong": "M", "InstructionColumns": 64},
    {"WarpGroups": 1, "InstructionColumns": 192, "WorkGroupMapping": 8},
    {"WarpGroups": 3, "InstructionColumns": 128, "RowsAlong": "M", "Stages": 2},
]


def kind(transpose_a=True, transpose_b=False):
    return gemm_type("h", transpose_a=transpose_a, transpose_b=transpose_b, batched=True)


def config(problem_type=None, **values) -> Configuration:
    return configuration(FAMILY, problem_type or kind(), **values)


def problem(*sizes, problem_type=None, pad=0) -> Problem:
    """Leading dimensions are multiples of 8, as TMA needs them, and beyond the sizes by `pad`."""
    problem_type = problem_type or kind()
    least = [value for _, value in GemmOperation().leading(problem_type, sizes)]
    leading = tuple(-(-value // 8) * 8 + pad for value in least)
    return Problem(problem_type, sizes, leading, Configuration({"alpha": 1.5, "beta": 0.5}))


@pytest.mark.parametrize(
    ("reason", "values", "target"),
    [
        ("device API", {}, {"api": "OpenCL"}),
        ("architecture", {}, {"architecture": "sm_80"}),
        ("architecture", {}, {"architecture": "sm_100"}),
        ("tile shape", {"InstructionColumns": 80}, {}),
        ("tile shape", {"InstructionColumns": 288}, {}),
        ("work-group size", {"WarpGroups": 4, "InstructionColumns": 32}, {}),
        ("local memory", {"Stages": 5}, {}),
        ("local memory", {}, {"local_memory_bytes": 99 * 1024}),
    ],
)
def test_an_illegal_configuration_has_a_named_reason(reason, values, target):
    found = FAMILY.rejections(config(**values), kind(), dataclasses.replace(H200, **target))
    assert reason in [one.reason for one in found]


@pytest.mark.parametrize("values", SHAPES)
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_what_is_legal_stays_within_shared_memory(transposes, values):
    its = kind(*transposes)
    chosen = config(its, **values)
    assert not list(FAMILY.rejections(chosen, its, H200))
    (launch,) = FAMILY.plan(chosen, problem(300, 200, 2, 100, problem_type=its), H200).steps
    assert 2 * 64 * 32 * 2 < launch.shared_bytes <= H200.local_memory_bytes
    assert launch.work_group[0] <= 512


def test_only_half_precision_and_matrices_one_after_the_other_are_computed():
    for other in (gemm_type("s"), gemm_type("d"), gemm_type("h", batched=True, interleaved=True)):
        assert {one.reason for one in FAMILY.rejections(config(), other, H200)} & {"data type", "batch layout"}


def test_columns_that_are_not_contiguous_along_k_come_in_boxes_of_64():
    narrow = config(InstructionColumns=96)
    assert not list(FAMILY.rejections(narrow, kind(True, False), H200))
    (found,) = FAMILY.rejections(narrow, kind(False, False), H200)
    assert found.reason == "TMA box"


def test_strides_that_the_copy_engine_cannot_take_have_a_named_reason():
    assert not list(FAMILY.rejections_for(config(), problem(40, 21, 3, 45), H200))
    tight = dataclasses.replace(problem(40, 20, 3, 44), leading=())
    assert {one.reason for one in FAMILY.rejections_for(config(), tight, H200)} == {"TMA alignment"}


@pytest.mark.parametrize("m", [130, 131])
def test_a_copy_to_d_does_not_end_within_16_bytes(m):
    """On an H200 it wrote beyond the last row there."""
    (found,) = FAMILY.rejections_for(config(), problem(m, 20, 3, 44), H200)
    assert found.reason == "TMA store"


def test_work_groups_are_as_many_as_the_device_has_units_or_tiles():
    sizes = {(4096, 4096, 1, 64): 132, (256, 300, 2, 64): 6}
    for size, groups in sizes.items():
        (launch,) = FAMILY.plan(config(), problem(*size), H200).steps
        assert launch.grid == (groups, 1, 1)


def test_with_rows_along_m_the_operands_change_places():
    along_n, along_m = (
        FAMILY.plan(config(RowsAlong=side), problem(64, 64, 1, 64), H200).steps[0].arguments[:3] for side in ("N", "M")
    )
    assert [one.name for one in along_n if isinstance(one, TensorMapArgument)] == ["B", "A", "D"]
    assert [one.name for one in along_m if isinstance(one, TensorMapArgument)] == ["A", "B", "D"]


def test_a_configuration_means_this_family_by_naming_its_instruction():
    language = {"KernelLanguage": "CUDA"}
    assert family_for("GEMM", Configuration(language | {"MatrixInstruction": "wgmma"})) is FAMILY
    assert family_for("GEMM", Configuration(language)) is KERNELS["CudaSimtGemm"]
    assert FAMILY.derived(config())["MacroTile"] == (256, 128)


@pytest.mark.parametrize("values", SHAPES)
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_nvrtc_compiles_without_a_gpu_and_nothing_spills(transposes, values):
    its = kind(*transposes)
    chosen = config(its, **values)
    binaries = [toolchain("CUDA").compile(module, H200) for module in FAMILY.modules(chosen, its)]
    facts = [fact for binary in binaries for fact in binary.facts]
    assert not list(FAMILY.rejections_compiled(chosen, facts, H200))
    threads = 128 * (chosen.integer("WarpGroups") + 1)
    assert facts[0].registers * threads <= 65536


@pytest.mark.gpu
@pytest.mark.parametrize("values", SHAPES)
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_the_kernel_is_right_on_a_gpu(transposes, values):
    if cuda_architecture() != "sm_90":
        pytest.skip("needs a GPU of the Hopper generation")
    its = kind(*transposes)
    for sizes, pad in (((136, 77, 3, 1013), 8), ((520, 390, 1, 64), 0), ((8, 1, 1, 1), 0), ((1000, 1999, 1, 333), 16)):
        assert wrong_on_gpu(FAMILY, config(its, **values), problem(*sizes, problem_type=its, pad=pad)) == []


def cuda_architecture() -> str:
    from cuda_runner import cuda_device

    return cuda_device().target.architecture
