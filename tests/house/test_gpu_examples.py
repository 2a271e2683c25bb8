"""The tuning files for an H200 make sense without one: everything in them is legal, and nothing is missing."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from cuda_runner import H200
from tunesmith import session
from tunesmith.problems.gemm import Gemm
from tunesmith.problems.gemm.listed import read_gemm_list
from tunesmith.protocol import Fork
from tunesmith.records import Problem
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.tuning_file.file import read

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("h200_*.yaml"))
VENDOR = "VendorBlas"
ODD = ((1001, 1003, 999), (8457, 35, 1761), (35, 8457, 1761), (2, 6144, 2048), (17, 55, 31), (1500, 512, 1536))
"""M, N and K: odd, or with an M of which most types have no multiple of 16 bytes."""


PLANNED = [
    pytest.param(path, id=path.stem, marks=pytest.mark.thorough if path.stem == "h200_llm_fp16" else ())
    for path in FILES
]
"""The file for half precision is planned in the thorough run: it is that for bfloat16, by a test of its own below."""


@pytest.fixture(params=PLANNED)
def planned(request):
    return plan_of(request.param)


@cache
def plan_of(path):
    """`tunesmith plan`, as if the device were there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.import_module("tunesmith.session.tuning_file.file"), "choose", lambda *_, **__: H200)
        return session.plan(path, calibrate=False)


def lineages(group):
    (fork,) = (step for step in group.phases.steps if isinstance(step, Fork))
    return [group.phases.start | choice for choice in fork.choices]


def able(group, m, n, k):
    """The lineages that can run the size, each with its family's name; three matrices where the type is of batches."""
    problem_type = group.phases.problem_type
    judge = ConfigurationOracle(problem_type, H200)
    extents = {"M": m, "N": n, "Batch": 3, "K": k}
    problem = Problem(problem_type, tuple(extents[index] for index in problem_type.indices))
    legal = [config for config in lineages(group) if not judge.rejections_for(config, problem)]
    return [(judge.family(config).name, config) for config in legal]


def test_no_lineage_is_lost_and_no_two_are_the_same(planned):
    for group in planned.groups:
        judge = ConfigurationOracle(group.phases.problem_type, H200)
        made = lineages(group)
        assert {str(config): list(judge.rejections(config)) for config in made if judge.rejections(config)} == {}
        assert len({judge.identity(config) for config in made}) == len(made)
        assert [step.survivors for step in group.forecast.after] == [len(made)] * len(group.forecast.after), group.name


def test_the_page_counts_the_lineages_that_other_gpus_can_run():
    counts = []
    for group in plan_of(EXAMPLES / "h200_llm_bf16.yaml").groups[:2]:
        made = lineages(group)
        for architecture, local_memory in (("sm_100", 227 * 1024), ("sm_80", 163 * 1024)):
            target = replace(H200, architecture=architecture, local_memory_bytes=local_memory)
            judge = ConfigurationOracle(group.phases.problem_type, target)
            counts.append((len(made), sum(not list(judge.rejections(config)) for config in made)))
    page = " ".join((EXAMPLES.parent / "docs/tune-a-gpu.md").read_text().split())
    (first, blackwell), (_, ampere), (others, blackwell_too), (_, ampere_too) = counts
    assert f"Of the first file's {first} lineages for `mm(x, w.t())`, {blackwell} are legal on" in page
    assert f"and {ampere} on 8.0" in page
    assert f"Of its {others} lineages for each other layout, {blackwell_too} and {ampere_too} are legal" in page


def test_the_vendors_library_competes_with_kernels_of_ours_on_every_problem(planned):
    """Every problem has kernels of ours that can run it; and where the vendor's library computes the type, it is in."""
    for group in planned.groups:
        judge, final = ConfigurationOracle(group.phases.problem_type, H200), group.phases.steps[-1]
        kernels = {config: judge.family(config).name for config in lineages(group)}
        fused = Gemm.of(final.problems[0]).activation == "gelu"
        assert (VENDOR in kernels.values()) != fused, group.name
        assert "TritonGemm" in kernels.values()
        own = [config for config, name in kernels.items() if name != VENDOR]
        for problem in final.problems:
            assert any(not judge.rejections_for(config, problem) for config in own), f"{group.name} {problem}"


@pytest.mark.parametrize("sizes", ODD, ids=str)
def test_a_size_that_the_copy_engine_does_not_take_has_lineages_of_two_families_in_every_layout(planned, sizes):
    for group in planned.groups:
        own = [family for family, _ in able(group, *sizes) if family != VENDOR]
        assert len(own) >= 3, group.name
        assert {"TritonGemm"} < set(own), group.name


def is_cut(config):
    *_, along_k = config.get("ClusterShape", (1, 1, 1))
    is_joint = len(config.get("ClusterShape", ())) == 3 and along_k != 1
    return is_joint or config.integer("GlobalSplitU") > 1 or config.get("Schedule") == "FillK"


def test_small_results_of_a_long_k_are_cut_along_k_whatever_their_size(planned):
    for group in planned.groups:
        if not group.phases.problem_type.fields.flag("Batched"):
            cut = {family for family, config in able(group, 35, 21, 4099) if is_cut(config)}
            assert {"TritonGemm"} < cut, group.name


def test_products_with_vectors_have_a_family_of_their_own_in_every_layout(planned):
    for group in planned.groups:
        for sizes in ((4096, 1, 4096), (1001, 1, 999)):
            assert "TritonGemv" in {family for family, _ in able(group, *sizes)}, group.name
        if not group.phases.problem_type.fields.flag("Batched"):
            assert "TritonGemv" in {family for family, _ in able(group, 1, 4096, 4096)}, group.name


def test_the_file_for_half_precision_is_that_for_bfloat16():
    brain, half = (
        [line.partition("#")[0].rstrip() for line in (EXAMPLES / f"h200_llm_{name}.yaml").read_text().splitlines()]
        for name in ("bf16", "fp16")
    )
    assert [line.replace("DataType: b", "DataType: h") for line in brain] == half


def test_the_bfloat16_files_measure_every_problem_of_the_list_between_them():
    rows = read_gemm_list(EXAMPLES / "llm_gemm.csv")
    assert len(rows) == len(set(rows))
    files = [read(EXAMPLES / name, None, None) for name in ("h200_llm_bf16.yaml", "h200_batched_bf16.yaml")]
    finals = {phases.problem_type: phases.steps[-1].problems for file in files for phases in file.groups}
    for row in rows:
        (kind,) = [kind for kind in finals if row.fits(kind)]
        assert row.sizes(kind) in {problem.sizes for problem in finals[kind]}
    assert sum(map(len, finals.values())) == len(rows)


def test_steps_decide_by_a_sample_of_each_layout_with_weights():
    rows, sample = (read_gemm_list(EXAMPLES / name) for name in ("llm_gemm.csv", "llm_gemm_steps.csv"))
    assert {row.layout for row in sample} == {row.layout for row in rows}
    assert {row.weight for row in sample} == {1.0, 2.0}
    assert len(sample) < len(rows) / 4
