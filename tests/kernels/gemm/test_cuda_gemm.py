"""The CUDA C++ GEMM: its limits, its launches, its arithmetic (on the host and on a GPU), and its compiler."""

from __future__ import annotations

import dataclasses

import pytest

from cuda_on_host import verify_on_host
from cuda_runner import H200, configuration, toolchain, wrong_on_gpu
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import Configuration, Module, Problem, Solution
from tunesmith.toolchains import CompileError
from tunesmith.toolchains.cubin import cubin_facts

FAMILY = KERNELS["CudaSimtGemm"]
BATCHED = gemm_type("s", batched=True)


def config(problem_type=BATCHED, **values):
    return configuration(FAMILY, problem_type, **values)


def problem(*sizes, problem_type=BATCHED, alpha=1.5, beta=0.5, pad=0):
    scalars = Configuration({"alpha": alpha, "beta": beta})
    leading = tuple(least + pad for _, least in GemmOperation().leading(problem_type, sizes)) if pad else ()
    return Problem(problem_type, sizes, leading, scalars)


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("work-group size", {"WorkGroup": (64, 32, 1)}),
        ("local split", {"WorkGroup": (8, 8, 4)}),
        ("registers", {"ThreadTile": (16, 16)}),
        ("local memory", {"WorkGroup": (32, 32, 1), "ThreadTile": (8, 8), "DepthU": 256}),
    ],
)
def test_an_illegal_configuration_has_a_named_reason(reason, values):
    assert reason in [rejection.reason for rejection in FAMILY.rejections(config(**values), BATCHED, H200)]


def test_the_defaults_are_legal_and_need_a_cuda_device():
    assert not list(FAMILY.rejections(config(), BATCHED, H200))
    reasons = [
        rejection.reason for rejection in FAMILY.rejections(config(), BATCHED, dataclasses.replace(H200, api="OpenCL"))
    ]
    assert reasons == ["device API"]


@pytest.mark.parametrize(
    ("reason", "sizes", "parts"),
    [
        ("device memory", (150000, 150000, 1, 64), 2),
        ("maximum allocation", (250000, 250000, 1, 64), 1),
        ("grid", (64, 64, 40000, 64), 2),
        ("global split", (64, 64, 1, 3), 4),
        ("index range", (2**31, 1, 1, 1), 1),
    ],
)
def test_a_problem_that_cannot_run_has_a_named_reason(reason, sizes, parts):
    found = FAMILY.rejections_for(config(GlobalSplitU=parts), problem(*sizes), H200)
    assert reason in [rejection.reason for rejection in found]


def test_split_k_is_two_launches_over_a_workspace_of_partial_sums():
    plan = FAMILY.plan(config(GlobalSplitU=3), problem(100, 50, 2, 1000), H200)
    assert [step.entry for step in plan.steps] == ["gemm", "reduce"]
    assert plan.workspace_bytes == 3 * 2 * 100 * 50 * 4
    assert [step.grid for step in plan.steps] == [(2, 1, 6), (20, 1, 2)]
    assert FAMILY.plan(config(), problem(100, 50, 2, 1000), H200).workspace_bytes == 0


def test_the_parts_of_k_cover_it_and_begin_at_whole_steps():
    for k in (1, 7, 8, 1000, 1025):
        plan = FAMILY.plan(config(GlobalSplitU=3, DepthU=16), problem(64, 64, 1, k), H200)
        part = plan.steps[0].arguments[6].value
        assert part % 16 == 0
        assert part * 3 >= k


def test_the_number_of_parts_changes_the_launch_and_not_the_program():
    two, four = (Solution(BATCHED, FAMILY.name, config(GlobalSplitU=parts)) for parts in (2, 4))
    assert FAMILY.modules(two.configuration, BATCHED) == FAMILY.modules(four.configuration, BATCHED)
    assert FAMILY.identity(two) != FAMILY.identity(four)


@pytest.mark.parametrize(
    ("data_type", "transpose_a", "transpose_b", "parts"),
    [("s", False, False, 1), ("d", True, False, 1), ("s", False, True, 3), ("s", True, True, 2)],
)
def test_the_text_computes_a_gemm(tmp_path, data_type, transpose_a, transpose_b, parts):
    """Sizes that divide nothing, padded columns, a batch; beta = 0 with a C of NaN; only D's elements are written."""
    kind = gemm_type(data_type, transpose_a=transpose_a, transpose_b=transpose_b, batched=True)
    asked = problem(13, 9, 2, 21, problem_type=kind, pad=3)
    chosen = config(kind, WorkGroup=(4, 2, 1), ThreadTile=(3, 2), DepthU=8, GlobalSplitU=parts)
    verify_on_host(FAMILY, chosen, asked, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("transposes", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("data_type", ["s", "d"])
def test_the_kernel_is_right_on_a_gpu(data_type, transposes, parts):
    kind = gemm_type(data_type, transpose_a=transposes[0], transpose_b=transposes[1], batched=True)
    asked = problem(131, 77, 3, 1013, problem_type=kind, pad=5)
    assert wrong_on_gpu(FAMILY, config(kind, DepthU=16, GlobalSplitU=parts), asked) == []


@pytest.mark.gpu
def test_a_tile_beyond_48_kib_of_shared_memory_is_right_on_a_gpu():
    chosen = config(ThreadTile=(8, 8), DepthU=128)
    assert FAMILY.plan(chosen, problem(300, 300, 1, 300), H200).steps[0].shared_bytes > 100 * 1024
    assert wrong_on_gpu(FAMILY, chosen, problem(300, 300, 1, 300)) == []


# NVRTC, where it is installed; it needs no GPU.


def test_nvrtc_compiles_without_a_gpu_and_tells_registers():
    split = config(GlobalSplitU=4)
    binary = toolchain("CUDA").compile(FAMILY.modules(split, BATCHED)[0], H200)
    assert [fact.entry for fact in binary.facts] == ["gemm", "reduce"]
    assert all(8 < fact.registers <= 255 and fact.max_work_group_size == 256 for fact in binary.facts)
    wide = toolchain("CUDA").compile(FAMILY.modules(config(ThreadTile=(8, 8)), BATCHED)[0], H200)
    assert wide.facts[0].registers > binary.facts[0].registers


def test_static_shared_memory_is_told_without_the_systems_own():
    text = 'extern "C" __global__ void k(int *p) { __shared__ int s[500]; s[threadIdx.x] = *p; p[1] = s[p[2]]; }'
    for architecture in ("sm_80", "sm_90", "sm_100"):
        target = dataclasses.replace(H200, architecture=architecture)
        assert toolchain("CUDA").compile(Module("CUDA", text, ("k",)), target).facts[0].local_bytes == 2000


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("nonsense", (), "compilation"),
        ("", ("--no-such-option",), "invalid option"),
        ("", (), "missing entry"),
    ],
)
def test_what_nvrtc_refuses_is_a_compile_error_with_a_constant_reason(text, options, reason):
    with pytest.raises(CompileError) as raised:
        toolchain("CUDA").compile(Module("CUDA", text, ("k",), options), H200)
    assert raised.value.reason == reason
    assert raised.value.log


def test_what_is_no_cubin_is_said_so():
    with pytest.raises(ValueError, match="cubin"):
        cubin_facts(b"PTX", ("k",), "sm_90")
