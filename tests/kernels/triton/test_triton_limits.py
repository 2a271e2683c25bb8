"""Each limit of the Triton families: the most that is legal, and the least that is not. Neither Triton nor a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuda_runner import H200, configuration
from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem

DENSE = KERNELS["TritonGemm"]
BY_ITEMS = {"LoadPath": "Pointer", "MacroTile": (128, 128), "DepthU": 64, "NumWarps": 8}


def kind(data_type="h", **more):
    return gemm_type(data_type, **{"transpose_a": True, "transpose_b": False, "batched": True, **more})


def reasons(problem_type=None, target=H200, **values):
    problem_type = problem_type or kind()
    chosen = configuration(DENSE, problem_type, **values)
    return [rejection.reason for rejection in DENSE.rejections(chosen, problem_type, target)]


def refused(sizes, leading=(), problem_type=None, target=H200, **values):
    problem_type = problem_type or kind()
    chosen, asked = configuration(DENSE, problem_type, **values), Problem(problem_type, sizes, leading)
    return {rejection.reason for rejection in DENSE.rejections_for(chosen, asked, target)}


@pytest.mark.parametrize(("data_type", "shortest"), [("i8", 4), ("h", 2), ("s", 1)])
def test_loads_of_4_bytes_are_copied_to_shared_memory_and_shorter_ones_are_not(data_type, shortest):
    """Of the stages, one stays in registers. What is not copied takes no shared memory between the stages."""
    element = 4 // shortest
    stage = (128 + 128) * 64 * element
    values = {**BY_ITEMS, "GlobalReadVectorWidth": shortest, "NumStages": 3}
    fitting, tight = (replace(H200, local_memory_bytes=2 * stage - missing) for missing in (0, 1))
    assert reasons(kind(data_type), fitting, **values) == []
    assert reasons(kind(data_type), tight, **values) == ["local memory"]
    if shortest > 1:
        narrow = {**values, "GlobalReadVectorWidth": shortest // 2}
        assert reasons(kind(data_type), tight, **narrow) == []
