"""`tunesmith heuristics judge`: matrices from stores and tables, choices measured or looked up, and their scores."""

from __future__ import annotations

import csv
import json
import math
import shutil
import statistics

import pytest
from typer.testing import CliRunner

from judge_fakes import DEVICE, QUICK, SIZES, fake_mapping, seconds_of, tables, tuned, without_columns
from tunesmith import session
from tunesmith.cli.app import app
from tunesmith.kernels import KERNELS
from tunesmith.logic import details_of
from tunesmith.models.intensity.policies import POLICIES, PolicyChoice
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.models.intensity.scoring import geomean
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Outcome, Problem, UserError
from tunesmith.session.heuristics.entrants import entrants
from tunesmith.session.heuristics.judge import JudgeTask, judge_heuristics
from tunesmith.session.heuristics.matrices import MatrixTask, read_matrices
from tunesmith.store import FILE_NAME, RunState, Store
from tuning_runs import fake_file

__all__ = ["fake_mapping"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tuned(tmp_path_factory.mktemp("judged"))


def judge(run, folder, device=DEVICE, **more):
    budget = more.pop("budget_minutes", None)
    task = JudgeTask(MatrixTask((run,), **more), kernels=("FakeGemm",))  # type: ignore[arg-type]
    return judge_heuristics(task, folder, device=device, policy=QUICK, budget_minutes=budget)  # type: ignore[arg-type]


def best_by_halves(times):
    """The best time of solutions, from two halves of the samples: one half finds the fastest, the other gives its
    time."""
    (_, second), (first, _) = (min(times, key=lambda pair, half=half: pair[half]) for half in (0, 1))
    return math.sqrt(first * second)


@pytest.mark.usefixtures("fake_mapping")
def test_choices_are_measured_beside_the_best_known(run, tmp_path):
    """Every efficiency follows from the confirming rounds in the judge's store; the same call again measures
    nothing."""
    done = judge(run, tmp_path / "out")
    (judgement,) = done.plan.judgements
    assert judgement.is_measured
    assert {problem.sizes for problem in judgement.matrix.problems} == set(SIZES)
    times: dict[tuple[int, ...], dict[object, float]] = {}
    halves: dict[tuple[int, ...], dict[object, tuple[float, ...]]] = {}
    with Store.read(tmp_path / "out" / FILE_NAME) as store:
        for entry in store.entries(round_prefix="confirm/", outcomes=[Outcome.OK]):
            own = tuple(statistics.median(entry.measurement.samples[half::2]) for half in (0, 1))
            times.setdefault(entry.problem.sizes, {})[entry.solution.configuration] = math.sqrt(math.prod(own))
            halves.setdefault(entry.problem.sizes, {})[entry.solution.configuration] = own
    best = {sizes: best_by_halves(list(known.values())) for sizes, known in halves.items()}
    for verdict in judgement.verdicts:
        assert verdict.score
        assert verdict.score.unmeasured == 0
        choices = [
            verdict.entrant.policy.choose(problem, judgement.subject.target, KERNELS["FakeGemm"])
            for problem in judgement.matrix.problems
        ]
        expected = [
            best[problem.sizes] / times[problem.sizes][choice.configuration]
            for problem, choice in zip(judgement.matrix.problems, choices, strict=True)
            if isinstance(choice, PolicyChoice)
        ]
        assert verdict.score.efficiencies.tolist() == pytest.approx(expected)
    rows = list(csv.DictReader((tmp_path / "out" / "judged.csv").open()))
    of_latency = [float(row["efficiency"]) for row in rows if row["policy"] == "latency FakeGemm"]
    latency = next(verdict for verdict in judgement.verdicts if verdict.entrant.name == "latency")
    assert latency.score
    # The table has six digits.
    assert of_latency == pytest.approx(latency.score.efficiencies.tolist(), rel=1e-5)
    assert latency.top[1] == pytest.approx(latency.score.geomean)
    for count, found in latency.top.items():
        efficiencies = []
        for problem, ranked in zip(judgement.matrix.problems, judgement.guesses[latency.entrant], strict=True):
            known = halves[problem.sizes]
            first = dict.fromkeys(guess.configuration for guess in ranked[:count])
            efficiencies.append(best[problem.sizes] / best_by_halves([known[config] for config in first]))
        assert found == pytest.approx(statistics.geometric_mean(efficiencies))
    assert len(set(latency.top.values())) > 1, "more guesses are other times"
    again = judge(run, tmp_path / "out")
    assert (again.ledger.measured, again.ledger.reused) == (0, done.ledger.measured - 2), "the anchor was visited twice"


@pytest.mark.usefixtures("fake_mapping")
def test_a_spent_budget_keeps_what_is_measured(run, tmp_path):
    stopped = judge(run, tmp_path / "out", budget_minutes=1e-9)
    assert stopped.state is RunState.INTERRUPTED
    assert stopped.plan.unfinished == "0 of 4 products are measured"
    done = judge(run, tmp_path / "out")
    assert done.state is RunState.FINISHED
    assert not done.plan.unfinished


@pytest.mark.usefixtures("fake_mapping")
def test_without_a_device_choices_are_looked_up(run, tmp_path):
    """Nothing is written. A choice without a time takes its neighbour's, and the share of such choices is reported."""
    done = judge(run, tmp_path / "out", device="none")
    assert not (tmp_path / "out").exists()
    (judgement,) = done.plan.judgements
    assert not judgement.is_measured
    for verdict in judgement.verdicts:
        score = verdict.score
        assert score
        assert score.geomean == geomean(score.efficiencies)
        chosen = [ranked[0] for ranked in judgement.guesses[verdict.entrant]]
        known = sum(solution in judgement.matrix.columns for solution in chosen)
        assert score.unmeasured == 1 - known / len(chosen)
    assert any(verdict.score and verdict.score.unmeasured for verdict in judgement.verdicts)


def test_the_ablation_has_none_each_and_each_pair():
    """The published policy itself has the cap alone."""
    steps = {entrant.name: entrant.policy.steps for entrant in entrants()}
    switched = {"subgroup-favor", "tile-favor", "workgroup-cap"}
    found = [steps[name] & switched for name in steps if name.startswith("published") and "+ boost" not in name]
    expected = [set(), *({step} for step in switched), *(switched - {step} for step in switched)]
    assert all(steps_of_policy in found for steps_of_policy in expected)
    assert steps["published-intensity"] & switched == {"workgroup-cap"}
    assert set(POLICIES) <= set(steps)


def test_further_guesses_begin_with_the_choice():
    problem, target = Problem(gemm_type("b"), (4096, 1024, 4096)), known_target("sm_90")
    for kernel in (KERNELS["CudaWgmmaGemm"], KERNELS["TritonGemm"]):
        ranked = POLICIES["latency"].ranked(problem, target, kernel, 5)
        first = POLICIES["latency"].choose(problem, target, kernel)
        assert isinstance(first, PolicyChoice)
        assert ranked[0].configuration == first.configuration
        assert len({choice.configuration for choice in ranked}) == 5
        assert all(not list(kernel.rejections(choice.configuration, problem.type, target)) for choice in ranked)
    assert len(POLICIES["trip-count"].ranked(problem, target, KERNELS["TritonGemm"], 5)) == 1


@pytest.fixture
def moved(run, tmp_path):
    """The table of a final with its details, and nothing else beside it."""
    (table,) = tables(run)
    for path in (table, details_of(table)):
        shutil.copy(path, tmp_path / path.name)
    return iter([tmp_path / table.name])


def test_a_table_has_the_times_of_its_store(run, moved):
    table = next(moved)
    of_table, of_store = seconds_of(table), seconds_of(run / FILE_NAME)
    assert len(of_table) == len(SIZES) * 4
    assert of_table.keys() == of_store.keys()
    assert seconds_of(run) == of_store
    assert of_table == pytest.approx(of_store, rel=0.2), "the fake device's noise between rounds is far below that"


def test_an_older_table_needs_logic_or_a_store_beside_it(run, moved):
    table = next(moved)
    whole = seconds_of(table)
    without_columns(table)
    with pytest.raises(UserError, match=r"no logic and no store lie beside it; put the run's measurements\.sqlite"):
        read_matrices(MatrixTask((table,)))
    shutil.copytree(run / "logic", table.parent / "logic")
    read = read_matrices(MatrixTask((table,)))
    (subject,) = read.subjects
    named = [solution for solution in subject.matrix.solutions if solution.kernel == "FakeGemm"]
    assert named
    assert all(f"FakeGemm {solution.configuration.to_json()}" in {key for _, key in whole} for solution in named)
    assert bool(read.notes) == (len(named) < 4)
    assert len(subject.matrix.solutions) == 4, "what no logic names still counts as the best known"
    shutil.rmtree(table.parent / "logic")
    shutil.copy(run / FILE_NAME, table.parent)
    assert seconds_of(table).keys() == whole.keys()


def test_a_list_names_families_and_another_matrix_leaves_out(run, tmp_path, moved):
    """The list is row-major: M and N change places."""
    sizes = tmp_path / "list.csv"
    sizes.write_text("family,m,n,k\none,64,128,32\none,64,64,64\nother,96,96,64\nmissing,7,7,7\n")
    read = read_matrices(MatrixTask((run,), (sizes,)))
    (subject,) = read.subjects
    found = dict(zip(subject.matrix.problems, subject.matrix.families, strict=True))
    assert {problem.sizes: family for problem, family in found.items()} == {
        (128, 64, 32): "one",
        (64, 64, 64): "one",
        (96, 96, 64): "other",
    }
    assert read.notes == (f"1 of 4 products of {sizes} are in no matrix",)
    with pytest.raises(UserError, match="no product"):
        read_matrices(MatrixTask((run,), without=(next(moved),)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: is not there"),
        (["RUN", "--policy", "mine"], "--policy: there is no 'mine'"),
        (["RUN", "--kernel", "mine"], "--kernel: no policy maps tiles to 'mine'"),
        (["RUN", "--device", "fake:CPU:8"], "--device: fake CPU is not the device of a matrix, which is fake GPU"),
        (["RUN", "--sizes", "nowhere.csv"], "nowhere.csv"),
        (["RUN", "--without", "RUN"], "no product on which 2 configurations ran"),
    ],
)
def test_what_means_nothing_is_told(run, tmp_path, arguments, message):
    words = [str(run) if word == "RUN" else word for word in arguments]
    found = CliRunner().invoke(app, ["heuristics", "judge", *words, "-o", str(tmp_path / "out")])
    assert isinstance(found.exception, UserError)
    assert message in str(found.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("fake_mapping")
def test_a_fitted_heuristic_is_one_of_the_judged(run, tmp_path, monkeypatch):
    monkeypatch.setattr("tunesmith.session.heuristics.entrants.fitted_policy", lambda path: POLICIES["trip-count"])
    words = ["--kernel", "FakeGemm", "--policy", "trip-count", "--heuristic", "mine.yaml", "--device", "none"]
    found = CliRunner().invoke(app, ["heuristics", "judge", str(run), *words, "--json"], catch_exceptions=False)
    first, second = json.loads(found.stdout)["judgements"][0]["policies"]
    assert (first["policy"], second["policy"]) == ("trip-count", "fitted: mine.yaml")
    assert first["score"] == second["score"]


@pytest.mark.usefixtures("fake_mapping")
def test_the_table_has_a_row_for_every_policy(run):
    words = ["heuristics", "judge", str(run), "--kernel", "FakeGemm", "--device", "none"]
    text = CliRunner().invoke(app, words, catch_exceptions=False).stdout
    assert "float32 on fake GPU: 4 products" in text
    rows = [line for line in text.splitlines() if "FakeGemm" in line and " - " in line]
    assert len(rows) == len(entrants())
    assert "choices were looked up" in text


ON_A_CPU = """
GlobalParameters: {CompileProcesses: 1, ConfirmBlocks: 6, WarmUpSeconds: 0.001, SamplingSeconds: 0.01, Noise: 0.5}
BenchmarkProblems:
  - - {OperationType: GEMM, DataType: s, TransposeB: False, UseBeta: False}
    - InitialSolutionParameters: [{LocalMemory: [False]}]
      ForkParameters:
        - ThreadTile: [[16, 4], [16, 8]]
      BenchmarkFinalParameters:
        - ProblemSizes: [{Exact: [48, 32, 40]}, {Exact: [33, 20, 17]}]
"""


def test_on_a_cpu_choices_are_compiled_checked_and_measured(tmp_path):
    """The same code as on a GPU, with a list, two families and a folder."""
    session.tune(fake_file(tmp_path, ON_A_CPU), tmp_path / "run", device="OpenCL:0:0")
    sizes = tmp_path / "list.csv"
    sizes.write_text("family,m,n,k\nlayer,32,48,40\nother,20,33,17\n")
    task = JudgeTask(
        MatrixTask((tmp_path / "run",), (sizes,)), ("trip-count",), kernels=("RegisterGemm", "PortBlasGemm")
    )
    done = judge_heuristics(task, tmp_path / "out", device="OpenCL:0:0", policy=QUICK)
    (judgement,) = done.plan.judgements
    assert judgement.is_measured
    assert set(judgement.matrix.families) == {"layer", "other"}
    assert [(verdict.entrant.name, verdict.entrant.kernel) for verdict in judgement.verdicts] == [
        ("trip-count", kernel) for kernel in ("RegisterGemm", "PortBlasGemm")
    ]
    assert all(verdict.score and not verdict.score.unanswered for verdict in judgement.verdicts)
    assert not done.failed
