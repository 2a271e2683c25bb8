"""`tunesmith calibrate stream-k` and `tunesmith stream-k explain`: from the task to the file, on this machine's CPU
and for devices that are not there."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from cuda_runner import H200
from opencl_runner import opencl_device
from stream_k_fakes import calibration
from tunesmith.bench import Policy
from tunesmith.cli.app import app
from tunesmith.devices.fake import fake_target
from tunesmith.kernels.gemm.opencl import RegisterGemm, TiledGemm
from tunesmith.models.stream_k.calibration_file import dump, read
from tunesmith.models.stream_k.decision_models import (
    DeviceCapacity,
    MacroTile,
    SharingMode,
    StreamKDecision,
    Subject,
    TiledProduct,
    calibration_runs,
)
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError
from tunesmith.session.frame.outputs import STORE
from tunesmith.session.stream_k import calibrate as stream_k_calibrate
from tunesmith.session.stream_k import explain as stream_k_explain
from tunesmith.session.stream_k.calibrate import CalibrationTask, calibrate_stream_k, runs_folder
from tunesmith.session.stream_k.explain import ExplainTask, explain_stream_k
from tunesmith.session.stream_k.kernels import TileFilter, kernels_named, type_named
from tunesmith.store import RunState, Store

QUICK = Policy(noise=0.5, maximum_samples=6, sampling_seconds=0.005, warm_up_seconds=0.001, cold=False)
CPU = replace(fake_target("CPU"), api="OpenCL", name="a CPU")
GPU = replace(fake_target("GPU"), api="OpenCL", name="a GPU")
TILE = TileFilter(16, 16, 8)


# --- which kernels --------------------------------------------------------------------------------------------------


def test_a_data_type_means_the_form_that_suits_the_device():
    (on_cpu,), (on_gpu,) = kernels_named("s", None, CPU), kernels_named("single", None, GPU)
    assert isinstance(on_cpu.kernel, RegisterGemm)
    assert isinstance(on_gpu.kernel, TiledGemm)
    assert on_gpu.tile == MacroTile(64, 64, 8)
    assert on_gpu.configuration["StreamKGrid"] == 0


@pytest.mark.parametrize("word", ["bf16", "half", "tf32"])
def test_a_tensor_core_kernel_is_calibrated_in_a_layout_that_it_reads_as_it_lies(word):
    """Copies of operands would be timed with the launches."""
    (kernel,) = kernels_named(word, TileFilter.of("256x128"), H200, "CudaWgmmaGemm")
    plan = kernel.kernel.plan(kernel.configuration, kernel.problem(1024, 1024, 1, 4096), H200)
    assert len(plan.steps) == 1


@pytest.mark.parametrize(("word", "tile"), [("128x32", MacroTile(128, 32, 8)), ("64x64x16", MacroTile(64, 64, 16))])
def test_a_tile_is_made_of_what_the_family_offers(word, tile):
    (kernel,) = kernels_named("d", TileFilter.of(word), GPU)
    assert kernel.tile == tile
    assert kernel.subject.data_type == "d"


def test_a_tuning_file_means_each_tile_that_it_forks(tmp_path):
    """9 forks, of which 32 x 128 and others occur twice. The narrow tiles need a deeper unroll, which a step has."""
    from described import EXAMPLES

    kernels = kernels_named(str(EXAMPLES / "wiki.yaml"), None, GPU)
    assert {(kernel.tile.m, kernel.tile.n) for kernel in kernels} == {
        (16, 256),
        (32, 128),
        (64, 64),
        (128, 32),
        (256, 16),
    }
    assert [kernel.tile.m for kernel in kernels_named(str(EXAMPLES / "wiki.yaml"), TileFilter(64, 64), GPU)] == [64]


@pytest.mark.parametrize(
    ("what", "tile", "message"),
    [
        ("q", None, "is no tuning file, data type or problem type"),
        ("s", TileFilter(7, 7), "with a tile of 7x7"),
        ("nothing.yaml", None, "no such file"),
    ],
)
def test_what_means_no_kernel_is_said(what, tile, message):
    with pytest.raises(UserError, match=message):
        kernels_named(what, tile, GPU)


@pytest.mark.parametrize("word", ["64", "64x", "0x64", "64x64x64x64", "a x b", "64x-1"])
def test_what_is_no_tile_is_said(word):
    with pytest.raises(UserError, match=r"--tile: .* is no tile; write rows, columns and depth"):
        TileFilter.of(word)


def test_a_types_name_says_everything_about_it():
    for type_ in (gemm_type("d", batched=True), gemm_type("s", transpose_a=True, use_beta=False)):
        assert type_named(type_.name) == type_


@pytest.mark.parametrize("tiles", [1, 2, 7, 12, 132, 997])
def test_a_run_is_a_problem_of_just_so_many_tiles(tiles):
    (kernel,) = kernels_named("Cijk_Ailk_Bljk_SB", None, GPU)
    problem = kernel.problem_of(TiledProduct(tiles, 5, kernel.tile.depth))
    m, n, batch, k = problem.sizes
    assert kernel.tile.work(m, n, batch, k) == TiledProduct(tiles, 5, kernel.tile.depth)
    assert batch == 1


def test_a_batch_needs_a_type_that_has_one():
    (kernel,) = kernels_named("s", None, GPU)
    with pytest.raises(UserError, match="has no batch, 3 was given"):
        kernel.problem(64, 64, 3, 64)


# --- calibrating ----------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    for plan in (stream_k_calibrate.CalibrationPlan, stream_k_explain.SideBySide):
        monkeypatch.setattr(plan, "policy", QUICK)


@pytest.mark.opencl
@pytest.mark.thorough
def test_the_whole_way_on_this_machine(tmp_path, quick):
    """Calibrate, resume without measuring, keep a person's adjustment, explain from the file, measure."""
    opencl_device()
    out, task = tmp_path / "calibration.yaml", CalibrationTask(("s",), TILE)
    first = calibrate_stream_k(task, out, device="OpenCL")
    assert first.state is RunState.FINISHED
    (stored,) = read(out)
    assert stored.subject.tile == MacroTile(16, 16, 8)
    assert stored.subject.room == DeviceCapacity(first.target.compute_units)
    assert len(stored.runs) == first.ledger.measured - 2, "each run once, and the first twice more as the anchor"
    assert stored.values[0] > 0

    text = out.read_text().replace("start: {", "start: {adjusted: 500000.0, ", 1)
    out.write_text(text)
    again = calibrate_stream_k(task, out, device="OpenCL")
    assert (again.ledger.measured, again.ledger.reused) == (0, len(stored.runs))
    assert [made.adjusted for made in again.plan.made] == [{"start": pytest.approx(0.5)}]
    assert read(out)[0].runs == stored.runs

    question = ExplainTask((48, 48, 1, 512), TILE, calibration=out, device="OpenCL", measure=True)
    made = explain_stream_k(question, {"TUNESMITH_STREAMK_FULL_TILES": "0", "TUNESMITH_STREAMK_FIXED_GRID": "5"})
    assert [line.why for line in made.lines[:2]] == ["overridden", "predicted"]
    overridden = made.lines[0].decision
    assert (overridden.grid, overridden.streamed, overridden.model) == (5, 4, "calibrated")
    assert overridden.seconds > 0.5, "the adjusted start"
    assert all(line.measured or line.failed for line in made.lines)
    assert made.lines[0].measured is not None
    assert made.lines[1].measured is not None
    assert any("put right by hand" in sentence for sentence in made.notes)


@pytest.mark.opencl
def test_a_spent_budget_keeps_what_was_measured(tmp_path, quick):
    opencl_device()
    out = tmp_path / "calibration.yaml"
    done = calibrate_stream_k(CalibrationTask(("s",), TILE), out, device="OpenCL", budget_minutes=1e-6)
    assert done.state is RunState.INTERRUPTED
    assert not out.exists()
    assert done.ledger.measured == 1
    with Store.read(runs_folder(out) / STORE) as store:
        assert len(list(store.entries())) == 1


def test_on_part_of_a_device_no_run_has_more_work_groups_than_that():
    """This includes whole tiles, which without the cap have a work-group each."""
    (kernel,) = kernels_named("s", TileFilter(64, 64), replace(GPU, compute_units=132), room=DeviceCapacity(16))
    for work, choice in calibration_runs(kernel.room, kernel.tile, ()):
        config = kernel.configured(StreamKDecision(work, choice))
        assert not list(kernel.kernel.rejections(config, kernel.type, GPU))
        plan = kernel.kernel.plan(config, kernel.problem_of(work), GPU)
        assert plan.steps[0].grid == (choice.grid, 1, 1)


@pytest.mark.opencl
def test_more_compute_units_than_there_are_is_said(tmp_path):
    opencl_device()
    with pytest.raises(UserError, match="--compute-units: 100000 is more than"):
        calibrate_stream_k(CalibrationTask(("s",), compute_units=100_000), tmp_path / "c.yaml", device="OpenCL")


def test_a_file_that_is_no_calibration_is_not_overwritten(tmp_path):
    out = tmp_path / "notes.yaml"
    out.write_text("my: notes\n")
    with pytest.raises(UserError, match=r"notes.yaml:1"):
        calibrate_stream_k(CalibrationTask(("s",)), out)
    assert out.read_text() == "my: notes\n"


# --- explaining for a device that is not there ----------------------------------------------------------------------

ROOM = DeviceCapacity(132)


@pytest.fixture
def of_an_h200(tmp_path):
    path = tmp_path / "h200.yaml"
    subjects = [
        Subject("CUDA", "H200", "sm_90", "SomeGemm", "s", MacroTile(128, 128, depth), ROOM) for depth in (32, 64)
    ]
    path.write_text(dump(calibration(ROOM, subject) for subject in subjects))
    return path


def test_a_calibration_answers_for_its_device(of_an_h200):
    made = explain_stream_k(
        ExplainTask((128 * 140, 128, 1, 16384), TileFilter(128, 128, 64), calibration=of_an_h200), {}
    )
    assert made.room == ROOM
    assert (made.work.tiles, made.work.iterations) == (140, 256)
    chosen = made.lines[0].decision
    assert chosen.mode is SharingMode.STREAM_K
    others = {line.why for line in made.lines}
    assert {"considered", "portable", "tensile", "tensile, gate lifted"} <= others
    expected = [line.decision.seconds for line in made.lines if line.why == "considered"]
    assert chosen.seconds == min([chosen.seconds, *expected])


def test_several_calibrations_that_fit_are_listed(of_an_h200):
    with pytest.raises(UserError) as error:
        explain_stream_k(ExplainTask((512, 512, 1, 512), TileFilter(128, 128), calibration=of_an_h200), {})
    assert "several calibrations" in error.value.what
    assert "128x128x32" in error.value.remedy
    assert "128x128x64" in error.value.remedy


def test_so_many_compute_units_are_enough_for_rules_of_thumb():
    made = explain_stream_k(ExplainTask((4096, 4000, 1, 8192), TileFilter(128, 256, 64), compute_units=132), {})
    assert made.model == "portable"
    assert any("rules of thumb" in sentence for sentence in made.notes)
    with pytest.raises(UserError, match="has no depth"):
        explain_stream_k(ExplainTask((4096, 4000, 1, 8192), TileFilter(128, 256), compute_units=132), {})


def test_a_variable_that_means_nothing_stops_at_once():
    with pytest.raises(UserError, match="TENSILE_STREAMK_MAX_CUS: 'some'"):
        explain_stream_k(
            ExplainTask((1, 1, 1, 1), TileFilter(8, 8, 8), compute_units=4), {"TENSILE_STREAMK_MAX_CUS": "some"}
        )


# --- the command line -----------------------------------------------------------------------------------------------


def command(*words, **environment):
    done = CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "160", **environment})
    if isinstance(done.exception, UserError):
        raise done.exception
    return done


QUESTION = ("stream-k", "explain", "--size", "17920", "128", "1", "16384", "--tile", "128x128x64")


def test_explain_prints_what_was_considered_and_why(of_an_h200):
    done = command(*QUESTION, "--calibration", of_an_h200)
    assert done.exit_code == 0
    assert "140 tiles of 256 iterations on 132 work-groups at once (132 compute units x 1): remainder 8" in done.output
    assert "tiles are split over" in done.output
    assert "times as fast as the best without a split" in done.output


def test_explain_prints_the_same_as_json(of_an_h200):
    done = command(*QUESTION, "--calibration", of_an_h200, "--json")
    printed = json.loads(done.output)
    assert printed["lines"][0]["why"] == "chosen"
    assert printed["lines"][0]["parameters"].keys() == {"StreamKGrid", "StreamKFullTiles", "GlobalSplitU"}


def test_explain_hears_the_environment(of_an_h200):
    done = command(*QUESTION, "--calibration", of_an_h200, TENSILE_STREAMK_FULL_TILES="1")
    assert "overridden by TENSILE_STREAMK_FULL_TILES" in done.output


@pytest.mark.parametrize("size", [("17920", "128", "1"), ("1", "2", "3", "4", "5"), ("a",), ("0", "1", "1", "1")])
def test_sizes_that_are_none_are_said(size):
    with pytest.raises(UserError, match="--size"):
        command("stream-k", "explain", "--size", *size, "--tile", "128x128x64", "--compute-units", "8")


@pytest.mark.opencl
def test_calibrate_prints_costs_and_where_they_are(tmp_path, quick, monkeypatch):
    """A calibration of nine runs, the fewest that can be fitted."""
    opencl_device()
    monkeypatch.setattr(stream_k_calibrate, "calibration_runs", _few)
    out = tmp_path / "c.yaml"
    done = command("calibrate", "stream-k", "s", "--tile", "16x16x8", "-o", out, "--device", "OpenCL", "--json")
    assert done.exit_code in (0, 1)
    printed = json.loads(done.stdout)
    assert printed["written"] == [str(out)]
    (made,) = printed["calibrations"]
    assert made["tile"] == [16, 16, 8]
    assert made["runs"] == 9


def _few(room, tile, splits):
    from tunesmith.models.stream_k.decision_models import SPLITS, calibration_runs

    assert splits == SPLITS, "the family has split-K"
    runs = [launch for launch in calibration_runs(room, tile, splits) if launch[0].iterations <= 48 * 8]
    return runs[:: max(1, len(runs) // 9)][:9]
