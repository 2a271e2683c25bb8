"""`tunesmith stream-k sweep`: what is tried, how close predictions came, what is learnt, and the whole way on this
machine's CPU."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from opencl_runner import opencl_device
from stream_k_fakes import COSTLY, ORIGIN, calibration
from tunesmith.bench import Bench, Policy
from tunesmith.cli.app import app
from tunesmith.devices.fake import fake_target
from tunesmith.kernels import families_of
from tunesmith.models.stream_k.calibration_file import read
from tunesmith.models.stream_k.costs import counts
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    DeviceCapacity,
    MacroTile,
    PortableModel,
    SharingMode,
    StreamKChoice,
    TiledProduct,
)
from tunesmith.models.stream_k.launch_decisions import GRID
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Estimate, Launch, Problem, UserError
from tunesmith.session.frame import events
from tunesmith.session.frame import run as frame_run
from tunesmith.session.frame.outputs import STORE
from tunesmith.session.stream_k import sweep as stream_k_sweep
from tunesmith.session.stream_k.kernels import TileFilter, kernels_named, room_of
from tunesmith.session.stream_k.planned import Planner
from tunesmith.session.stream_k.refit import refit
from tunesmith.session.stream_k.sweep import SweepTask, sweep_stream_k
from tunesmith.session.stream_k.swept import COLUMNS, Swept, as_csv, misses, scores
from tunesmith.store import RunState, Store

QUICK = Policy(noise=0.5, maximum_samples=6, sampling_seconds=0.005, warm_up_seconds=0.001, cold=False)
GPU = replace(fake_target("GPU"), api="OpenCL", name="a GPU", compute_units=132)
ROOM = DeviceCapacity(132)
DEPTH = 64


# --- plans ----------------------------------------------------------------------------------------------------------


def planner(compute_units=None, known=None):
    (kernel,) = kernels_named("s", TileFilter(64, 64), GPU, room=room_of(GPU, compute_units, 1))
    return Planner(kernel, known or PortableModel(kernel.room), grids=4)


def test_a_row_major_product_goes_to_the_type_that_computes_it():
    made = planner().plan(ListedGemm(100, 300, 50, batch=3, trans_b=True))
    assert made.problem.type == gemm_type("s", transpose_a=True, transpose_b=False, batched=True)
    assert made.problem.sizes == (300, 100, 3, 50)
    assert made.work == TiledProduct(5 * 2 * 3, 7, 8, batch=3)


def test_capped_no_launch_has_more_work_groups_than_the_cap():
    """Whole tiles run over the grid in waves. There is no split-K, which would launch all its parts at once."""
    capped = planner(compute_units=16)
    assert capped.kernel.capped
    made = capped.plan(ListedGemm(640, 640, 4096))
    assert made.work.tiles == 100
    for config in made.configs.values():
        (kernel,) = kernels_named("s", TileFilter(64, 64), GPU)
        plan = kernel.kernel.plan(config, made.problem, GPU)
        assert plan.steps[0].grid[0] * plan.steps[0].grid[1] * plan.steps[0].grid[2] <= 16
    assert any(not choice.streamed for choice in made.configs)


HOPPER = replace(
    fake_target("GPU"),
    api="CUDA",
    name="a Hopper GPU",
    architecture="sm_90",
    compute_units=132,
    local_memory_bytes=232_448,
    global_memory_bytes=2**37,
    max_allocation_bytes=2**37,
)
ON_CUDA = [
    family.name
    for family in families_of("GEMM")
    if GRID in family.space(gemm_type("h")) and family.language != "OpenCL"
]


@pytest.mark.parametrize("name", ON_CUDA)
@pytest.mark.parametrize("data_type", ["bf16", "h"])
def test_families_on_cuda_are_swept_alike(name, data_type):
    """The family takes every mode of sharing tiles; if the kernel is capped, no launch has more work-groups than the
    room."""
    for units in (None, 64):
        (kernel,) = kernels_named(data_type, None, HOPPER, name, room_of(HOPPER, units, 1))
        assert kernel.kernel.name == name
        planned = Planner(kernel, PortableModel(kernel.room), grids=8).plan(ListedGemm(3000, 4096, 4096, trans_b=True))
        assert set(planned.chosen.values()) <= set(planned.configs)
        modes = {choice.mode for choice in planned.configs}
        assert modes == {SharingMode.DATA_PARALLEL, SharingMode.STREAM_K, *([] if units else [SharingMode.SPLIT_K])}
        for choice, config in planned.configs.items():
            steps = kernel.kernel.plan(config, planned.problem, HOPPER).steps
            (grid, *_) = (step.grid for step in steps if isinstance(step, Launch))
            if units or choice.mode is SharingMode.STREAM_K:
                assert grid == (choice.grid, 1, 1)


def test_the_whole_device_is_not_capped():
    assert not any(kernels_named("s", None, GPU, room=room_of(GPU, *part))[0].capped for part in ((None, 2), (132, 1)))
    with pytest.raises(UserError, match="--compute-units: 133 is more than the 132 of a GPU"):
        room_of(GPU, 133, 1)


def test_what_the_library_asks_comes_first_and_all_rivals_after_it():
    planned = planner(known=CalibratedModel(calibration(ROOM))).plan(ListedGemm(640, 640, 4096))
    assert list(planned.chosen) == ["calibrated", "portable", "tensile", "tensile, gate lifted", "data-parallel"]
    assert set(planned.chosen.values()) <= set(planned.configs)


def test_few_products_of_one_type_race_together_and_none_beside_itself():
    sizes = [*range(1, 11), 10, 11]
    listed = [ListedGemm(100 * m, 300, 50, trans_b=m != 11) for m in sizes]
    together = list(stream_k_sweep._raced_together(map(planner().plan, listed), stream_k_sweep.RACED_TOGETHER))
    assert [[product.listed.m // 100 for product in few] for few in together] == [[*range(1, 9)], [9, 10], [10], [11]]


# --- how close ------------------------------------------------------------------------------------------------------


def swept(times, chosen, tiles=140, iterations=64, tag=""):
    """A swept product with these final times (seconds by choice)."""
    listed = ListedGemm(64 * tiles, 64, iterations * DEPTH, family=tag)
    finals = {choice: Estimate(t, 0.9 * t, 1.1 * t, 7) for choice, t in times.items()}
    problem = Problem(gemm_type(transpose_b=False), (64, 64 * tiles, iterations * DEPTH))
    return Swept(listed, problem, TiledProduct(tiles, iterations, DEPTH), chosen, finals, finals)


A, B, C = StreamKChoice(132), StreamKChoice(132, 8), StreamKChoice(132, splits=4)


def test_a_way_is_as_good_as_its_geometric_mean_and_its_worst():
    first = swept({A: 2.0, B: 1.0}, {"portable": B, "data-parallel": A})
    second = swept({A: 1.0, B: 1.25}, {"portable": B, "data-parallel": A}, tag="two")
    third = swept({A: 1.0}, {"portable": C, "data-parallel": A})
    portable, parallel = scores([first, second, third])
    assert (portable.method, portable.products) == ("portable", 2), "what did not run counts nowhere"
    assert portable.geomean == pytest.approx(0.8**0.5)
    assert (portable.worst, portable.worst_at) == (pytest.approx(0.8), second)
    assert (parallel.products, parallel.worst) == (3, 0.5)


def test_the_worst_misses_come_first_and_no_hit_is_one():
    lost = [swept({A: 1.0, B: 1.0 + location / 10}, {"portable": B}) for location in (1, 3, 0, 2)]
    assert misses(lost, "portable", 2) == [lost[1], lost[3]]
    assert misses(lost, "portable", 9) == [lost[1], lost[3], lost[0]]
    assert misses(lost, "tensile", 9) == []


def test_the_table_has_a_line_for_each_choice():
    text = as_csv([swept({A: 2.0, B: 1.0}, {"portable": B, "tensile": B}, tag="a, b")], 132)
    header, plain, split = text.splitlines()
    assert header.split(",") == list(COLUMNS)
    assert plain.startswith('"a, b",8960,64,4096,1,N,N,')
    assert plain.endswith(",data-parallel,132,0,0,1,2.0,2.0,1.8,2.2,0.5,")
    assert split.endswith(",140,64,8,stream-k,132,8,0,1,1.0,1.0,0.9,1.1,1.0,portable; tensile")


# --- what is learnt -------------------------------------------------------------------------------------------------


def asking(known):
    """A planner for a tile as deep as those above."""
    return Planner(replace(planner().kernel, tile=MacroTile(64, 64, DEPTH)), known, grids=4)


SUBJECT = asking(PortableModel(ROOM)).kernel.subject


def slower(factor, room=ROOM):
    """Finalists on a device that is slower than the fakes' costs predict."""
    made = []
    for tiles in (1, 8, 100, 133, 140, 200, 263):
        work = TiledProduct(tiles, 128, DEPTH)
        choices = [
            StreamKChoice.whole_tiles(work, room),
            StreamKChoice(132, tiles % 132),
            StreamKChoice(132, min(tiles, tiles % 132 + 132)),
        ]
        times = {choice: factor * float(counts(work, choice, room) @ COSTLY) for choice in choices}
        made.append(swept(times, {"calibrated": choices[0]}, tiles, 128))
    return made


def test_a_refit_learns_from_the_finalists_and_keeps_what_a_person_has_put_right(tmp_path):
    old, other = calibration(ROOM, SUBJECT), calibration(DeviceCapacity(64))
    old = replace(old, costs=(*old.costs[:6], replace(old.costs[6], adjusted=1.2e-6), *old.costs[7:]))
    path = tmp_path / "calibration.yaml"
    planned = asking(CalibratedModel(old))
    made = refit(path, [old, other], ORIGIN, slower(2.0), planned)
    assert made.before is old
    path.write_text(made.text)
    after, kept = read(path)
    assert kept.subject == other.subject
    assert after.adjusted == {"peer": pytest.approx(1.2e-6)}
    assert len(after.runs) > len(old.runs)
    assert after.values[1] > 1.05 * old.values[1], "an iteration takes longer now"
    again = refit(path, read(path), ORIGIN, slower(2.0), planned)
    assert len(again.after.runs) == len(after.runs), "the same launch is one run, however often it is swept"


def test_without_a_calibration_a_refit_makes_the_first_one(tmp_path):
    made = refit(tmp_path / "c.yaml", (), ORIGIN, slower(1.0), asking(CalibratedModel(calibration(ROOM))))
    assert made.before is None
    made.path.write_text(made.text)
    assert read(tmp_path / "c.yaml")[0].subject == SUBJECT
    few = slower(1.0)[:1]
    with pytest.raises(ValueError, match="cannot be fitted"):
        refit(tmp_path / "c.yaml", (), ORIGIN, few, asking(CalibratedModel(calibration(ROOM))))


# --- the whole way --------------------------------------------------------------------------------------------------

LIST = """family,m,n,k,batch,trans_a,trans_b
few,16,16,24,1,N,T
few,48,32,24,1,N,T
other,16,48,24,1,N,T
"""
"""Three iterations: of split-K, only two parts are a program to compile."""


@pytest.fixture
def products(tmp_path, monkeypatch):
    monkeypatch.setattr(stream_k_sweep.SweepPlan, "policy", QUICK)
    path = tmp_path / "list.csv"
    path.write_text(LIST)
    return path


def sweep(*words):
    done = CliRunner().invoke(app, ["stream-k", "sweep", *map(str, words), "--tile", "16x16x8", "--grids", "2"])
    if isinstance(done.exception, UserError):
        raise done.exception
    return done


@pytest.mark.opencl
@pytest.mark.slow
def test_a_sweep_goes_on_compares_learns_and_draws(tmp_path, products):
    opencl_device()
    out = tmp_path / "out"
    command = (products, "--device", "OpenCL", "-o", out, "--json")
    stopped = sweep_stream_k(
        SweepTask(products, tile=TileFilter(16, 16, 8), grids=2), out, device="OpenCL", budget_minutes=1e-6
    )
    assert stopped.state is RunState.INTERRUPTED
    assert stopped.ledger.measured == 1

    first = json.loads(sweep(*command).stdout)
    assert first["state"] == "finished"
    assert first["reused"] >= 1
    assert first["judged"] == "portable"
    ways = {score["way"]: score for score in first["ways"]}
    assert ways.keys() == {"portable", "tensile", "tensile, gate lifted", "data-parallel", "best split-K"}
    assert all(0 < score["worst"] <= score["geomean"] <= 1 for score in ways.values())
    assert ways["portable"]["products"] == 3
    assert [product["sizes"] for product in first["swept"]] == [[16, 16, 24], [32, 48, 24], [48, 16, 24]]
    assert (out / "sweep.csv").read_text().startswith("family,m,n,k")
    picture = ElementTree.parse(out / "sweep.svg").getroot()
    rings = [circle for circle in picture.iter("{http://www.w3.org/2000/svg}circle") if circle.get("class") == "ring"]
    assert len(rings) == 1 + 3, "one in the legend, and each product's choice"

    again = json.loads(sweep(*command, "--refit").stdout)
    assert again["measured"] == 0
    assert again["ways"] == first["ways"]
    assert again["refit"]["scatter_before"] is None
    assert read(out / "calibration.yaml")[0].subject.tile == MacroTile(16, 16, 8)
    learnt = sweep(products, "--device", "OpenCL", "-o", out, "--family", "few", "--quiet")
    assert learnt.exit_code in (0, 1)
    assert "best time / time of what was chosen, 2 of 2 products" in learnt.stdout
    assert "calibrated *" in learnt.stdout
    assert f"wrote {out / 'sweep.svg'}" in learnt.stdout


@pytest.mark.opencl
@pytest.mark.slow
def test_products_wait_at_the_bench_together_and_none_is_stopped_for_anothers_sake(tmp_path, products, monkeypatch):
    """The second product takes many times as long as the first. The third is the first under another name."""
    opencl_device()
    products.write_text("family,m,n,k,trans_b\nfew,16,16,24,T\nfew,640,640,24,T\nother,16,16,24,T\n")
    batches, stopped, observed = [], {}, []

    class Watched(Bench):
        def run(self, batch):
            batches.append([{job.problem.sizes for job in race.jobs} for race in batch.races])
            for job, measurement in super().run(batch):
                stopped.setdefault(job.problem.sizes, []).append(measurement.raced)
                yield job, measurement

    monkeypatch.setattr(frame_run, "Bench", Watched)
    task, out = SweepTask(products, tile=TileFilter(16, 16, 8), grids=3), tmp_path / "out"
    first = sweep_stream_k(task, out, device="OpenCL")
    assert batches[0] == [{(16, 16, 24)}, {(640, 640, 24)}]
    assert all(len(sizes) == 1 for batch in batches for sizes in batch), "a race has one product"
    anchors = [batch for batch in batches[1:] if batch == [{(16, 16, 24)}]]
    assert len(anchors) >= 2, "the anchor is measured after the first product, whenever it is due, and at the end"
    # A product's second race, if its first one leaves neighbours to try, is with those of the other products.
    assert all(batch in ([{(16, 16, 24)}], [{(640, 640, 24)}], batches[0]) for batch in batches[1:])
    assert not any(map(all, stopped.values())), "of each product something was measured to the end"
    assert [product.listed.family for product in first.plan.swept] == ["few", "few", "other"]
    assert first.plan.swept[2].finals == first.plan.swept[0].finals
    with Store.open(out / STORE) as store:
        finals = list(store.entries(round_prefix="confirm/"))
    assert finals
    assert not any(final.measurement.cost.verify for final in finals), "nothing is verified twice"

    again = sweep_stream_k(task, out, device="OpenCL", observe=observed.append)
    assert again.ledger.measured == 0
    assert again.plan.swept == first.plan.swept
    (*_, batch) = (event for event in observed if isinstance(event, events.BatchBegan))
    assert batch.reused == batch.cells == again.ledger.reused


@pytest.mark.opencl
def test_on_part_of_the_device_everything_stays_on_it(tmp_path, products):
    if opencl_device().target.compute_units == 1:
        pytest.skip("a device with one compute unit has no part")
    task = SweepTask(products, tile=TileFilter(16, 16, 8), grids=2, compute_units=1, families=("other",))
    outcome = sweep_stream_k(task, tmp_path / "out", device="OpenCL")
    assert outcome.plan.room == DeviceCapacity(1)
    assert len(outcome.plan.swept) == 1
    assert {choice.grid for product in outcome.plan.swept for choice in product.screened} == {1}
    assert "best split-K" not in {name for product in outcome.plan.swept for name in product.choices}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--family", "wave"), "--family: no product of .* is of the family 'wave'; name one of few, other"),
        (("--calibration", "nowhere.yaml"), "nowhere.yaml: .*cannot be read"),
    ],
)
def test_mistakes_are_said_before_anything_is_measured(tmp_path, products, words, message):
    with pytest.raises(UserError, match=message):
        sweep(products, "-o", tmp_path / "out", *words)
    assert not (tmp_path / "out").exists()


def test_a_file_with_several_tiles_leaves_open_which_is_meant():
    from described import EXAMPLES

    kernels = kernels_named(str(EXAMPLES / "wiki.yaml"), None, GPU)
    with pytest.raises(UserError, match=r"means several kernels: .* name one by --tile and --kernel"):
        stream_k_sweep._only(kernels, "wiki.yaml")
