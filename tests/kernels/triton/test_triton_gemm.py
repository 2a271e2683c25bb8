"""The Triton GEMM with TMA descriptors made on the host: limits, launches, ahead-of-time compilation, results."""

from __future__ import annotations

import dataclasses
import multiprocessing
import pickle
import re
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import pytest

from cuda_runner import H200, configuration, cuda_device, toolchain, wrong_on_gpu
from tunesmith.devices.cuda.arguments import Convention, packed
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import GemmOperation, gemm_type
from tunesmith.records import CompiledFacts, Configuration, Problem, TensorMapArgument, UserError
from tunesmith.toolchains import TOOLCHAINS, CompileError
from tunesmith.toolchains.triton import jit_function

FAMILY = KERNELS["TritonTmaGemm"]
TRANSPOSES = [(False, False), (True, False), (False, True), (True, True)]


def kind(transpose_a=False, transpose_b=False):
    return gemm_type("s", transpose_a=transpose_a, transpose_b=transpose_b, batched=True)


def config(problem_type=None, **values):
    return configuration(FAMILY, problem_type or kind(), **{"DepthU": 32, **values})


def problem(*sizes, problem_type=None, pad=0):
    problem_type = problem_type or kind()
    leading = tuple(least + pad for _, least in GemmOperation().leading(problem_type, sizes)) if pad else ()
    return Problem(problem_type, sizes, leading, Configuration({"alpha": 1.5, "beta": 0.5}))


@pytest.mark.parametrize(
    ("reason", "values", "target"),
    [
        ("device API", {}, {"api": "OpenCL"}),
        ("architecture", {}, {"architecture": "sm_80"}),
        ("architecture", {}, {"architecture": "gfx942"}),
        ("local split", {"WorkGroup": (16, 8, 2)}, {}),
        ("warps", {"WorkGroup": (16, 6, 1)}, {}),
        ("warps", {"WorkGroup": (32, 32, 1)}, {}),
        ("tile shape", {"ThreadTile": (3, 4)}, {}),
        ("tile shape", {"DepthU": 8}, {}),
        ("TMA box", {"ThreadTile": (32, 1)}, {}),
        ("local memory", {"ThreadTile": (8, 8), "DepthU": 64, "NumStages": 4}, {}),
    ],
)
def test_an_illegal_configuration_has_a_named_reason(reason, values, target):
    found = FAMILY.rejections(config(**values), kind(), dataclasses.replace(H200, **target))
    assert reason in [rejection.reason for rejection in found]


def test_only_single_precision_is_offered():
    double = gemm_type("d")
    assert "data type" in [rejection.reason for rejection in FAMILY.rejections(config(), double, H200)]
    assert not list(FAMILY.rejections(config(), kind(), H200))


def test_strides_that_the_copy_engine_cannot_take_have_a_named_reason():
    assert not list(FAMILY.rejections_for(config(), problem(36, 20, 3, 44), H200))
    for sizes in ((37, 20, 3, 44), (36, 20, 3, 42)):
        (found,) = FAMILY.rejections_for(config(), problem(*sizes), H200)
        assert found.reason == "TMA alignment"
    assert not list(FAMILY.rejections_for(config(), problem(36, 21, 3, 44), H200)), "N is nobody's contiguous dimension"


def test_a_program_that_lives_on_its_stack_or_needs_too_many_registers_is_rejected():
    def reasons(**facts):
        return [
            rejection.reason
            for rejection in FAMILY.rejections_compiled(config(), [CompiledFacts("gemm", **facts)], H200)
        ]

    assert reasons(registers=255, spill_bytes=100, local_bytes=1000) == []
    assert reasons(registers=32, spill_bytes=4640) == ["spills"]
    assert reasons(local_bytes=232449) == ["local memory"]
    assert reasons(registers=257) == ["registers"]


@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_the_descriptors_are_of_the_matrices_as_they_lie_in_memory(transposes):
    """Shapes stop at the matrix and not at its leading dimension, so that padding is never multiplied."""
    asked = problem(36, 20, 3, 44, problem_type=kind(*transposes), pad=4)
    a, b = (
        argument
        for argument in FAMILY.plan(config(), asked, H200).steps[0].arguments
        if isinstance(argument, TensorMapArgument)
    )
    for made, name in ((a, "A"), (b, "B")):
        (operand,) = (candidate for candidate in GemmOperation().operands(asked) if candidate.name == name)
        assert sorted(zip(made.shape, made.strides, strict=True)) == sorted(
            zip(operand.shape, operand.strides, strict=True)
        )
        assert list(made.strides) == sorted(operand.strides, reverse=True)


# Compiling needs Triton and no GPU.


@cache
def compiled(target=H200, transposes=(False, False), **values):
    compiler = toolchain("Triton")
    return compiler.compile(FAMILY.modules(config(**values), kind(*transposes))[0], target)


@pytest.mark.parametrize(
    "transposes",
    [pytest.param(both, marks=() if both[0] == both[1] else pytest.mark.thorough) for both in TRANSPOSES],
)
def test_it_compiles_ahead_of_time_to_a_program_that_uses_the_copy_engine(transposes):
    """Each operand both ways; the thorough run adds the other pairs, which test_triton_on_host computes with."""
    binary = compiled(transposes=transposes)
    assert binary.payload.startswith(b"\x7fELF")
    assert b"cp.async.bulk.tensor.3d" in binary.payload or b"UTMALDG" in binary.payload
    (fact,) = binary.facts
    assert 32 <= fact.registers <= 255
    assert 3 * (64 + 64) * 32 * 4 <= fact.local_bytes <= H200.local_memory_bytes
    assert binary.metadata["threads"] == 256
    assert len(binary.metadata["tensor_maps"]) == 2


def test_the_launch_gives_exactly_the_parameters_that_the_kernel_takes():
    """The sizes are read from the PTX text that a cubin of Triton's carries for debuggers."""
    binary = compiled(transposes=TRANSPOSES[0])
    plan = FAMILY.plan(config(), problem(36, 20, 3, 44), H200)
    values = packed(plan.steps[0].arguments, Convention.of(binary.metadata), defaultdict(int), lambda made: bytes(128))
    text = binary.payload.replace(b"\0", b"\n").decode(errors="replace")
    sizes = {".u32": 4, ".f32": 4, ".u64": 8}
    declared = [
        128 if array else sizes[scalar]
        for array, scalar in re.findall(r"\.param (?:(\.align 64 \.b8 \w+\[128\])|(\.\w+)[^\n]*gemm_param)", text)
    ]
    assert [len(value) for value, _ in values] == declared


def test_the_same_source_compiles_for_an_amd_gpu():
    target = dataclasses.replace(H200, api="HIP", architecture="gfx942", sub_group_size=64)
    binary = compiled(target, InputPrecision="ieee", ThreadTile=(4, 4))
    assert binary.payload.startswith(b"\x7fELF")
    assert binary.metadata["threads"] == 512


def _compile(module):
    return TOOLCHAINS["Triton"].compile(module, H200)


def test_another_process_compiles_and_hands_back_binaries():
    toolchain("Triton")
    modules = [FAMILY.modules(config(NumStages=stages), kind())[0] for stages in (2, 3)]
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        binaries = list(pool.map(_compile, modules))
    assert [binary.module for binary in binaries] == [module.digest() for module in modules]
    shared = [binary.facts[0].local_bytes for binary in binaries]
    assert shared[0] < shared[1]
    assert pickle.loads(pickle.dumps(binaries[0])) == binaries[0]


def test_compiling_leaves_nothing_in_the_users_folders(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    compiled.__wrapped__(ThreadTile=(2, 2))
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().out == ""


def test_what_triton_refuses_is_a_compile_error_with_a_constant_reason():
    (module,) = FAMILY.modules(config(), kind())
    changed = module.constants | {"constexprs": tuple(dict(module.constants["constexprs"], TILE_M=48).items())}
    with pytest.raises(CompileError) as raised:
        toolchain("Triton").compile(dataclasses.replace(module, constants=changed), H200)
    assert raised.value.reason == "source rejected"
    assert "power of 2" in raised.value.log


def test_a_jit_function_may_lie_in_a_file_and_a_missing_one_is_the_users_mistake(tmp_path):
    toolchain("Triton")
    (tmp_path / "mine.py").write_text("import triton\n@triton.jit\ndef kernel(x): pass\n")
    assert jit_function(f"{tmp_path}/mine.py:kernel").fn.__name__ == "kernel"
    for missing in (f"{tmp_path}/mine.py:other", f"{tmp_path}/none.py:kernel", "no.such.module:kernel"):
        with pytest.raises(UserError, match="jit function"):
            jit_function(missing)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["tf32x3", "ieee"])
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_the_kernel_is_right_on_a_gpu_at_sizes_that_divide_no_tile(transposes, precision):
    if int(cuda_device().target.architecture[3:]) < 90:
        pytest.skip("TMA needs sm_90")
    toolchain("Triton")
    problem_type = kind(*transposes)
    asked = problem(132, 76, 3, 1012, problem_type=problem_type, pad=4)
    assert wrong_on_gpu(FAMILY, config(problem_type, InputPrecision=precision), asked) == []
