"""The latency model chooses the family, and leaves out tiles whose loads need too many registers."""

import pytest

from tunesmith.kernels import KERNELS
from tunesmith.models.intensity.policies import PolicyChoice, policy_named
from tunesmith.models.intensity.policies.family_order import kernel_order
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.models.intensity.policies.mappings.triton import _candidates
from tunesmith.records import Problem
from tunesmith.session.stream_k.kernels import type_named

H200 = known_target("sm_90")
MEMORY = 232448


def choice(*sizes):
    problem = Problem(type_named("b"), sizes)
    answer = policy_named("latency").choose_among(problem, H200, kernel_order(problem, H200))
    assert isinstance(answer, PolicyChoice)
    return answer


@pytest.mark.parametrize(("sizes", "family"), [((4096, 4096, 4096), "CudaWgmmaGemm"), ((243, 567, 41), "TritonGemm")])
def test_a_product_whose_operands_would_be_copied_first_gets_another_family(sizes, family):
    answer = choice(*sizes)
    assert answer.kernel == family
    assert answer.lines[0].step == "families"
    assert "CudaWgmmaGemm" in answer.lines[0].text
    assert "TritonGemm" in answer.lines[0].text


def test_the_order_keeps_families_that_are_no_rivals_in_their_place():
    problem = Problem(type_named("b"), (243, 567, 41))
    before = kernel_order(problem, H200)
    after = policy_named("latency").ordered(problem, H200, before)
    assert after[:2] == before[1::-1]
    assert after[2:] == before[2:]


def test_one_family_alone_stays():
    problem = Problem(type_named("b"), (243, 567, 41))
    assert policy_named("latency").ordered(problem, H200, [KERNELS["CudaWgmmaGemm"]]) == (KERNELS["CudaWgmmaGemm"],)


@pytest.mark.parametrize(("width", "registers"), [(1, 3), (2, 5), (4, 5), (8, 5)])
def test_loads_and_sums_of_a_candidate_fit_the_registers(width, registers):
    for wish in _candidates(2, MEMORY, width, 32):
        items = 32 * wish.warps
        assert wish.elements / items + registers * (wish.m + wish.n) * wish.depth / width / items <= 255


def test_single_elements_of_two_bytes_are_not_kept_in_flight():
    assert {wish.stages for wish in _candidates(2, MEMORY, 1, 32)} == {1}
    assert max(wish.stages for wish in _candidates(2, MEMORY, 2, 32)) == 5


def test_a_device_without_sub_groups_gets_candidates():
    assert _candidates(2, MEMORY, 1, 1)
