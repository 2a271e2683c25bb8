"""`tunesmith random tune`: the matrix and its growth, a whole run on this machine's CPU, and the use of its table."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import replace

import numpy as np
import pytest

import golden_bench
import tunesmith.random
from described import EXAMPLES
from opencl_runner import opencl_device
from tunesmith import session
from tunesmith.bench import Policy
from tunesmith.devices.fake import fake_target
from tunesmith.devices.health import Health
from tunesmith.formats import read_random
from tunesmith.logic import Logic
from tunesmith.logic.random.table import read_table
from tunesmith.records import Estimate, LaunchShape, Measurement, Outcome, UserError, architecture_name
from tunesmith.session.frame import run as frame_run
from tunesmith.session.frame.drift import Anchor
from tunesmith.session.frame.health import HealthWatch
from tunesmith.session.random.plan import TABLE, MeasuredShape, RandomPlan, tune_random
from tunesmith.session.random.space import LaunchMatrix, matrix_for
from tunesmith.session.random.task import RandomTask, default_shape, generator_of
from tunesmith.store import FILE_NAME, Store

GPU = replace(fake_target(), compute_units=132)


# --- the matrix -----------------------------------------------------------------------------------------------------


def test_with_rocrands_options_the_matrix_is_rocrands():
    """24 shapes, as `notes` of the original count them: 5 x 6 without those of fewer than 32,768 threads."""
    matrix = matrix_for(GPU, None, (64, 128, 256, 512, 1024, 2048), None)
    assert len(matrix.shapes()) == 24
    assert min(shape.threads for shape in matrix.shapes()) == 32768
    assert matrix.shapes()[0] == LaunchShape(512, 64)


def test_a_gpus_grids_are_also_multiples_of_its_multiprocessors():
    assert {132 * waves for waves in (2, 4, 8, 16, 32)} <= set(matrix_for(GPU, None, None, None).grids)


def test_blocks_that_the_device_does_not_take_are_not_tried():
    small = replace(GPU, max_work_group_size=256)
    assert matrix_for(small, None, None, None).blocks == (64, 128, 256)


@pytest.mark.parametrize(
    ("chosen", "grids"),
    [
        ((256, 512), (256, 512, 1024)),
        ((256, 1024), (256, 512, 1024, 2048)),
        ((256, 256), (128, 256, 512, 1024)),
    ],
)
def test_the_grids_grow_beyond_a_winner_on_their_edge_and_only_there(chosen, grids):
    matrix = LaunchMatrix((256,), (256, 512, 1024), 1)
    assert matrix.beyond([LaunchShape(*chosen)]).grids == grids


def test_a_winner_with_the_fewest_threads_lies_on_an_edge_too():
    """Eight of rocRAND's shipped winners have exactly its least number of threads, 32,768."""
    matrix = LaunchMatrix((64, 256), (128, 256, 512), 32768)
    grown = matrix.beyond([LaunchShape(64, 512)])
    assert LaunchShape(64, 256) in grown.shapes()
    assert LaunchShape(64, 256) not in matrix.shapes()


# --- the task -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (RandomTask(generators=("philox",)), "--generators: there is no philox"),
        (RandomTask(distributions=("gauss",)), "--distributions: there is no gauss"),
        (RandomTask(value_types=("int",)), "--types: there is no int"),
        (RandomTask(pattern="("), "--benchmark_filter"),
        (RandomTask(pattern="no such name"), "nothing is left to tune"),
        (RandomTask(distributions=("poisson",), value_types=("float",)), "nothing is left to tune"),
    ],
)
def test_a_task_that_means_nothing_is_a_mistake_with_its_place(task, message, tmp_path):
    with pytest.raises(UserError) as error:
        tune_random(task, tmp_path)
    assert message in str(error.value)


# --- a run ----------------------------------------------------------------------------------------------------------

TASK = RandomTask(
    generators=("philox4_32_10", "xorwow"),
    distributions=("uniform", "normal"),
    value_types=("float",),
    blocks=(64, 256),
    grids=(8,),
    min_threads=1,
    bytes=(1 << 18,),
    grow=False,
)


QUICK = Policy(noise=0.2, maximum_samples=7, sampling_seconds=0.005, warm_up_seconds=0.001, cold=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two generators, two distributions, three shapes each. Cautions about a busy machine are left out."""
    opencl_device()
    folder = tmp_path_factory.mktemp("random")
    with pytest.MonkeyPatch.context() as quick:
        quick.setattr(RandomPlan, "policy", QUICK)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(frame_run.Run, "cautions", lambda self: [])
            outcome = tune_random(TASK, folder, device="OpenCL")
        yield outcome, outcome.written, folder


def test_everything_legal_is_verified_and_measured(run):
    outcome, _, _ = run
    assert [row for row in outcome.plan.measured if not row.measurement.ok] == []
    shapes = {LaunchShape(block, grid) for block in TASK.blocks for grid in TASK.grids}
    defaults = {"philox4_32_10": (256, 1024), "xorwow": (256, 512)}
    for generator, default in defaults.items():
        for distribution in TASK.distributions:
            of_this = {
                row.shape
                for row in outcome.plan.measured
                if row.problem.type.name.startswith(f"{generator}_{distribution}_float")
            }
            assert of_this == shapes | {LaunchShape(*default)}


def test_the_default_and_what_may_be_the_fastest_are_measured_in_rounds_that_lie_apart(run):
    outcome, _, folder = run
    rounds: dict[tuple[str, tuple[int, int]], dict[str, int]] = {}
    with Store.open(folder / FILE_NAME) as store:
        for entry in store.entries(round_prefix="full"):
            config = entry.solution.configuration
            shape = (config.integer("BlockSize"), config.integer("GridSize"))
            taken = rounds.setdefault((entry.problem.type.name, shape), {})
            taken[entry.round] = entry.measurement.estimate.count
    for row in outcome.plan.measured:
        of_this = [other for other in outcome.plan.measured if other.problem == row.problem]
        taken = rounds[row.problem.type.name, (row.shape.block, row.shape.grid)]
        is_default = row.shape == default_shape(generator_of(row.problem.type))
        if is_default or row.seconds.seconds == min(other.seconds.seconds for other in of_this):
            assert set(taken) >= {"full", "full/2", "full/3"}
        assert row.seconds.count == sum(count for name, count in taken.items() if "recheck" not in name)


def test_where_the_rounds_show_the_repeated_to_be_slower_what_may_now_be_the_fastest_is_repeated_too(monkeypatch):
    """Without the rounds, a shape may win by a single measurement that was made while the machine was faster."""
    task = replace(TASK, generators=("philox4_32_10",), distributions=("uniform",))
    target = replace(fake_target(), kind="CPU")
    plan = RandomPlan(task, target)
    ((generator, problems),) = plan._problems.items()
    ((problem,),) = problems.values()
    first = {LaunchShape(64, 2): 1.0, LaunchShape(64, 8): 1.5, LaunchShape(256, 2): 3.0, LaunchShape(256, 8): 3.1}
    later = {LaunchShape(64, 2): 2.0, LaunchShape(64, 8): 1.6}
    shapes = {default_shape(generator): 5.0, **first}
    plan.measured = [MeasuredShape(problem, shape, _of_seconds(seconds)) for shape, seconds in shapes.items()]
    measured_shapes: list[set[LaunchShape]] = []

    def in_rounds(_run, of, chosen, _rounds):
        measured_shapes.append(set(chosen))
        plan.measured = [
            replace(row, measurement=_of_seconds(later.get(row.shape, 5.0))) if row.shape in chosen else row
            for row in plan.measured
        ]

    monkeypatch.setattr(plan, "_take_rounds", in_rounds)
    plan._repeat(None, generator)
    assert measured_shapes == [{LaunchShape(64, 2), default_shape(generator)}, {LaunchShape(64, 8)}]


def test_a_shape_without_a_rival_is_not_repeated(monkeypatch):
    """Rounds decide between shapes; a filter that leaves one shape has nothing to decide."""
    plan = RandomPlan(
        replace(TASK, generators=("xorwow",), distributions=("normal",)), replace(fake_target(), kind="CPU")
    )
    ((generator, problems),) = plan._problems.items()
    plan.measured = [MeasuredShape(problem, LaunchShape(64, 8), _of_seconds(1.0)) for (problem,) in problems.values()]
    asked = []
    monkeypatch.setattr(plan, "_take_rounds", lambda *arguments: asked.append(arguments))
    plan._repeat(None, generator)
    assert asked == []


def _of_seconds(seconds):
    return Measurement(Outcome.OK, estimate=Estimate(seconds, seconds, seconds, 1))


def test_its_rows_are_read_back_as_they_were_measured(run):
    outcome, written, _ = run
    reading = read_random([path for path in written if path.name.startswith("benchmark")])
    assert reading.complaints == ()
    from_json = {(row.generator, row.distribution, row.shape): row.gigabytes_per_second for row in reading.rows}
    known = {(row.generator, row.distribution, row.shape): row.gigabytes_per_second for row in outcome.plan.rows()}
    assert from_json == pytest.approx(known, rel=1e-12)
    context = json.loads(written[0].read_text())["context"]
    assert context["hdp_gcn_arch_name"] == outcome.target.architecture


def test_its_folder_gives_the_rows_of_its_json(run):
    """The rows of the store, to the last bit. If the JSON is beside it, each measurement counts once."""
    _, written, folder = run
    json_files = [path for path in written if path.name.startswith("benchmark")]
    by_json, by_store = read_random(json_files), read_random([folder])
    assert by_store.complaints == ()
    assert {replace(row, file="") for row in by_store.rows} == {replace(row, file="") for row in by_json.rows}
    assert len(by_store.rows) == len(by_json.rows)
    both = read_random([folder, *json_files]).rows
    assert [row for row in both if row.aside is None] == list(by_store.rows)


def test_the_library_launches_what_was_chosen(run):
    """The table that the run wrote is loaded, and the launch is watched to use it."""
    outcome, _, folder = run
    table = read_table(folder / TABLE)
    out = np.empty(10_000, np.float32)
    for generator in TASK.generators:
        chosen = table.shape(architecture_name(outcome.target.architecture), generator, "uniform", "float")
        with tunesmith.random.Generator(generator, ordering="dynamic", device="OpenCL", table=folder / TABLE) as made:
            made.uniform(out)
            assert made.launched.shape == chosen


def test_the_same_command_measures_nothing_again(run):
    outcome, _, folder = run
    again = tune_random(TASK, folder, device="OpenCL")
    assert again.ledger.measured == 0
    assert again.ledger.reused == outcome.ledger.measured - 2  # the first launch was measured twice more, as the anchor
    assert [(row.shape, row.measurement.samples) for row in again.plan.measured] == [
        (row.shape, row.measurement.samples) for row in outcome.plan.measured
    ]


def test_a_filter_picks_by_googles_names(run):
    _, _, folder = run
    outcome = tune_random(replace(TASK, pattern="xorwow.*normal.*_t64_b8"), folder, device="OpenCL")
    assert {(row.problem.type.name, row.shape) for row in outcome.plan.measured} == {
        ("xorwow_normal_float_dynamic", LaunchShape(64, 8))
    }
    assert outcome.ledger.measured == 0


@pytest.mark.opencl
@pytest.mark.thorough
def test_the_example_tunes_a_generator_through_the_phases(tmp_path):
    """Every size has a winner among the forks' survivors, and `random select` can read the store."""
    opencl_device()
    outcome = session.tune(EXAMPLES / "random.yaml", tmp_path, device="OpenCL")
    (path,) = outcome.logic_files
    logic = Logic.load(path)
    assert [row.sizes for row in logic.document.rows] == [(262144,), (524288,), (786432,), (1048576,), (4096,)]
    assert {solution.solution.configuration["BlockSize"] for solution in logic.document.solutions} <= {16, 64}
    assert {row.bytes for row in read_random([tmp_path]).rows} == {4 * row.sizes[0] for row in logic.document.rows}


# --- was it stable and alone ----------------------------------------------------------------------------------------


def watched(*looks, target=GPU):
    ticks, rest = iter(range(0, 1000, 10)), iter(looks)
    watch = HealthWatch(target, lambda _: next(rest), lambda: next(ticks))
    for _ in looks:
        watch.look_if_due()
    return list(watch.sentences())


def test_a_quiet_device_is_not_talked_about():
    assert watched(Health(1980, 40, 300.0, (), 0), Health(1980, 41, 310.0, (), 0)) == []


def test_company_and_a_clock_that_is_held_down_are_said():
    sentences = watched(Health(others=2), Health(throttled=("sw thermal slowdown",)), Health())
    assert any("not alone" in sentence and "2 other" in sentence for sentence in sentences)
    assert any("sw thermal slowdown" in sentence and "33 %" in sentence for sentence in sentences)


def test_a_host_that_is_busy_all_the_time_is_said_and_a_moment_is_not():
    cpu = replace(fake_target("CPU"), compute_units=2)
    assert watched(Health(busy=6.0), Health(busy=5.0), target=cpu) != []
    assert watched(Health(busy=6.0), Health(busy=1.0), target=cpu) == []


BUSY = "the host was busy with other work: load 99.0 on"


class Watch(HealthWatch):
    """Looks also while nothing is measured."""

    look_if_due = HealthWatch.look_if_due


def test_what_a_busy_host_makes_doubtful_is_told_until_it_is_measured_anew(tmp_path, monkeypatch):
    """In the run's files, by `random select` on its folder or its JSON, and still after a run that measures nothing."""
    task = replace(TASK, generators=("xorwow",), distributions=("uniform",), grids=(8,))
    folder = tmp_path / "run"
    monkeypatch.setattr(Anchor, "worst", None)
    glance = Health(busy=99.0)
    measured, minutes = golden_bench.measured, itertools.count(step=60.0)
    monkeypatch.setattr(golden_bench, "measured", lambda *what: replace(measured(*what), started=time.time()))
    monkeypatch.setattr(frame_run, "HealthWatch", lambda target: Watch(target, lambda _: glance, lambda: next(minutes)))
    with golden_bench.nothing_measured():
        first = tune_random(task, folder, device="OpenCL")
        glance = Health(busy=0.0)
        again = tune_random(task, folder, device="OpenCL")
        tune_random(replace(task, bytes=(1 << 19,)), tmp_path / "quiet", device="OpenCL")
    assert [sentence for sentence in first.look_at if sentence.startswith(BUSY)]
    assert again.ledger.measured == 0
    for outcome in (first, again):
        (benchmark,) = (path for path in outcome.written if path.name.startswith("benchmark"))
        (tuned,) = read_table(folder / TABLE).entries[architecture_name(outcome.target.architecture)].values()
        assert [caution for caution in tuned.cautions if caution.startswith(BUSY)]
        for source in (benchmark, folder):
            assert [complaint for complaint in read_random([source]).complaints if BUSY in str(complaint)]
    assert "// doubtful: the host was busy" in (folder / "xorwow_config.hpp").read_text()
    assert read_random([tmp_path / "quiet"]).complaints == ()


def test_looks_are_seconds_apart():
    now = iter((0.0, 0.5, 1.9, 2.1, 2.2))
    watch = HealthWatch(GPU, lambda _: Health(), lambda: next(now))
    for _ in range(5):
        watch.look_if_due()
    assert len(watch.looks) == 2
