"""A tuning run from a file to CSV and logic, on the fake device: measurements, files and events."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from contextlib import nullcontext
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from golden_bench import nothing_measured
from tunesmith import session
from tunesmith.bench import Policy
from tunesmith.logic import Logic, read_csv
from tunesmith.problems import OPERATIONS
from tunesmith.protocol import GlobalParameters
from tunesmith.records import Outcome, UserError
from tunesmith.report.tables import plan as report_plan
from tunesmith.session.frame import events
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.record import RunOutcome as Done
from tunesmith.store import RunState, Store
from tuning_runs import FAKE, FAKE_STEPS, fake_file, rows

GPU = "fake:GPU:8"

Whole = tuple[Done[session.TuningPlan], list[events.Event]]

QUICK = "GlobalParameters: {CompileProcesses: 1, ConfirmBlocks: 7, WarmUpSeconds: 0.01, SamplingSeconds: 0.02}"


def one_step(choices, sizes="- Exact: [96, 96, 64]", before="", more=""):
    """A file with one step over `choices` and a final."""
    return f"""
{QUICK[:-1]}{more}}}
BenchmarkProblems:
  - - DataType: s
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      BenchmarkCommonParameters:
        - ProblemSizes:
            - Exact: [96, 96, 64]
        - {choices}
{before}
      BenchmarkFinalParameters:
        - ProblemSizes:
            {sizes}
"""


def tune(text, folder, **options):
    folder.mkdir(exist_ok=True)
    return session.tune(fake_file(folder, text), folder / "run", device=GPU, **options)


@pytest.fixture
def measured():
    """The test's own runs are measured."""


@pytest.fixture(autouse=True)
def quick(request):
    """The runs of a test that does not ask to have them `measured` take what a cell's key says. Those that tests share
    (`whole` and `troubled`) are measured once."""
    with nullcontext() if "measured" in request.fixturenames else nothing_measured():
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    observed: list[events.Event] = []
    return tune(FAKE, tmp_path_factory.mktemp("whole"), observe=observed.append), observed


def final_csv(done):
    """The final's table of the only size group."""
    (path,) = (path for path in done.written if path.suffix == ".csv")
    return path


def rounds(folder):
    return Counter(name for _, name in rows(folder))


def configurations(folder):
    with Store.open(folder / "measurements.sqlite") as store:
        return {(entry.key, entry.round): dict(entry.solution.configuration) for entry in store.entries()}


def test_every_phase_is_measured_and_told_by_its_name(
    whole,
):
    done, observed = whole
    ended = [event.result.name for event in observed if isinstance(event, events.StepEnded)]
    assert ended == FAKE_STEPS
    batches = {event.purpose for event in observed if isinstance(event, events.BatchBegan)}
    assert batches == {"01_CM_WorkGroup", "03_BF_VectorWidth", "05_BJ_LoopUnroll", "06_Final"}
    assert (done.state, done.look_at, done.failed) == (RunState.FINISHED, [], Counter())


def test_the_anchor_is_measured_before_and_after(whole):
    done, observed = whole
    anchors = [key for key in rows(done.folder) if key[1].startswith("anchor")]
    assert [name for _, name in anchors] == ["anchor/0", "anchor/1"]
    assert len({key for key, _ in anchors}) == 1, "it is one and the same configuration"
    assert done.drift is not None
    assert (done.drift.ratio, done.drift.alarm) == (1.0, False)
    assert [event.alarm for event in observed if isinstance(event, events.DriftMeasured)] == [False]


def test_the_csv_holds_the_measured_times_of_every_survivor(whole):
    done, _ = whole
    (group,) = done.plan.groups
    path = final_csv(done)
    sheet = read_csv(path)
    assert [dict(sizes) for sizes in sheet.sizes] == [{"M": 32, "N": 32, "K": 32}, {"M": 128, "N": 64, "K": 32}]
    operation = OPERATIONS["GEMM"]
    assert sheet.work == tuple(operation.flops(problem) for problem in group.table.problems)
    with Store.open(done.folder / "measurements.sqlite") as store:
        found = {
            (entry.problem.sizes, entry.solution): entry.measurement
            for entry in store.entries()
            if not entry.measurement.raced and entry.round in ("race", "full")
        }
    details = list(csv.DictReader(path.with_suffix(".details.csv").open()))
    for index, problem in enumerate(group.table.problems):
        for solution, name in zip(group.table.solutions, sheet.names, strict=True):
            estimate = found[problem.sizes, solution].estimate
            assert estimate is not None
            assert sheet.rates[index, name] == pytest.approx(sheet.work[index] / estimate.seconds * 1e-9)
            (row,) = (
                row for row in details if row["Solution"] == name and row["M"] == str(problem.sizes[0])
            )  # the two sizes differ in M
            assert (row["Outcome"], int(row["Samples"])) == ("ok", estimate.count)
            assert [float(row[key]) for key in ("Seconds", "Low", "High")] == [
                estimate.seconds,
                estimate.low,
                estimate.high,
            ]


def test_there_is_a_csv_for_every_step_that_measured(whole):
    done, _ = whole
    names = {path.name for path in final_csv(done).parent.glob("*.csv") if "details" not in path.name}
    assert names == {"01_CM_WorkGroup.csv", "03_BF_VectorWidth.csv", "05_BJ_LoopUnroll.csv", "06_Final.csv"}


def test_the_logic_names_the_protocols_winners(whole):
    done, _ = whole
    (path,) = done.logic_files
    logic = Logic.load(path)
    group = done.plan.groups[0]
    for problem, decision in group.result.decisions.items():
        assert logic.choose(problem.sizes).solution == group.measure.oracle.solution(decision.winner)


@pytest.mark.usefixtures("measured")
def test_a_value_added_to_a_list_costs_what_is_new_and_nothing_else(tmp_path):
    tune(one_step("VectorWidth: [1, 4]"), tmp_path)
    before = configurations(tmp_path / "run")
    done = tune(one_step("VectorWidth: [1, 2, 4]"), tmp_path)
    after = configurations(tmp_path / "run")
    assert before.items() <= after.items()
    new = {key: config for key, config in after.items() if key not in before}
    own = {key for key in new if not key[1].startswith(("anchor", "confirm"))}
    assert done.ledger.measured == len(new)
    assert {new[key]["VectorWidth"] for key in own} == {2}
    rounds = {name.split("/")[0] if name.startswith("confirm") else name for _, name in new}
    assert rounds == {"race", "confirm", "anchor/1"}, "the series of the anchor goes on"


def test_lineages_that_are_one_solution_are_measured_once(tmp_path):
    """EdgeType means nothing to this family, so both lineages try the same three."""
    forked = """
      ForkParameters:
        - EdgeType: [Branch, ShiftPtr]
      BenchmarkForkParameters:
        - LoopUnroll: [4, 8, 16]
"""
    done = tune(one_step("VectorWidth: [2]", before=forked), tmp_path)
    tried = rounds(tmp_path / "run")
    assert tried["race"] == 3
    assert not any("recheck" in name for name in tried)
    assert done.ledger.measured == tried.total()


@pytest.mark.usefixtures("measured")
def test_a_run_that_goes_on_races_against_what_is_known(tmp_path):
    """The slow candidate of a step is stopped early, even if the fast one was measured by an earlier run."""
    text = one_step("ThreadTile: [[2, 2], [8, 8]]")
    assert tune(text, tmp_path, budget_minutes=1e-9).ledger.measured == 1
    tune(text, tmp_path)
    raced = {key: row["raced"] for key, row in rows(tmp_path / "run").items() if key[1] == "race"}
    assert list(raced.values()) == [0, 1]


def test_a_budget_stops_a_run_and_the_same_call_goes_on(tmp_path):
    stopped = tune(FAKE, tmp_path, budget_minutes=1e-9)
    assert stopped.state is RunState.INTERRUPTED
    assert "the budget is spent" in stopped.look_at[0]
    assert not stopped.logic_files
    before = rows(tmp_path / "run")
    assert len(before) == stopped.ledger.measured == 1
    done = tune(FAKE, tmp_path)
    after = rows(tmp_path / "run")
    assert done.state is RunState.FINISHED
    assert before.items() <= after.items()
    assert len(after) == 1 + done.ledger.measured
    with Store.open(tmp_path / "run" / "measurements.sqlite") as store:
        assert [run.state for run in store.runs()] == [RunState.INTERRUPTED, RunState.FINISHED]


FAULTS = {
    "wrong value": (Outcome.WRONG_RESULT, "wrong value"),
    "segfault": (Outcome.CRASH, "SIGSEGV"),
    "compile error": (Outcome.COMPILE_ERROR, "compile error"),
}


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """Lineages that fail in the final, each in its way, one that is illegal, and one that is sound."""
    lineages = [("none", "[8, 8, 1]"), ("none", "[64, 32, 1]"), *((fault, "[8, 8, 1]") for fault in FAULTS)]
    members = ", ".join(f"{{FakeFault: {fault}, WorkGroup: {group}}}" for fault, group in lineages)
    forked = f"      ForkParameters:\n        - Groups: [[{members}]]"
    sizes = "- Range: [[32, 32, 64], 0, 0]"
    return tune(one_step("VectorWidth: [2, 4]", sizes, forked), tmp_path_factory.mktemp("troubled"))


def test_what_fails_is_counted_and_shown_and_the_rest_goes_on(troubled):
    assert troubled.state is RunState.FINISHED
    assert troubled.failed == {f"{outcome.value}: {reason}": 2 for outcome, reason in FAULTS.values()}
    sentences = " ".join(troubled.look_at)
    assert all(f"{reason} (2)" in sentences for reason in troubled.failed)
    assert "a lineage was dropped in 03_Final: work-group size: 2048 work-items" in sentences
    found = session.summarise(troubled.folder)
    assert {(failure.outcome, failure.reason) for failure in found.failures} == set(FAULTS.values())
    final = found.steps[-1]
    assert final.rejected == {"work-group size": 1}
    (dropped,) = final.dropped
    assert dropped.endswith("FakeFault=none WorkGroup=64x32x1: work-group size: 2048 work-items, at most 1024")
    assert final.failed == troubled.failed


def test_a_cell_that_did_not_run_is_empty_with_its_reason_beside_it(troubled):
    path = final_csv(troubled)
    sheet = read_csv(path)
    (sound,) = (name for name in sheet.names if (0, name) in sheet.rates)
    assert set(sheet.rates) == {(0, sound), (1, sound)}
    cells = list(csv.DictReader(path.with_suffix(".details.csv").open()))
    assert len(cells) == 8, "the illegal lineage has no column"
    for cell in cells:
        ran = cell["Solution"] == sound
        assert (cell["Outcome"] == "ok") == bool(cell["Seconds"]) == bool(cell["GFlops"]) == ran
    assert Counter((Outcome(cell["Outcome"]), cell["Reason"]) for cell in cells) == {
        (Outcome.OK, ""): 2,
        **dict.fromkeys(FAULTS.values(), 2),
    }


@pytest.mark.usefixtures("measured")
def test_where_nothing_runs_there_is_no_logic_and_every_size_is_named(tmp_path):
    done = tune(one_step("FakeFault: [segfault, wrong value]"), tmp_path)
    assert (done.state, done.logic_files, done.written) == (RunState.FINISHED, [], [])
    assert "a lineage was dropped in 01_CM_FakeFault: nothing ran" in done.look_at[0]
    assert "nothing ran right on 1 sizes: 96x96x64" in done.look_at[1]
    assert session.summarise(done.folder).finals == ()


def test_a_size_limit_clamps_and_drops_the_repeats(tmp_path):
    done = tune(one_step("VectorWidth: [2]", sizes="- Range: [[32, 32, 128], 0, 0]"), tmp_path, max_size=64)
    assert [problem.sizes for problem in done.plan.groups[0].table.problems] == [(32, 32, 32), (64, 64, 64)]


def test_size_groups_of_one_type_make_one_logic(tmp_path):
    group = """
    - InitialSolutionParameters:
        - KernelLanguage: [fake]
      BenchmarkFinalParameters:
        - ProblemSizes:
            - Exact: [{0}, {0}, {0}]"""
    text = f"{QUICK}\nBenchmarkProblems:\n  - - DataType: s{group.format(32)}{group.format(64)}\n"
    done = tune(text + "LibraryLogic: {ScheduleName: vega10}\n", tmp_path)
    (path,) = done.logic_files
    logic = Logic.load(path)
    assert path == done.folder / "logic" / "vega10_Cij_Aik_Bjk_SB.yaml"
    assert [row.sizes for row in logic.document.rows] == [(32, 32, 32), (64, 64, 64)]
    tables = [path.parent.name for path in done.written if path.suffix == ".csv"]
    assert tables == ["Cij_Aik_Bjk_SB_00", "Cij_Aik_Bjk_SB_01"]


def test_a_size_tuned_with_two_scalars_stands_once_in_the_logic(tmp_path):
    """A logic has rows by size, without alpha and beta; two rows for one size would not load."""
    text = fake_file(tmp_path).read_text()
    first = text[text.index("  - ") :]
    again = first.replace("DataType: s", "DataType: s\n      Alpha: 2.0")
    assert again != first
    path = tmp_path / "twice.yaml"
    path.write_text(text[: text.index("  - ")] + first + again)
    outcome = session.tune(path, tmp_path / "out", device=GPU)
    path, *others = outcome.logic_files
    logic = Logic.load(path)
    assert not others
    rows = [row.sizes for row in logic.document.rows]
    assert len(rows) == len(set(rows)) > 0


def test_a_plan_is_kept_by_the_run(whole, tmp_path):
    """What the forecast counts as enqueues is what the steps ask for."""
    made = session.plan(fake_file(tmp_path), device=GPU)
    cells = [event.result.cells for event in whole[1] if isinstance(event, events.StepEnded)]
    assert [step.enqueues for step in made.groups[0].forecast.after] == cells
    assert made.seconds is not None
    assert made.seconds > 0


THOUSAND = list(range(1, 1001))
LARGE = one_step(
    f"{{LoopUnroll: {THOUSAND}, GlobalSplitU: {THOUSAND}, FakeDrift: {THOUSAND}}}",
    more=", SearchStrategy: random, SearchTrials: 6",
)
"""A step of 10^9 combinations, of which six are measured."""


def test_a_step_of_a_thousand_million_combinations_is_planned_and_tuned_and_gone_on_with(tmp_path, monkeypatch):
    questions = Counter[str]()
    answer = ConfigurationOracle._rejections

    def counted(judge, config):
        questions["asked"] += 1
        return answer(judge, config)

    monkeypatch.setattr(ConfigurationOracle, "_rejections", counted)
    made = session.plan(fake_file(tmp_path, LARGE), device=GPU)
    step, _ = made.groups[0].forecast.after
    assert (step.choices, step.candidates, step.is_estimated) == (10**9, 6, True)
    done, again = (tune(LARGE, tmp_path) for _ in range(2))
    assert questions["asked"] < 20_000
    assert done.plan.groups[0].result.steps[0].candidates == 6
    assert (again.ledger.measured, done.state, again.state) == (0, RunState.FINISHED, RunState.FINISHED)
    assert again.plan.groups[0].result == done.plan.groups[0].result
    printed = Console(file=StringIO(), width=120)
    printed.print(report_plan(made))
    assert re.search(r"01_CM\S* +1 +1000000000 +6 +1 +6 +~6 +1 ", printed.file.getvalue())
    assert re.search(r"^7 enqueues, ~7 after rejections", printed.file.getvalue(), re.MULTILINE)


@pytest.mark.parametrize("strategy", ["random", "surrogate"])
def test_a_run_that_samples_measures_a_part_and_the_same_one_again(tmp_path, strategy):
    varied = "{LoopUnroll: [8, 16, 24, 32], VectorWidth: [1, 2, 4], WorkGroup: [[8, 8, 1], [16, 8, 1]]}"
    text = one_step(varied, more=f", SearchStrategy: {strategy}, SearchTrials: 5")
    done, again = (tune(text, tmp_path) for _ in range(2))
    assert [step.candidates for step in done.plan.groups[0].result.steps] == [5, 1]
    assert again.ledger.measured == 0
    assert again.plan.groups[0].result == done.plan.groups[0].result


def test_the_files_settings_are_the_benchs_policy():
    """`GlobalParameters` hands its fields over by name."""
    policy = GlobalParameters(**dict.fromkeys(GlobalParameters().__dataclass_fields__, 1)).policy()  # type: ignore[arg-type]
    assert set(policy) == set(Policy.__dataclass_fields__)


def test_a_folder_without_a_run_and_a_file_that_is_not_there_are_the_users(tmp_path):
    with pytest.raises(UserError, match=r"no measurements\.sqlite in it"):
        session.summarise(tmp_path)
    with pytest.raises(UserError, match="no such file"):
        session.tune(tmp_path / "none.yaml", tmp_path)


def test_the_fake_device_is_not_offered_to_who_does_not_ask_for_it(tmp_path):
    with pytest.raises(UserError) as error:
        session.plan(fake_file(tmp_path), device="OpenCL")
    assert str(error.value).endswith("KernelLanguage cannot be fake; give one of OpenCL, CUDA, Triton, BLAS")
    with pytest.raises(UserError, match=r"fake\.yaml:\d+: .*FakeNoise"):
        session.plan(fake_file(tmp_path, FAKE.replace("VectorWidth", "FakeNoise").replace("[fake]", "[OpenCL]")))


def test_a_run_remembers_what_was_asked(whole):
    found = session.summarise(whole[0].folder)
    assert Path(found.run.start.tuning_file).name == "fake.yaml"
    assert (found.run.start.device, found.run.start.selector, found.runs) == ("fake GPU", GPU, 1)
    assert found.cost == whole[0].ledger.cost
    winners = {json.dumps(dict(w.chosen)) for step in found.steps for w in step.winners if w.chosen}
    assert winners, "every step that chose says what"
