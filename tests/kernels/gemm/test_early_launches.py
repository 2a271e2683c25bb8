"""Launches that start while the launch before them still runs: who does, and that all wait before they touch memory."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from compiled_ahead import binary
from cuda_runner import H200, configuration, cuda_device, toolchain
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Problem

KIND = gemm_type("b", transpose_b=False, use_beta=False)
TRITON = {"MacroTile": (64, 64), "DepthU": 64, "NumWarps": 4, "LoadPath": "TMA"}
STARTING_EARLY = [
    ("CudaWgmmaGemm", {}),
    ("CudaWgmmaGemm", {"ClusterShape": (2, 2), "InstructionColumns": 128}),
    ("CudaWgmmaGemm", {"ClusterShape": (1, 1, 2), "InstructionColumns": 128, "StorePath": "Direct"}),
    ("CudaWgmmaGemm", {"GlobalSplitU": 2, "InstructionColumns": 128}),
    ("TritonGemm", TRITON),
    ("TritonGemm", TRITON | {"Schedule": "SplitK", "GlobalSplitU": 2}),
]


def planned(name, values, sizes=(2048, 512, 512), target=H200):
    """The configuration, the problem D = A B, its leading dimensions its sizes, and the plan."""
    m, _, k = sizes
    family = KERNELS[name]
    chosen = configuration(family, KIND, **values)
    asked = Problem(KIND, sizes, (m, m, m, k), Configuration({"alpha": 1.0, "beta": 0.0}))
    return chosen, asked, family.plan(chosen, asked, target)


@pytest.mark.parametrize(
    ("api", "architecture", "expected"),
    [
        ("CUDA", "sm_80", False),
        ("CUDA", "sm_90", True),
        ("CUDA", "sm_90a", True),
        ("CUDA", "sm_100", True),
        ("HIP", "gfx942", False),
        ("OpenCL", "sm_90", False),
    ],
)
def test_launches_start_early_from_hopper_on(api, architecture, expected):
    target = dataclasses.replace(H200, api=api, architecture=architecture)
    assert target.starts_early is expected
    _, _, plan = planned("TritonGemm", TRITON | {"LoadPath": "Pointer"}, target=target)
    assert [step.early for step in plan.steps] == [expected]


@pytest.mark.parametrize(("name", "values"), STARTING_EARLY, ids=str)
def test_every_program_that_starts_early_waits(name, values):
    chosen, _, plan = planned(name, values)
    modules = KERNELS[name].modules(chosen, KIND)
    assert all(step.early for step in plan.steps)
    for module in modules:
        if module.language == "CUDA":
            assert "griddepcontrol.wait" in module.text
        else:
            constants = dict(module.constants)
            assert dict(constants["signature"])[constants["starts_early"]] == "constexpr"


def test_a_program_that_cannot_wait_does_not_start_early():
    family = KERNELS["TritonTmaGemm"]
    kind = gemm_type("s", transpose_a=True)
    asked = Problem(kind, (64, 64, 64), (64, 64, 64, 64), Configuration({"alpha": 1.0, "beta": 0.0}))
    assert not any(step.early for step in family.plan(configuration(family, kind), asked, H200).steps)


@pytest.mark.gpu
@pytest.mark.parametrize(("name", "values"), STARTING_EARLY, ids=str)
def test_launches_wait_for_the_one_before_on_a_gpu(name, values):
    """By turns, each moves the columns of one matrix into the other, which the launch before it has just read."""
    device = cuda_device()
    if device.target.architecture != "sm_90":
        pytest.skip("needs a GPU of the Hopper generation")
    toolchain("CUDA" if name.startswith("Cuda") else "Triton")
    m, n, times = 4096, 512, 64
    chosen, _, plan = planned(name, values, (m, n, n), device.target)
    programs = [device.load(binary(module, device.target)) for module in KERNELS[name].modules(chosen, KIND)]
    rng = np.random.default_rng(3)
    matrix, moves = rng.integers(0x80, 0x3F80, (n, m), np.uint16), rng.permutation(n)
    permutation = np.zeros((n, n), np.uint16)
    permutation[np.arange(n), moves] = 0x3F80  # 1, in row i of column j
    buffers, moving = [device.allocate(2 * m * n) for _ in range(2)], device.allocate(2 * n * n)
    device.write(buffers[0], matrix.view(np.uint8).ravel())
    device.write(moving, permutation.view(np.uint8).ravel())
    workspace = device.allocate(max(1, plan.workspace_bytes))
    if plan.zeroed:
        device.write(workspace, np.zeros(plan.zeroed, np.uint8))
    turns = [
        device.prepare(plan, programs, {"A": source, "B": moving, "C": target, "D": target}, workspace)
        for source, target in (buffers, buffers[::-1])
    ]
    for turn in turns * times:
        turn.enqueue()
    device.synchronize()
    expected = matrix
    for _ in range(2 * times):
        expected = expected[moves]
    assert (device.read(buffers[0], 2 * m * n).view(np.uint16).reshape(n, m) == expected).all()
