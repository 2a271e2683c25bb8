"""Every policy answers every problem with a legal configuration or a named reason, and never with an exception."""

from __future__ import annotations

import csv
import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from policy_problems import FAMILIES, KINDS, TARGETS, fitted_to_families, is_legal, problem, random_problems
from tunesmith.devices.fake import fake_target
from tunesmith.kernels import KERNELS, family_for
from tunesmith.models.intensity.policies import (
    POLICIES,
    STEPS,
    PolicyChoice,
    PolicyRefusal,
    policy_named,
)
from tunesmith.models.intensity.policies.family_order import ORDER, kernel_order
from tunesmith.models.intensity.policies.known_targets import KNOWN_TARGETS, known_target
from tunesmith.models.intensity.policies.mappings import MAPPINGS
from tunesmith.models.intensity.policies.packaged import packaged_policy
from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem, UserError

ROOT = Path(__file__).parents[3]
H200, CPU = KNOWN_TARGETS["sm_90"], KNOWN_TARGETS["x86-64"]
UNANSWERABLE = {
    "architecture",
    "batch layout",
    "data type",
    "device API",
    "device kind",
    "double precision",
    "epilogue",
    "input precision",
    "layout",
    "no BLAS",
    "no vector",
}
"""Reasons that do not depend on the tile."""
TOO_LARGE = {"maximum allocation", "device memory", "alignment", "TMA alignment"}
"""Reasons that depend on the sizes: operands larger than memory, strides that a library or the copy engine rejects."""
ALL = list(POLICIES)
EVERY_POLICY = (*POLICIES.values(), fitted_to_families())
"""Every policy, and a fitted policy with configurations of some families in its buckets."""


def check(policy, problem, target, kernel, reasons):
    answer = policy.choose(problem, target, kernel)
    assert answer.policy == policy.name
    assert answer.kernel == kernel.name
    if isinstance(answer, PolicyRefusal):
        assert answer.rejection.reason in UNANSWERABLE | TOO_LARGE, (policy.name, kernel.name, problem, answer)
        reasons[answer.rejection.reason] += 1
        return answer
    reasons["chosen"] += 1
    assert answer.reason
    assert answer.lines[-1].step == "mapping"
    assert is_legal(kernel, answer.configuration, problem, target), (policy.name, kernel.name, problem, answer)
    assert family_for("GEMM", answer.configuration).name == kernel.name
    return answer


def sweep(count, seed, targets):
    """Each problem on so many targets, which take turns: the problems differ more than the same one on all targets."""
    reasons: Counter[str] = Counter()
    turns = itertools.cycle(TARGETS)
    for gemm in random_problems(count, seed):
        for target in itertools.islice(turns, targets):
            for kernel in FAMILIES:
                for policy in EVERY_POLICY:
                    check(policy, gemm, target, kernel, reasons)
    return reasons


def test_random_problems_get_a_legal_configuration_or_a_named_reason():
    """42 problems, each on two of six targets, in ten families by every policy: 14 problems a target."""
    reasons = sweep(42, seed=1, targets=2)
    assert sum(reasons.values()) == 42 * 2 * len(FAMILIES) * len(EVERY_POLICY)
    assert reasons["chosen"] > 0.2 * sum(reasons.values())


SMALL = {
    "local memory": {"local_memory_bytes": 48 * 1024},
    "work-group size": {"max_work_group_size": 64},
    "maximum allocation": {"max_allocation_bytes": 1 << 24, "global_memory_bytes": 1 << 26},
}


@pytest.mark.parametrize("limit", SMALL)
def test_a_device_with_less_gets_smaller_tiles_and_less_memory(limit):
    """A family's usual tiles do not fit these devices, so rejections must be remedied."""
    reasons: Counter[str] = Counter()
    remedied = 0
    for kind, *size in (("s", 2048, 1024, 512), ("s", 33, 1000, 77), ("b", 512, 512, 4096)):
        gemm = problem(kind, *size)
        for target in (replace(target, **SMALL[limit]) for target in TARGETS):
            for kernel in FAMILIES:
                for policy in EVERY_POLICY:
                    lines = check(policy, gemm, target, kernel, reasons).lines
                    remedied += any(line.step == "rejected" and "tried instead" in line.text for line in lines)
    assert remedied
    assert "no tile" not in reasons


def test_huge_sizes_and_odd_devices_get_an_answer_too():
    """Sizes beyond 32 bits and beyond any memory, leading dimensions, a device with unknown limits, a tiny device."""
    random = np.random.default_rng(3)
    unknown = replace(H200, compute_units=0, global_memory_bytes=0, max_allocation_bytes=0, sub_group_size=0)
    tiny = replace(H200, compute_units=1, local_memory_bytes=1024, max_work_group_size=1)
    targets = (H200, CPU, unknown, tiny, replace(CPU, local_memory_bytes=1024), fake_target())
    turns = itertools.cycle(targets)
    for _ in range(8):
        m, n, k = (int(2 ** random.uniform(0, 34)) for _ in range(3))
        gemm = problem(str(random.choice(KINDS)), m, n, k, int(2 ** random.uniform(0, 20)))
        strided = replace(gemm, leading=(m + 3, m + 5, m + 1, n + k))
        for target in itertools.islice(turns, 3):
            for kernel in FAMILIES:
                for policy in EVERY_POLICY:
                    for variant in (gemm, strided):
                        answer = policy.choose(variant, target, kernel)
                        if isinstance(answer, PolicyChoice):
                            assert is_legal(kernel, answer.configuration, variant, target)


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10))
def test_ten_thousand_random_problems(seed):
    sweep(1000, seed=100 + seed, targets=len(TARGETS))


@pytest.mark.parametrize(
    ("kernel", "architecture", "kinds"),
    [
        ("CudaWgmmaGemm", "sm_90", ("h", "b", "f8", "b8", "i8", "tf32")),
        ("TritonGemm", "sm_80", ("s", "h", "b", "i8", "tf32")),
        ("TritonGemm", "sm_90", ("s", "h", "b", "f8", "b8", "i8", "tf32")),
        ("TritonGemm", "sm_100", ("s", "h", "b", "f8", "b8", "i8", "tf32")),
        ("TritonGemm", "gfx90a", ("s", "h", "b", "i8")),
        ("TritonGemm", "gfx942", ("s", "h", "b", "i8")),
        ("CudaSimtGemm", "sm_90", ("s", "d", "tf32")),
        ("PortBlasCuda", "sm_80", ("s", "d", "h")),
        ("PortBlasGemm", "gfx90a", ("s", "d", "h")),
        ("PortBlasGemm", "x86-64", ("s", "d", "h")),
        ("RegisterGemm", "x86-64", ("s", "d")),
        ("TiledGemm", "gfx942", ("s", "d")),
        ("TiledGemm", "x86-64", ("s", "d")),
    ],
)
@pytest.mark.parametrize("policy", ALL)
def test_a_family_that_can_compute_a_type_is_never_refused(policy, kernel, architecture, kinds):
    """The random test would allow a refusal; for these pairs there is always a legal configuration. Transposes take
    turns: over the sizes, each kind of data has every layout."""
    sizes = [(1, 1, 1), (1, 4097, 33), (4097, 1, 1000), (7, 13, 5), (100, 100, 100), (4096, 4096, 64), (8191, 33, 8193)]
    layouts = ({}, {"transpose_a": True}, {"transpose_b": False})
    for turn, kind in enumerate(kinds):
        for number, size in enumerate(sizes, turn):
            gemm = problem(kind, *size, **layouts[number % 3])
            answer = POLICIES[policy].choose(gemm, KNOWN_TARGETS[architecture], KERNELS[kernel])
            assert isinstance(answer, PolicyChoice), (gemm, answer)


@pytest.mark.parametrize("kind", ["h", "b", "f8", "i8", "tf32"])
@pytest.mark.parametrize("layout", [{}, {"transpose_a": True}, {"transpose_b": False}])
def test_parts_of_k_are_those_of_a_cluster_up_to_eight_and_always_legal(kind, layout):
    kernel = KERNELS["CudaWgmmaGemm"]
    mapping, deep = MAPPINGS[kernel.name], problem(kind, 256, 192, 40_000, **layout)
    situation, shapes = PolicyInput.of(deep, H200), set()
    for wish in mapping.candidates(situation):
        for split in (1, 2, 3, 5, 8, 9):
            values = mapping.values(replace(wish, split=split), situation)
            config = kernel.space(deep.type, H200).defaults | values
            assert is_legal(kernel, config, deep, H200), values
            assert config.integers("ClusterShape")[2:] in ((), (split,))
            if config.integers("ClusterShape")[2:] == (split,):
                assert config.integer("GlobalSplitU") == 1
            else:
                assert config.integer("GlobalSplitU") == split
            shapes.add(config.integers("ClusterShape"))
    assert shapes == {(1, 1), *((1, 1, split) for split in (2, 3, 5, 8))}


@pytest.mark.parametrize("policy", ALL)
def test_vectors_go_to_their_own_kernel(policy):
    for size in ((1, 8192, 4096), (8192, 1, 4096), (1, 1, 100_000)):
        gemm = problem("b", *size)
        answer = POLICIES[policy].choose_among(gemm, H200, kernel_order(gemm, H200))
        assert isinstance(answer, PolicyChoice)
        assert answer.kernel == "TritonGemv"
        assert answer.lines[0].step == "matrix-vector"


@pytest.mark.parametrize("policy", ALL)
def test_every_step_and_every_pair_of_steps_can_be_switched_on_and_off(policy):
    """Single steps and pairs are switched on with all others off, and pairs are switched off; every answer is legal."""
    registered = POLICIES[policy]
    acts = registered.acts
    sets = [(), acts, *((step,) for step in acts), *itertools.combinations(acts, 2)]
    sets += [tuple(step for step in acts if step not in pair) for pair in itertools.combinations(acts, 2)]
    problems = [problem("b", 1024, 1536, 4096), problem("b", 8192, 8192, 512), problem("b", 1, 4096, 4096)]
    problems += [problem("b", 333, 77, 1111)]
    for steps in sets:
        switched = registered.with_steps(steps)
        assert switched.steps == frozenset(steps)
        for gemm in problems:
            answer = switched.choose(gemm, H200, KERNELS["TritonGemm"])
            assert isinstance(answer, PolicyChoice)
            assert is_legal(KERNELS["TritonGemm"], answer.configuration, gemm, H200)
            names = {line.step for line in answer.lines}
            assert not names & (set(STEPS) - set(steps)), "a step that is off has no line"
    assert registered.steps == POLICIES[policy].steps, "the policy in the registry is unchanged"


def test_each_step_changes_some_choice():
    """A step without any effect would pass every other test."""
    policy = POLICIES["published-intensity"]
    problems = list(random_problems(150, seed=7))
    for step in STEPS:
        without = policy.with_steps(frozenset(STEPS) - {step})
        with_step = policy.with_steps(STEPS)
        if step == "subgroup-favor":
            # `tile-favor` overrides this step, so it only shows if `tile-favor` is off.
            with_step, without = policy.with_steps({step}), policy.with_steps(())
        assert any(
            without.choose(gemm, target, KERNELS[name]).lines[-1]
            != with_step.choose(gemm, target, KERNELS[name]).lines[-1]
            for gemm in problems
            for target, name in ((H200, "TritonGemm"), (KNOWN_TARGETS["gfx942"], "TritonGemm"), (CPU, "RegisterGemm"))
        ), step


def test_a_step_that_a_policy_lacks_is_the_users_mistake():
    with pytest.raises(UserError, match="latency has no step 'boost'; give some of matrix-vector, split"):
        POLICIES["latency"].with_steps(["boost"])
    with pytest.raises(
        UserError, match="there is no 'best'; give one of trip-count, published-intensity, latency, fitted"
    ):
        policy_named("best")
    with pytest.raises(UserError, match="'sm_1' is not known here; give one of sm_80, sm_90"):
        known_target("sm_1")


def test_what_no_policy_can_map_is_refused_by_name():
    gemm = problem("s", 8, 8, 8)
    answer = POLICIES["latency"].choose(gemm, H200, KERNELS["FakeGemm"])
    assert isinstance(answer, PolicyRefusal)
    assert answer.rejection.reason == "no mapping"
    empty = POLICIES["latency"].choose(Problem(gemm_type(), (0, 8, 8)), H200, KERNELS["CudaSimtGemm"])
    assert isinstance(empty, PolicyRefusal)
    assert empty.rejection.reason == "empty"


def test_operands_that_no_memory_holds_are_refused_by_name():
    gemm = problem("d", 200_000, 200_000, 8)
    answer = POLICIES["published-intensity"].choose(gemm, CPU, KERNELS["RegisterGemm"])
    assert isinstance(answer, PolicyRefusal)
    assert answer.rejection.reason == "maximum allocation"


def test_every_gemm_family_for_people_has_a_mapping_and_every_order_names_families():
    families = {kernel.name for kernel in KERNELS.values() if kernel.operation == "GEMM" and kernel.name != "FakeGemm"}
    assert families == set(MAPPINGS)
    assert {name for names in ORDER.values() for name in names} <= families


def test_the_same_question_gets_the_same_answer():
    gemm = problem("h", 1000, 3000, 500)
    for policy in POLICIES.values():
        first, second = (policy.choose(gemm, H200, KERNELS["TritonGemm"]) for _ in range(2))
        assert first == second


def test_the_page_shows_the_scores_that_are_recorded():
    """The scores are from a list of products on which no constant was fitted."""
    recorded = ROOT / "benchmarks" / "recorded"
    page = (ROOT / "docs" / "results" / "policies.md").read_text(encoding="utf-8")
    (judged,) = json.loads((recorded / "policies_h200" / "run.json").read_text(encoding="utf-8"))["judgements"]
    # No heuristic is packaged for the H200, so the fitted policy is the latency model there.
    assert packaged_policy("sm_90", "bfloat16") is None
    assert set(ALL) <= {row["policy"] for row in judged["policies"]}
    for row in judged["policies"]:
        score = row["score"]
        interval = " - ".join(f"{end:.3f}" for end in score["interval"])
        shown = f"| {row['policy']} | {score['products']} | {score['geomean']:.3f} | {interval} |"
        assert shown in page, shown
        assert score["unmeasured"] == 0


def test_no_judged_product_is_in_the_list_of_the_constants():
    recorded = ROOT / "benchmarks" / "recorded"
    judged, fitted = (
        {(row["m"], row["n"], row["k"]) for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())}
        for path in (recorded / "policies_h200" / "rows.csv", recorded / "gemm_bf16" / "list.csv")
    )
    assert len(judged) > 150
    assert judged.isdisjoint(fitted)
