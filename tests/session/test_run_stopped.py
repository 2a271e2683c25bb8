"""Each command that measures is stopped at named points of its run: all decisions are written, and nothing is lost."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forked import run_forked
from golden_bench import nothing_measured
from opencl_runner import opencl_device
from portblas_fakes import DEFAULT, FakeTask, fake
from portblas_fakes import tune as tune_like_portblas
from tunesmith.bench import Policy, injected_faults
from tunesmith.devices.fake import fake_target
from tunesmith.logic import Logic
from tunesmith.logic.random.table import read_table
from tunesmith.models.stream_k import calibration
from tunesmith.models.stream_k.calibration_file import read as read_calibrations
from tunesmith.models.stream_k.decision_models import calibration_runs
from tunesmith.models.stream_k.fit import fit
from tunesmith.records import UserError
from tunesmith.session.frame import measure, run
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.random import plan as random_plan
from tunesmith.session.random.task import RandomTask
from tunesmith.session.stream_k import calibrate, sweep
from tunesmith.session.stream_k.kernels import TileFilter
from tunesmith.session.tuning_file import tune
from tunesmith.store import RunState, Store
from tuning_runs import environment, fake_file, rows

QUICK = Policy(noise=0.5, maximum_samples=6, sampling_seconds=0.005, warm_up_seconds=0.001, cold=False)
TILE = TileFilter(16, 16, 8)
ALIKE = 0.9
"""A spread of samples, parts of the time, so that every candidate is a finalist."""

FILE = """
GlobalParameters: {CompileProcesses: 1, ConfirmBlocks: 7, WarmUpSeconds: 0.01, SamplingSeconds: 0.02}
BenchmarkProblems:
  - - DataType: s
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      ForkParameters:
        - WorkGroup: [[16, 8, 1], [8, 16, 1]]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Range: [[32, 32, 96], 0, 0]
"""
"""The two work-groups are equally fast on squares, so that the finalists of each size are measured again."""


def _tune(folder, minutes):
    folder.mkdir(exist_ok=True)
    return tune(fake_file(folder, FILE), folder, device="fake:GPU:8", budget_minutes=minutes)


def _portblas(folder, minutes):
    listed = tuple(DEFAULT | {"WorkGroup": group} for group in ((16, 8, 1), (8, 16, 1)))
    task: FakeTask = replace(fake(transposes="all", m=256, n=256, k=32), listed=listed)
    return tune_like_portblas(task, folder, budget_minutes=minutes)


def _random(folder, minutes):
    task = RandomTask(
        generators=("philox4_32_10", "threefry2_32_20"),
        distributions=("uniform",),
        value_types=("float",),
        blocks=(64,),
        grids=(2,),
        min_threads=1,
        bytes=(1 << 16,),
        grow=False,
    )
    random_plan.RandomPlan.policy = QUICK
    return random_plan.tune_random(task, folder, device="OpenCL", budget_minutes=minutes)


def _calibrate(folder, minutes):
    """Nine runs a type, the fewest that can be fitted. Twenty resamples give intervals, however rough."""
    calibration.fit = partial(fit, resamples=20)  # type: ignore[assignment]
    calibrate.CalibrationPlan.policy = QUICK
    calibrate.calibration_runs = lambda *what: calibration_runs(*what)[:9]  # type: ignore[attr-defined]
    folder.mkdir(exist_ok=True)
    task = calibrate.CalibrationTask(("s", "d"), TILE)
    return calibrate.calibrate_stream_k(task, folder / "c.yaml", device="OpenCL", budget_minutes=minutes)


def _sweep(folder, minutes):
    sweep.SweepPlan.policy = QUICK
    folder.mkdir(exist_ok=True)
    (folder / "list.csv").write_text("m,n,k,trans_b\n16,16,24,T\n48,32,24,T\n")
    task = sweep.SweepTask(folder / "list.csv", tile=TILE, grids=2)
    return sweep.sweep_stream_k(task, folder, device="OpenCL", budget_minutes=minutes, draw=lambda plan: "<svg/>")


def _logic(folder):
    documents = [Logic.load(path).document for path in (folder / "logic").glob("*.yaml")]
    return sum(len(document.rows) for document in documents), any(document.unfinished for document in documents)


def _generators(folder):
    path = folder / "tunesmith_random.json"
    entries = read_table(path).entries if path.exists() else {}
    return sum(map(len, entries.values())), None


def _calibrations(folder):
    return len(read_calibrations(folder / "c.yaml")) if (folder / "c.yaml").exists() else 0, None


def _products(folder):
    path = folder / "sweep.csv"
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    return len({line.split(",")[1] for line in lines}), None


@dataclass(frozen=True)
class Command:
    """How it is run into a folder; `results` counts what is decided there, and says whether the files say that more is
    to come (None: they hold nothing that is open). `total` is how many decisions the whole run makes."""

    run: Callable[[Path, float | None], RunOutcome[Any]]
    results: Callable[[Path], tuple[int, bool | None]]
    total: int
    store: str = "."
    confirms: bool = True
    opencl: bool = False


COMMANDS = {
    "tune": Command(_tune, _logic, 3),
    "portblas tune": Command(_portblas, _logic, 4),
    "random tune": Command(_random, _generators, 2, confirms=False, opencl=True),
    "calibrate stream-k": Command(_calibrate, _calibrations, 2, store="c.runs", confirms=False, opencl=True),
    "stream-k sweep": Command(_sweep, _products, 2, opencl=True),
}


@pytest.fixture(autouse=True)
def commands_restored(monkeypatch):
    """What the commands above set, so that they are quick in a process of their own too, does not outlive a test."""
    plans = random_plan.RandomPlan, calibrate.CalibrationPlan, sweep.SweepPlan
    of_calibrate = (calibrate, "calibration_runs"), (calibration, "fit")
    for owner, name in [*((plan, "policy") for plan in plans), *of_calibrate]:
        monkeypatch.setattr(owner, name, getattr(owner, name))


POINTS, WAYS = ("decided", "confirming", "closing"), ("budget", "Ctrl-C", "kill")


def stops():
    """Every command at every point that it passes, in every way.

    What a run does when it is stopped is the same for all commands (`session/frame`). So one command is always stopped
    at each point in each way. Of the others, a covering part always runs: each at each point and in each way, and each
    point in each way. The rest of the product is thorough; it would show that a command differs in one cell only.
    """
    for shift, (name, command) in enumerate(COMMANDS.items()):
        for slot, (point, how) in enumerate(product(POINTS, WAYS)):
            at = point if command.confirms or point != "confirming" else "decided"
            covering = name == "tune" or (slot // 3 + slot % 3 + shift) % 3 == 0
            if command.confirms or point != "confirming" or covering:
                yield (name, at, how), covering


STOPS: dict[tuple[str, str, str], bool] = {}
for _stop, _covering in stops():
    STOPS[_stop] = STOPS.get(_stop, False) or _covering

MEASURED = "tune", "decided", "kill"
"""The stop with a bench at work, on the fake device. Elsewhere a cell takes what its key says: what a command writes of
what was decided, and where it goes on, is the same, since all commands have one bench, and each of its processes would
take its time to start."""

MEASURED_ON_OPENCL = pytest.param(
    "random tune", "decided", "kill", True, marks=[pytest.mark.opencl, pytest.mark.thorough]
)
"""A real device at work. The stop by itself is among `STOPS`, and a bench that is killed is `MEASURED`."""

PASSAGE = {"decided": 1, "confirming": 2, "closing": 1}
"""The second passage of `confirming` is used, so that the first decision is made before the stop."""


class Stop:
    """When a point is passed, the clock jumps beyond every budget, or Ctrl-C is pressed."""

    def __init__(self, monkeypatch, point, how):
        self.point, self.how, self.passages, self.ahead = point, how, Counter[str](), 0.0
        clock = measure.time.monotonic
        monkeypatch.setattr(measure, "time", SimpleNamespace(monotonic=lambda: clock() + self.ahead))
        for module in (measure, run):
            monkeypatch.setattr(module, "pass_point", self.reached)

    def reached(self, point):
        injected_faults.pass_point(point)
        self.passages[point] += 1
        if (point, self.passages[point]) == (self.point, PASSAGE[self.point]):
            self.ahead = 1e9
            if self.how == "Ctrl-C":
                raise KeyboardInterrupt


def run_command(name, folder, measured):
    """Run a command in a process of its own."""
    with nullcontext() if measured else nothing_measured(ALIKE):
        COMMANDS[name].run(folder, None)


def stopped(monkeypatch, name, folder, point, how, measured=True):
    """Run the command until the stop; its outcome, unless its process was killed."""
    command = COMMANDS[name]
    if how == "kill":
        env = environment(**{injected_faults.VARIABLE: f"{point}:parent:{PASSAGE[point]}:kill"})
        done = run_forked(run_command, name, folder, measured, env=env)
        assert done.returncode == -9
        return None
    with monkeypatch.context() as patched:
        Stop(patched, point, how)
        if how == "budget":
            return command.run(folder, 1e6)
        with pytest.raises(KeyboardInterrupt):
            command.run(folder, None)
        return None


@pytest.mark.parametrize(
    ("name", "point", "how", "measured"),
    [
        *(
            pytest.param(*stop, stop == MEASURED, marks=[] if covering else [pytest.mark.thorough])
            for stop, covering in STOPS.items()
        ),
        MEASURED_ON_OPENCL,
    ],
)
def test_a_stopped_run_has_written_what_it_decided_and_goes_on(monkeypatch, tmp_path, name, point, how, measured):
    if measured and COMMANDS[name].opencl:
        opencl_device()
    with nullcontext() if measured else nothing_measured(ALIKE):
        check_stopped(monkeypatch, tmp_path, name, point, how, measured)


def check_stopped(monkeypatch, tmp_path, name, point, how, measured):
    command = COMMANDS[name]
    done = stopped(monkeypatch, name, tmp_path, point, how, measured)
    count, unfinished = command.results(tmp_path)
    whole = point == "closing"
    assert count == command.total if whole else 1 <= count < command.total
    assert unfinished in (not whole, None)
    with Store.read(tmp_path / command.store / "measurements.sqlite") as store:
        state = store.runs()[-1].state
    ended = {"kill": RunState.OPEN, "Ctrl-C": RunState.INTERRUPTED}
    assert state is ended.get(how, RunState.FINISHED if whole else RunState.INTERRUPTED)
    if done and not whole:
        assert "the budget is spent" in done.look_at[0]
        assert any("the results are unfinished: " in sentence for sentence in done.look_at)

    before = rows(tmp_path / command.store)
    rest = command.run(tmp_path, None)
    after = rows(tmp_path / command.store)
    assert {key: after.get(key) for key in before} == before, "nothing is lost or changed"
    assert rest.ledger.measured == len(after) - len(before), "nothing is measured twice"
    assert command.results(tmp_path) == (command.total, None if unfinished is None else False)
    assert rest.state is RunState.FINISHED


def test_what_was_too_soon_to_write_is_written_when_the_run_is_stopped(monkeypatch, tmp_path):
    """The second decision follows the first at once, and writing may take almost none of the time."""
    monkeypatch.setattr(run, "WRITING_SHARE", 1e-9)
    monkeypatch.setitem(PASSAGE, "confirming", 3)
    stopped(monkeypatch, "tune", tmp_path, "confirming", "Ctrl-C")
    assert _logic(tmp_path) == (2, True)


class DecidesThrice(run.RunPlan):
    """Measures nothing, and counts how often its decisions are written."""

    measures, written = False, 0

    def __init__(self):
        self.target, self.policy = fake_target(), QUICK

    def carry_out(self, run_):
        for _ in range(3):
            run_.decided()

    def outputs(self, run_):
        self.written += 1
        yield Output(Path("count"), lambda path: path.write_text(f"{self.written}\n"))


def test_writing_takes_its_share_of_the_time_and_no_more(monkeypatch, tmp_path):
    """The first decision is written. The others follow at once and are written at the end."""
    monkeypatch.setattr(run, "WRITING_SHARE", 1e-9)
    assert run.carry_out(DecidesThrice(), tmp_path).plan.written == 2
    monkeypatch.setattr(run, "WRITING_SHARE", math.inf)
    assert run.carry_out(DecidesThrice(), tmp_path).plan.written == 4


def test_where_nothing_is_decided_there_is_no_logic_and_a_sentence(tmp_path):
    done = _tune(tmp_path, 1e-9)
    assert (done.state, done.logic_files, done.written) == (RunState.INTERRUPTED, [], [])
    assert "nothing is decided yet, so no results are written" in done.look_at


def test_a_full_disk_ends_the_run_with_what_was_decided_written(monkeypatch, tmp_path):
    """The store cannot take the finalists of the second size; the first one's logic stands, and the run goes on."""
    commit, count = Store.commit, Counter[str]()

    def full(self, entries):
        entries = list(entries)
        count["confirmed"] += any(entry.round.startswith("confirm/") for entry in entries)
        if count["confirmed"] > 1:
            raise UserError(self.location, "the disk is full", "make room")
        return commit(self, entries)

    with monkeypatch.context() as patched:
        patched.setattr(Store, "commit", full)
        with pytest.raises(UserError, match="the disk is full"):
            _tune(tmp_path, None)
    assert _logic(tmp_path) == (1, True)
    rest = _tune(tmp_path, None)
    assert (rest.state, _logic(tmp_path)) == (RunState.FINISHED, (3, False))
