"""The forecast of a run: its minutes compared with the run itself, and the reasons why nothing is legal."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest

from command_line import invoke_json
from golden_bench import nothing_measured
from opencl_runner import opencl_device
from tunesmith.bench import Policy
from tunesmith.protocol import Phase, StepForecast
from tunesmith.session.tuning_file.calibration import WARM_UP, RunCalibration, SizeCost
from tunesmith.session.tuning_file.forecast import FINALISTS, _measuring
from tuning_runs import FAKE, document, fake_file, tunesmith

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart.yaml"

FACTOR = 2 * 1.9
"""How far a forecast may be off, either way. A configuration that was not tried may take twice as long as those that
were: tiles in one file differ by that much in compiling and running. Meanwhile a neighbour may come or go, which makes
1.9 of a time (`bench.timing.HOPELESS` says where that was seen)."""

GPU = ("--device", "fake:GPU:8")


def forecast_and_run(path, folder, *options):
    """The seconds that a plan expects, and those that the run's steps then took."""
    planned = document(tunesmith("plan", path, "--json", *options))
    done = tunesmith("tune", path, "-o", folder, "--json", *options)
    assert done.returncode in (0, 1), done.stderr
    steps = document(tunesmith("show", folder, "--json"))["steps"]
    return 60 * planned["minutes"], sum(step["seconds"] for step in steps)


MEASURING = 2 * 0.125 + 2 * 0.5 + FINALISTS * 0.5 / 14 * (7 + 7 * 26)
"""Seconds of one decision between two cells that take what `golden_bench` says: each is verified and sampled, which is
14 executions (7 of them warm up); then both are in seven blocks of 25 executions and one that is dropped."""


@pytest.mark.parametrize(("device", "seconds"), [("fake:GPU:8", 0.0), ("fake:CPU:8", 0.25)])
def test_a_forecast_is_the_sum_of_what_its_cells_take(device, seconds, tmp_path):
    """A GPU's programs are compiled while it works; a CPU's take `seconds` each besides, and one process makes them."""
    with nothing_measured():
        planned = invoke_json("plan", fake_file(tmp_path), "--device", device)
    found = {step["name"]: step["seconds"] for step in planned["groups"][0]["steps"]}
    assert found == pytest.approx(
        {
            "01_CM_WorkGroup": MEASURING + 2 * seconds,
            "02_Fork_ThreadTile": 0.0,
            "03_BF_VectorWidth": 2 * MEASURING + 4 * seconds,
            "04_Join_MacroTile": 0.0,
            "05_BJ_LoopUnroll": 2 * MEASURING + 4 * seconds,
            "06_Final": 2 * MEASURING,  # its programs are there
        }
    )
    assert 60 * planned["minutes"] == pytest.approx(sum(found.values()))


@pytest.mark.thorough
def test_a_forecast_is_what_the_run_takes_on_the_fake_device(tmp_path):
    """There are many cells, so that the cost of each is not hidden by the costs that a run has once."""
    text = FAKE.replace("VectorWidth: [1, 4]", "VectorWidth: [1, 2, 4, 8]").replace(
        "- Exact: [32, 32, 32]", "- Range: [[32, 32, 192], [32, 32, 128], [64]]"
    )
    expected, took = forecast_and_run(fake_file(tmp_path, text), tmp_path / "out", *GPU)
    assert took / FACTOR < expected < took * FACTOR, (expected, took)


@pytest.mark.opencl
@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("largest", ["128", "4096"])
def test_a_forecast_is_what_the_quickstart_takes(largest, tmp_path):
    opencl_device()
    expected, took = forecast_and_run(QUICKSTART, tmp_path / "out", "--device", "CPU", "--max-size", largest)
    assert took / FACTOR < expected < took * FACTOR, (expected, took)


SMALL, LARGE = SizeCost(1e6, 0.1, 0.0, 0.5, 207, 1e-5), SizeCost(1e9, 0.3, 0.6, 0.8, 17, 1e-2)


def test_between_two_sizes_costs_are_interpolated_and_beyond_they_grow_with_the_work():
    known = RunCalibration(3.0, 1.0, (SMALL, LARGE))
    for work, size in ((1e3, SMALL), (1e6, SMALL), (1e9, LARGE)):
        assert astuple(known.at(work)) == pytest.approx(astuple(size))
    middle = known.at(10**7.5)
    assert middle.verify == pytest.approx(0.2)
    assert middle.reference == pytest.approx(0.3)
    assert middle.once == pytest.approx(10**-3.5)
    beyond = known.at(1e11)
    assert (beyond.verify, beyond.reference, beyond.once) == pytest.approx((30.0, 60.0, 1.0))
    assert beyond.timing == pytest.approx(0.8 / 17 * 100 * 2 * WARM_UP)


def test_a_candidate_that_loses_a_race_is_sampled_least_and_each_lineage_decides_once():
    policy = Policy(minimum_samples=7, confirm_blocks=10, sampling_seconds=1.0)
    step = StepForecast("03", Phase.BENCHMARK_FORK, 2, candidates=6, sizes=1, enqueues=6, fresh=6, programs=6)
    execution = SMALL.timing / SMALL.executions
    least = execution * (WARM_UP + 7)
    # A block is a tenth of a second of executions of 10 us, but no more than 25, and one that is dropped.
    decision = FINALISTS * execution * (WARM_UP + 10 * 26)
    assert _measuring(step, SMALL, 1, True, policy) == pytest.approx(6 * 0.1 + 2 * 0.5 + 4 * least + 2 * decision)
    assert _measuring(step, SMALL, 1, False, policy) == pytest.approx(6 * 0.1 + 6 * 0.5 + decision)


def test_what_an_earlier_step_measured_costs_nothing_again(tmp_path):
    """The join's step begins with the value that each lineage holds, which already has its time."""
    planned = document(tunesmith("plan", fake_file(tmp_path), "--json", "--no-calibrate", *GPU))
    assert planned["groups"][0]["enqueues"] == 14


ILLEGAL = """
BenchmarkProblems:
  - - {DataType: s}
    - InitialSolutionParameters: [KernelLanguage: [fake]]
      BenchmarkCommonParameters:
        - ProblemSizes: [Exact: [16, 16, 16]]
        - VectorWidth: [1, 2]
      ForkParameters:
        - WorkGroup: [[64, 32, 1], [128, 16, 1]]
      BenchmarkFinalParameters: [ProblemSizes: [Exact: [16, 16, 16]]]
"""


@pytest.mark.parametrize("calibrate", ["--calibrate", "--no-calibrate"])
@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (ILLEGAL, {"work-group size": 2}),
        (ILLEGAL.replace("[[64, 32, 1], [128, 16, 1]]", "[[64, 32, 1]]"), {"work-group size": 2}),
    ],
    ids=["in the last step", "from the first"],
)
def test_a_plan_with_nothing_legal_gives_the_reasons_and_ends_with_1(text, reasons, calibrate, tmp_path):
    command = ("plan", fake_file(tmp_path, text), *GPU, calibrate)
    planned = document(tunesmith(*command, "--json"), code=1)
    steps = planned["groups"][0]["steps"]
    counts = [step["after_rejections"].get("rejected", {}) for step in steps]
    found = {reason: sum(count.get(reason, 0) for count in counts) for count in counts for reason in count}
    assert found == reasons
    assert steps[-1]["after_rejections"]["enqueues"] == 0
    shown = tunesmith(*command)
    assert shown.returncode == 1
    assert "nothing legal is left in" in shown.stdout
    for reason in reasons:
        assert f"rejected: {reason} ({found[reason]})" in shown.stdout
        assert f"  {reason}: " in shown.stdout


def test_a_plan_with_something_illegal_counts_it_and_ends_with_0(tmp_path):
    text = FAKE.replace("[[2, 2], [8, 8]]", "[[2, 2], [8, 8], [512, 8]]")
    shown = tunesmith("plan", fake_file(tmp_path, text), *GPU, "--no-calibrate")
    assert shown.returncode == 0
    assert "rejected: local memory (" in shown.stdout


def test_a_plan_whose_calibration_does_not_run_says_why(tmp_path):
    text = FAKE.replace("- KernelLanguage: [fake]", "- KernelLanguage: [fake]\n        - FakeFault: [compile error]")
    shown = tunesmith("plan", fake_file(tmp_path, text), *GPU)
    assert shown.returncode == 0
    assert "no forecast of time: compile error: " in shown.stdout
    assert "expected:" not in shown.stdout
