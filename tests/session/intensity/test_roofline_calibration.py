"""`tunesmith calibrate roofline`: the cells that are timed, the file that is written, and its use by `characterize`."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from cuda_on_host import host_library, run_on_host
from cuda_runner import H200, toolchain
from opencl_runner import opencl_device
from tunesmith.bench import Policy
from tunesmith.devices.fake import fake_target
from tunesmith.kernels import KERNELS
from tunesmith.models.roofline.figures import Provenance
from tunesmith.models.roofline.measured import MeasuredRoofline, dump_rooflines, read_rooflines
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem, UserError
from tunesmith.session.intensity.calibrate import (
    CACHES,
    MOST_BYTES,
    WHOLE,
    LargeProblems,
    RooflinePlan,
    calibrate_roofline,
)
from tunesmith.session.intensity.characterize import CharacterizeTask, characterize

SMALL = LargeProblems(side=128, elements=2 * WHOLE)
QUICK = Policy(noise=0.2, maximum_samples=7, sampling_seconds=0.01, warm_up_seconds=0.002)


@pytest.mark.opencl
def test_peak_and_bandwidth_are_measured_once_written_and_used(tmp_path):
    selector = opencl_device().target.selector
    file = tmp_path / "rooflines.yaml"
    other = MeasuredRoofline("CUDA", "a GPU", "sm_90", "1", "b", 1e15, "GEMM", 4e12, "a copy", "2026-01-01")
    file.write_text(dump_rooflines([other]))

    def calibrated(*types):
        outcome = calibrate_roofline(types, file, device=selector, large=SMALL, policy=QUICK)
        assert outcome.written == [file]
        measured.append(outcome.ledger.measured)
        return outcome.plan

    measured: list[int] = []
    first = calibrated("s")
    assert measured == [4], "three ways to copy and one product"
    assert read_rooflines(file)[0] == other, "what the file held stays"
    (made,) = first.made
    assert "VendorBlas" in made.peak_of
    assert 1e8 < made.flops_per_second < 1e14, "between a slow core and more than any host has"
    assert 1e8 < made.bytes_per_second < 1e13
    assert calibrated("single").made == [made]
    assert measured[1] == 0, "nothing is measured twice"
    (tmp_path / "list.csv").write_text("m,n,k\n256,256,256\n")
    found = characterize(CharacterizeTask(tmp_path / "list.csv", device=selector, rooflines=file))
    assert found.rooflines["s"].provenance is Provenance.MEASURED
    assert found.rooflines["s"].ridge == pytest.approx(made.roofline.ridge, rel=1e-4)


def test_arrays_are_larger_than_the_cache_and_fit_the_device():
    target = fake_target("GPU")
    for cache in (0, 2**20, 50 * 2**20, 2**31):
        for memory in (2**24, 2**34, 2**38):
            device = replace(
                target, last_level_cache_bytes=cache, global_memory_bytes=memory, max_allocation_bytes=memory // 4
            )
            large = LargeProblems.on(device)
            array = 4 * large.elements
            assert array <= max(min(memory // 8, MOST_BYTES), 4 * WHOLE)
            assert large.elements % WHOLE == 0
            assert array >= min(CACHES * cache, MOST_BYTES, memory // 8) - 4 * WHOLE
    assert LargeProblems.on(fake_target("CPU")).side < LargeProblems.on(target).side


def test_the_copys_reference_is_the_source_and_its_traffic_both_arrays(tmp_path):
    plan = RooflinePlan(["s"], tmp_path / "r.yaml", "fake:CPU:8", SMALL, QUICK)
    problem, custom = plan._copy(), OPERATIONS["Custom"]
    inputs = custom.inputs(problem, np.random.default_rng(0))
    expected = custom.reference(problem, inputs)["target"]
    assert (expected.value == inputs["source"]).all()
    assert (expected.bound == 0).all()
    assert custom.bytes(problem) == 2 * 4 * SMALL.elements


@pytest.mark.parametrize("items", [1, 4, 16])
def test_the_copy_in_cuda_copies_every_element(tmp_path, items):
    """The kernel, compiled by the host's compiler and run with a thread for each work-item."""
    problem = RooflinePlan(["s"], tmp_path / "r.yaml", "fake:CPU:8", SMALL, QUICK)._copy()
    family = KERNELS["CustomCuda"]
    config = family.space(problem.type).defaults | {"ITEMS": items}
    assert not [*family.rejections(config, problem.type, H200), *family.rejections_for(config, problem, H200)]
    (module,) = family.modules(config, problem.type)
    source = OPERATIONS["Custom"].inputs(problem, np.random.default_rng(0))["source"]
    target = np.zeros_like(source)
    library = host_library(module, tmp_path)
    memory = {"source": source, "target": target}
    run_on_host(library, family.plan(config, problem, H200), memory, np.empty(0, np.uint8))
    assert (target == source).all()


def test_nvrtc_compiles_the_copy_where_it_is_installed(tmp_path):
    problem = RooflinePlan(["s"], tmp_path / "r.yaml", "fake:CPU:8", SMALL, QUICK)._copy()
    family = KERNELS["CustomCuda"]
    (module,) = family.modules(family.space(problem.type).defaults, problem.type)
    assert toolchain("CUDA").compile(module, H200).facts[0].entry == "copy_of_memory"


def test_where_nothing_can_copy_nothing_is_written_and_it_is_said(tmp_path):
    outcome = calibrate_roofline(["s"], tmp_path / "r.yaml", device="fake:CPU:8", large=SMALL, policy=QUICK)
    assert outcome.written == []
    assert any("nothing that runs on fake CPU computes it" in sentence for sentence in outcome.look_at)
    assert not (tmp_path / "r.yaml").exists()


def test_where_the_vendors_library_fails_our_kernels_are_tried(tmp_path):
    """A measure with times of our own configurations only, on a target where the vendor's library is legal."""
    plan = RooflinePlan(["s"], tmp_path / "r.yaml", "fake:CPU:8", SMALL, QUICK)
    plan.target, plan._hidden = H200, False
    problem = Problem(gemm_type("s"), (128, 128, 128))
    names = [[*part] for part in plan._families(problem.type)]
    assert names[0] == ["VendorBlas"]
    assert "CudaSimtGemm" in names[1]
    vendors = plan._configured("VendorBlas", problem.type)
    counts: list[int] = []

    def screen(groups, problems, racing):
        (configs,) = groups
        counts.append(len(configs))
        ran = [config for config in configs if config not in vendors]
        times = {(config, problems[0]): SimpleNamespace(seconds=1.0 + number) for number, config in enumerate(ran)}
        return SimpleNamespace(cells=times)

    oracle = SimpleNamespace(family=lambda config: KERNELS[names[1][0]])
    run = SimpleNamespace(measure=lambda kind: SimpleNamespace(screen=screen, oracle=oracle, purpose=""))
    assert plan._best(run, problem, "a product") == (names[1][0], 1.0)  # type: ignore[arg-type]
    assert counts == [1, len(names[1])]
    assert list(plan.remarks()) == []


def test_a_word_that_is_no_type_and_a_file_that_is_none_are_refused(tmp_path):
    with pytest.raises(UserError, match="'quad' is no data type"):
        calibrate_roofline(["quad"], tmp_path / "r.yaml", device="fake:CPU:8")
    (tmp_path / "r.yaml").write_text("a: 1\n")
    with pytest.raises(UserError, match=r"r\.yaml:1"):
        calibrate_roofline(["s"], tmp_path / "r.yaml", device="fake:CPU:8")
