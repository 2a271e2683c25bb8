"""Calls of the vendor's BLAS on torch tensors add as torch lets its own calls add."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from cuda_runner import H200
from tunesmith.kernels import KERNELS
from tunesmith.library import LaunchRecord
from tunesmith.library.gemm._torch_matmul import loose_sums
from tunesmith.library.launch._launcher import ReadyLaunch, with_loose_sums
from tunesmith.logic import Choice, Rule
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Plan, Problem, Solution, Zero

torch = pytest.importorskip("torch")

KIND = gemm_type("b", use_beta=False)
SIZE = Problem(KIND, (64, 64, 64), (), Configuration({"alpha": 1.0}))
SOLUTION = Solution(KIND, "VendorBlas", KERNELS["VendorBlas"].space(KIND).defaults)
PROGRAMS = SimpleNamespace(programs=())


def ready(*steps):
    return ReadyLaunch.of(LaunchRecord(Choice(SOLUTION, "S0", Rule.FALLBACK), SIZE, Plan(steps), SOLUTION), PROGRAMS)


@pytest.mark.parametrize("answer", [True, False, (True, False), (False, True)])
def test_torchs_settings_say_whether_sums_of_halves_are_loose(monkeypatch, answer):
    """Newer releases answer with a pair."""
    expected = answer[0] if isinstance(answer, tuple) else answer
    for name, dtype in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
        monkeypatch.setattr(torch._C, f"_get_cublas_allow_{name}_reduced_precision_reduction", lambda: answer)
        assert loose_sums(torch, dtype) is expected
    assert not loose_sums(torch, torch.float32)
    assert not loose_sums(torch, torch.float64)


def test_torch_has_the_settings():
    assert loose_sums(torch, torch.bfloat16) == torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction
    assert loose_sums(torch, torch.float16) == torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction


def test_a_call_with_loose_sums_is_named_apart_and_of_the_same_solution():
    (call,) = KERNELS["VendorBlas"].plan(SOLUTION.configuration, SIZE, H200).steps
    strict = ready(Zero("D", 0, 8), call)
    loose = with_loose_sums(strict).launched
    assert loose.choice.name == "S0, loose sums"
    assert loose.solution == SOLUTION
    assert loose.plan.steps[0] == strict.launched.plan.steps[0]
    assert loose.plan.steps[1] == replace(call, parameters=call.parameters | {"loose_sums": True})
    assert strict.launched.choice.name == "S0"


def test_a_call_of_cublas_lt_stays_as_it_is():
    kind = gemm_type("b", use_beta=False, bias=True)
    size = Problem(kind, (64, 64, 64), (), Configuration({"alpha": 1.0}))
    (call,) = KERNELS["VendorBlas"].plan(SOLUTION.configuration, size, H200).steps
    strict = ready(call)
    assert with_loose_sums(strict) is strict


def test_a_launch_of_a_kernel_stays_as_it_is():
    kernel = ready(Zero("D", 0, 8))
    assert with_loose_sums(kernel) is kernel
