"""The vendor's BLAS as a family: right on the host's CPU whatever the layout, and cuBLAS asked for what was meant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cublas_fakes import CONFIG, FAMILY, TRANSPOSES, call, problem
from cuda_runner import H200
from opencl_runner import opencl_device, programs, run, verify
from tunesmith.bench import Batch, Bench, Job, Policy, Race
from tunesmith.bench.details import JobDetails, JobPlans
from tunesmith.devices import LaunchError
from tunesmith.devices.fake import fake_target
from tunesmith.devices.gemm_call import GemmCall
from tunesmith.devices.host_blas import HostBlas
from tunesmith.kernels import KERNELS, family_for
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Plan, Solution, Zero
from tunesmith.toolchains import TOOLCHAINS, CompileError
from tunesmith.toolchains.blas import library

# --- the family -----------------------------------------------------------------------------------------------------


def test_a_tuning_file_picks_it_by_its_language():
    assert family_for("GEMM", Configuration({"KernelLanguage": "BLAS"})) is FAMILY


@pytest.mark.parametrize(
    ("target", "data_type", "reasons"),
    [
        (H200, "s", []),
        (H200, "d", []),
        (replace(H200, api="OpenCL", selector="OpenCL:0:0"), "s", ["no BLAS"]),
        (replace(fake_target("CPU"), api="OpenCL"), "d", []),
        (H200, "h", []),
        (replace(fake_target("CPU"), api="OpenCL"), "h", ["data type"]),
        (fake_target("CPU"), "s", ["no BLAS"]),
        (H200, "b", []),
        (H200, "i8", []),
        (H200, "b8", ["data type"]),
        (H200, "f8", ["layout"]),
    ],
    ids=["cuda s", "cuda d", "a gpu's opencl", "a cpu's opencl", "cuda h", "a cpu's h", "fake", "b", "i8", "b8", "f8"],
)
def test_a_device_without_a_blas_is_a_named_rejection(target, data_type, reasons):
    found = [rejection.reason for rejection in FAMILY.rejections(CONFIG, gemm_type(data_type), target)]
    assert found == reasons


@pytest.mark.parametrize(
    ("kind", "reasons"),
    [
        (gemm_type("b", bias=True), []),
        (gemm_type("b", bias=True, activation="relu", use_beta=False), []),
        (gemm_type("b", activation="relu"), ["epilogue"]),
        (gemm_type("b", activation="gelu", use_beta=False), ["epilogue"]),
        (gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True, bias=True), []),
        (gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True, bias=True, dest="s"), ["epilogue"]),
    ],
)
def test_what_the_extension_computes_otherwise_is_a_named_rejection(kind, reasons):
    """It adds C before the activation, where we add it after; its gelu is an approximation."""
    assert [rejection.reason for rejection in FAMILY.rejections(CONFIG, kind, H200)] == reasons
    on_host = [
        rejection.reason for rejection in FAMILY.rejections(CONFIG, kind, replace(fake_target("CPU"), api="OpenCL"))
    ]
    assert "epilogue" in on_host


def test_int8_needs_leading_dimensions_in_fours():
    kind = gemm_type("i8", transpose_a=True, transpose_b=False)
    assert [rejection.reason for rejection in FAMILY.rejections_for(CONFIG, problem(7, 5, 6, kind=kind), H200)] == [
        "alignment"
    ]
    assert not list(FAMILY.rejections_for(CONFIG, problem(7, 5, 8, kind=kind), H200))


@pytest.mark.parametrize(
    ("sizes", "leading", "reasons"),
    [
        ((48, 7, 64), (), []),
        ((48, 7, 72), (), ["alignment"]),
        ((40, 7, 64), (), ["alignment"]),
        ((48, 7, 64), (56, 56, 64, 64), []),
        ((48, 7, 64), (52, 52, 64, 64), ["alignment"]),
        ((48, 7, 64), (48, 48, 72, 64), ["alignment"]),
    ],
)
def test_float8_needs_columns_of_whole_pieces_of_16_bytes(sizes, leading, reasons):
    kind = gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True)
    made = problem(*sizes, kind=kind, leading=leading)
    assert [rejection.reason for rejection in FAMILY.rejections_for(CONFIG, made, H200)] == reasons


def test_an_interleaved_batch_is_none_that_blas_takes():
    kind = gemm_type("s", batched=True, interleaved=True)
    assert [rejection.reason for rejection in FAMILY.rejections(CONFIG, kind, H200)] == ["batch layout"]


def test_too_much_for_one_allocation_is_a_named_rejection():
    small = replace(fake_target("CPU"), api="OpenCL")
    reasons = [rejection.reason for rejection in FAMILY.rejections_for(CONFIG, problem(1 << 14, 8, 1, 1 << 14), small)]
    assert reasons == ["maximum allocation"]


def test_nothing_to_compute_is_nothing_to_call():
    assert FAMILY.plan(CONFIG, problem(0, 5, 2, 3), H200) == Plan(())


# --- the host's BLAS ------------------------------------------------------------------------------------------------


@pytest.mark.opencl
@pytest.mark.parametrize("data_type", ["s", "d"])
@pytest.mark.parametrize("transposes", TRANSPOSES)
def test_the_hosts_blas_is_right_in_all_layouts(transposes, data_type):
    """Batch, alpha, beta, leading dimensions larger than needed, odd sizes; guards and padding stay as they were."""
    a, b = transposes
    kind = gemm_type(data_type, transpose_a=a, transpose_b=b, batched=True)
    verify(FAMILY, CONFIG, problem(37, 29, 3, 23, kind=kind, leading=(43, 41, 40, 33), alpha=-1.5, beta=0.5))
    verify(FAMILY, CONFIG, problem(37, 29, 1, 23, kind=kind, alpha=1.0, beta=0.0))
    verify(FAMILY, CONFIG, problem(1, 1, 1, 1, kind=kind, beta=2.0))


@pytest.mark.opencl
def test_without_terms_the_hosts_blas_leaves_beta_c():
    made = problem(9, 7, 0, kind=gemm_type(), leading=(9, 9, 9, 7), alpha=2.0, beta=0.5)
    c = np.random.default_rng(0).random(9 * 7, dtype=np.float32)
    nothing = np.zeros(0, np.float32)
    d = run(FAMILY, CONFIG, made, {"A": nothing, "B": nothing, "C": c})
    np.testing.assert_array_equal(d, np.float32(0.5) * c)


@pytest.mark.opencl
def test_the_bench_verifies_and_times_it_like_any_solution(tmp_path):
    """Through the worker process, against a kernel, and interleaved with it."""
    target, made = opencl_device().target, problem(64, 48, 2, 32, alpha=1.0, beta=0.0)

    families = (FAMILY, KERNELS["TiledGemm"])
    solutions = [Solution(made.type, family.name, family.space(made.type).defaults) for family in families]
    jobs = tuple(Job(solution.kernel, solution, made) for solution in solutions)
    policy = Policy(sampling_seconds=0.02, warm_up_seconds=0.01, confirm_blocks=6)
    with Bench(target, policy, tmp_path) as bench:
        measured = {job.key: measurement for job, measurement in bench.run(Batch((Race(jobs),)))}
        together = bench.interleave(jobs)
    assert [measurement.outcome.value for measurement in (*measured.values(), *together)] == ["ok"] * 4
    assert all(1e-8 < measurement.estimate.seconds < 1.0 for measurement in measured.values())


@pytest.mark.opencl
def test_steps_of_the_device_and_calls_of_the_host_do_not_mix():
    device, made = opencl_device(), problem(4, 4, 1, 4)
    (step,) = FAMILY.plan(CONFIG, made, device.target).steps
    with pytest.raises(LaunchError) as raised:
        device.prepare(Plan((step, Zero("D", 0, 4))), programs(FAMILY, CONFIG, made.type, device.target), {}, None)
    assert raised.value.reason == "invalid plan"


def test_a_data_type_that_blas_does_not_have_is_a_launch_error():
    with pytest.raises(LaunchError) as raised:
        HostBlas({}).calls(call(dtype="float16"), dict.fromkeys("ABCD", 1))
    assert raised.value.reason == "data type"


def test_its_version_names_library_machine_and_threads():
    """All that its speed depends on, so that a measurement with other threads is another one."""
    version = library(replace(fake_target("CPU"), api="OpenCL")).version
    assert " of SciPy " in version
    assert "threads" in version or "BLAS" in version


def test_a_device_without_a_blas_does_not_compile_one():
    (module,) = FAMILY.modules(CONFIG, gemm_type())
    with pytest.raises(CompileError) as raised:
        TOOLCHAINS["BLAS"].compile(module, fake_target())
    assert raised.value.reason == "no library"
    with pytest.raises(CompileError) as raised:
        TOOLCHAINS["BLAS"].compile(replace(module, entries=("trsm",)), fake_target())
    assert raised.value.reason == "no such entry"


# --- sums as loose as torch's ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "loose"),
    [
        (gemm_type("b"), True),
        (gemm_type("h", dest="s", batched=True), True),
        (gemm_type("b", bias=True, use_beta=False), False),
        (gemm_type("b", activation="relu", use_beta=False), False),
        (gemm_type("s", tf32=True), False),
        (gemm_type("d"), False),
        (gemm_type("i8"), False),
        (gemm_type("f8", transpose_a=True, transpose_b=False), False),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_sums_of_halves_are_checked_strictly_and_timed_as_torch_makes_them(kind, loose):
    asked = problem(*(16 for _ in kind.indices), kind=kind)
    details = JobDetails(Job("key", Solution(kind, FAMILY.name, CONFIG), asked), H200)
    plans = details.plans(())
    assert isinstance(plans, JobPlans)
    (step,), checked = plans.timed.steps, [step for _, plan in plans.checks for step in plan.steps]
    assert GemmCall.of(step).loose_sums is loose
    assert not any(GemmCall.of(other).loose_sums for other in checked)
    assert (plans.timed == dict(plans.checks).get(asked, FAMILY.plan(CONFIG, asked, H200))) is not loose
