"""The Triton families compile ahead of time for NVIDIA's and AMD's GPUs. No GPU needed."""

from __future__ import annotations

import dataclasses

import pytest

from cuda_runner import H200, configuration, toolchain
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type

DENSE, GEMV = KERNELS["TritonGemm"], KERNELS["TritonGemv"]
MI300 = dataclasses.replace(H200, api="HIP", architecture="gfx942", sub_group_size=64, local_memory_bytes=65536)
MI200 = dataclasses.replace(MI300, architecture="gfx90a")
STREAM = {"Schedule": "StreamK", "StreamKGrid": 132}
SMALL = {"MacroTile": (64, 64), "DepthU": 32, "NumWarps": 4, "NumStages": 2, "StoreVectorWidth": 4}
POINTER = {**SMALL, "LoadPath": "Pointer", "GlobalReadVectorWidth": 4, "InputPrecision": "ieee"}


def kind(data_type="h", **more):
    return gemm_type(data_type, transpose_a=True, transpose_b=False, batched=True, **more)


def config(problem_type=None, family=DENSE, **values):
    return configuration(family, problem_type or kind(), **values)


def compiled(family, chosen, problem_type, target):
    assert not list(family.rejections(chosen, problem_type, target))
    binaries = [toolchain("Triton").compile(module, target) for module in family.modules(chosen, problem_type)]
    facts = [fact for binary in binaries for fact in binary.facts]
    assert not list(family.rejections_compiled(chosen, facts, target))
    assert all(binary.payload.startswith(b"\x7fELF") for binary in binaries)
    return binaries


@pytest.mark.parametrize(
    ("data_type", "more", "values"),
    [
        ("b", {}, {"Schedule": "Persistent", "StorePath": "TMA", "FlattenTiles": True}),
        ("s", {"tf32": True}, {"InputPrecision": "tf32", "SwapOperands": False}),
        ("f8", {"scaled": True, "bias": True, "activation": "relu"}, {"EpilogueSubtile": 2}),
        ("i8", {}, {"Schedule": "SplitK", "GlobalSplitU": 2}),
    ],
)
def test_it_compiles_for_hopper_with_the_copy_engine(data_type, more, values):
    problem_type = kind(data_type, **more)
    first, *_ = compiled(DENSE, config(problem_type, **{**SMALL, **values}), problem_type, H200)
    assert b"cp.async.bulk.tensor.3d" in first.payload or b"UTMALDG" in first.payload
    maps = 3 if values.get("StorePath") else 2
    assert len(first.metadata["tensor_maps"]) == maps


def test_stream_k_publishes_with_release_and_waits_with_acquire():
    """Read in the PTX text that a cubin of Triton's carries for debuggers."""
    (binary,) = compiled(DENSE, config(**{**POINTER, **STREAM}), kind(), H200)
    text = binary.payload.replace(b"\0", b"\n").decode(errors="replace")
    if "atom." not in text:
        pytest.skip("this Triton leaves no PTX in its cubins")
    assert "release.gpu" in text or "gpu.release" in text
    assert "acquire.gpu" in text or "gpu.acquire" in text


SCHEDULES = [
    {"Schedule": "Persistent"},
    {"Schedule": "SplitK", "GlobalSplitU": 2},
    {"Schedule": "FillK"},
    {"Schedule": "StreamK", "StreamKGrid": 64},
]
ON_AMD = [
    *zip((MI300, MI200, MI300, MI200), SCHEDULES, strict=True),
    *(
        pytest.param(target, values, marks=pytest.mark.thorough)
        for target, values in zip((MI200, MI300, MI200, MI300), SCHEDULES, strict=True)
    ),
]


@pytest.mark.parametrize(("target", "values"), ON_AMD)
def test_it_compiles_for_amd_gpus(target, values):
    """Each schedule for one of the two; the thorough run adds the other. Execution there is untested."""
    compiled(DENSE, config(kind("b"), **{**POINTER, **values}), kind("b"), target)


@pytest.mark.parametrize("target", [H200, MI300], ids=lambda target: target.architecture)
def test_a_matrix_times_a_vector_compiles(target):
    compiled(GEMV, config(kind("s"), GEMV, GlobalSplitU=2, GlobalReadVectorWidth=4), kind("s"), target)
