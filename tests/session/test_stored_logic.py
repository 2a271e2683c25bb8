"""`tunesmith logic build`: library logic from a store alone."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import invoke, invoke_json
from tunesmith import session
from tunesmith.logic import Logic
from tunesmith.records import Configuration, Measurement, Outcome, UserError
from tunesmith.session.frame import measure
from tunesmith.session.library_logic.stored import logic_of_store, write_stored
from tunesmith.store import FILE_NAME, Store
from tuning_runs import fake_file

DEVICE = "fake:GPU:8"
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
            - Exact: [16, 512, 64]
"""
"""The two work-groups are equally fast on squares, so that the finalists of these sizes are raced."""
SCALED = Configuration({"alpha": 2.0, "beta": 0.0})


@pytest.fixture
def tuned(tmp_path):
    return session.tune(fake_file(tmp_path, FILE), tmp_path / "run", device=DEVICE)


def choices(logic):
    return {row.sizes: logic.document.solutions[row.solution].solution for row in logic.document.rows}


def test_a_store_gives_the_sizes_and_solutions_that_its_run_chose(tuned, tmp_path):
    (file,) = tuned.logic_files
    (made,) = logic_of_store(str(tuned.folder))
    assert {row.sizes for row in made.document.rows} == {row.sizes for row in Logic.load(file).document.rows}
    for sizes, solution in choices(made).items():
        row = next(row for row in Logic.load(file).document.rows if row.sizes == sizes)
        of_run = Logic.load(file).document
        assert solution in {of_run.solutions[index].solution for index in (row.solution, *row.ties)}
    write_stored([made], tmp_path / "built")
    assert choices(Logic.load(tmp_path / "built" / made.logic_path)) == choices(made)


def entries_of(tuned):
    with Store.read(tuned.folder / FILE_NAME) as store:
        return list(store.entries())


def at(entry, seconds, **changes):
    """The entry with another time."""
    estimate = replace(entry.measurement.estimate, seconds=seconds)
    return replace(entry, measurement=replace(entry.measurement, estimate=estimate, **changes.pop("of", {})), **changes)


def choice_of(tmp_path, entries, problem):
    tmp_path.mkdir(exist_ok=True)
    with Store.open(tmp_path / FILE_NAME) as store:
        for entry in entries:
            store.commit([entry])
    (made,) = logic_of_store(str(tmp_path / FILE_NAME))
    return choices(made)[problem.sizes]


@pytest.fixture
def two(tuned):
    """The full and the race's entries of a square's two solutions, by solution."""
    entries = entries_of(tuned)
    problem = next(entry.problem for entry in entries if entry.round.startswith("confirm/"))
    full = {e.solution: e for e in entries if e.problem == problem and e.round == "full"}
    raced = {e.solution: e for e in entries if e.problem == problem and e.round.startswith("confirm/")}
    assert len(full) == 2
    assert full.keys() == raced.keys()
    return full, raced


@pytest.mark.parametrize("winner", [0, 1])
def test_a_race_decides_against_first_times_and_the_last_against_earlier_ones(winner, two, tmp_path):
    full, raced = two
    solutions = list(full)
    seconds = {solution: 2.0 - (index == winner) for index, solution in enumerate(solutions)}
    entries = [at(full[s], 3.0 - seconds[s]) for s in solutions]
    entries += [at(raced[s], 3.0 - seconds[s]) for s in solutions]
    entries += [at(raced[s], seconds[s], round="confirm/later") for s in solutions]
    assert choice_of(tmp_path, entries, full[solutions[0]].problem) == solutions[winner]


def test_a_race_without_the_fastest_does_not_decide(two, tmp_path):
    full, raced = two
    fast, slow = full
    entries = [at(full[fast], 1.0), at(full[slow], 2.0), at(raced[slow], 0.5)]
    assert choice_of(tmp_path, entries, full[fast].problem) == fast


def test_a_solution_that_was_not_stopped_in_its_steps_race_counts(two, tmp_path):
    full, _ = two
    fast, slow = full
    entries = [at(full[fast], 1.0, round="race"), at(full[slow], 2.0)]
    assert choice_of(tmp_path, entries, full[fast].problem) == fast


def test_a_solution_that_was_stopped_in_its_race_does_not(two, tmp_path):
    full, _ = two
    fast, slow = full
    entries = [at(full[fast], 1.0, round="race", of={"raced": True}), at(full[slow], 2.0)]
    assert choice_of(tmp_path, entries, full[fast].problem) == slow


@pytest.mark.parametrize("again", ["crash", "slower"])
@pytest.mark.parametrize("round_", ["race", "full"])
def test_a_second_result_goes_before_the_first(round_, again, two, tmp_path):
    full, _ = two
    fast, slow = full
    second = at(full[fast], 3.0, round=f"{round_}/recheck")
    if again == "crash":
        second = replace(second, measurement=Measurement(Outcome.CRASH))
    entries = [at(full[fast], 1.0, round=round_), at(full[slow], 2.0), second]
    assert choice_of(tmp_path, entries, full[fast].problem) == slow


@pytest.mark.parametrize("others", [1, 0])
def test_a_finalist_that_failed_in_its_race_does_not_win(others, two, tmp_path):
    full, raced = two
    fast, slow = full
    failed = replace(raced[fast], measurement=Measurement(Outcome.CRASH))
    entries = [at(full[fast], 1.0), at(full[slow], 2.0), failed, *[at(raced[slow], 2.0)] * others]
    assert choice_of(tmp_path, entries, full[fast].problem) == slow


def test_a_race_under_another_driver_does_not_decide(two, tmp_path):
    """A new driver makes new keys. What was raced before it is no answer to the times since."""
    full, raced = two
    fast, slow = full
    old = [at(full[fast], 2.0), at(full[slow], 2.1), at(raced[fast], 2.2), at(raced[slow], 2.0)]
    new = [at(full[fast], 1.0, key="new fast"), at(full[slow], 1.5, key="new slow")]
    assert choice_of(tmp_path, [*old, *new], full[fast].problem) == fast


def test_a_driver_that_was_taken_back_counts_again(two, tmp_path):
    """The key of the last measurement counts, though a newer driver's came in between."""
    full, _ = two
    fast, slow = full
    old = [at(full[fast], 2.0), at(full[slow], 2.1)]
    new = [at(full[fast], 1.0, key="new fast"), at(full[slow], 1.5, key="new slow")]
    back = [at(full[fast], 3.0, round="full/recheck"), at(full[slow], 2.5, round="full/recheck")]
    assert choice_of(tmp_path, [*old, *new, *back], full[fast].problem) == slow


def test_an_unknown_kernel_and_one_with_other_parameters_are_left_out(two, tmp_path):
    full, _ = two
    fast, slow = full
    unknown = replace(full[fast], key="unknown", solution=replace(fast, kernel="NotInstalled"))
    fewer = Configuration({name: value for name, value in fast.configuration.items() if name != "WorkGroup"})
    former = replace(full[fast], key="former", solution=replace(fast, configuration=fewer))
    entries = [at(full[slow], 2.0), at(unknown, 0.1), at(former, 0.1)]
    assert choice_of(tmp_path, entries, full[fast].problem) == slow
    with pytest.raises(UserError, match="by a kernel that is installed here"):
        choice_of(tmp_path / "others", [at(unknown, 0.1)], full[fast].problem)


def test_the_scalars_of_most_problems_count(two, tmp_path):
    """One problem has more solutions, two problems have another alpha."""
    full, _ = two
    entry = next(iter(full.values()))
    scaled = [
        replace(entry, key=f"{side}", problem=replace(entry.problem, sizes=(side,) * 3, scalars=SCALED))
        for side in (8, 24)
    ]
    with Store.open(tmp_path / FILE_NAME) as store:
        store.commit([*full.values(), *scaled])
    (made,) = logic_of_store(str(tmp_path / FILE_NAME))
    assert {row.sizes for row in made.document.rows} == {(8, 8, 8), (24, 24, 24)}
    assert {problem.scalars for problem in made.table.problems} == {SCALED}


def test_a_store_in_which_nothing_ran_right_is_a_mistake(two, tmp_path):
    full, _ = two
    entry = next(iter(full.values()))
    with pytest.raises(UserError, match="ran right"):
        choice_of(tmp_path, [replace(entry, measurement=Measurement(Outcome.CRASH))], entry.problem)


def test_a_run_that_was_stopped_gives_what_it_found(tmp_path, monkeypatch):
    def stop(name):
        if name == "confirming":
            raise KeyboardInterrupt

    monkeypatch.setattr(measure, "pass_point", stop)
    with pytest.raises(KeyboardInterrupt):
        session.tune(fake_file(tmp_path, FILE), tmp_path / "run", device=DEVICE)
    assert not (tmp_path / "run" / "logic").exists()
    document = invoke_json("logic", "build", tmp_path / "run", "-o", tmp_path / "built")
    (made,) = document["logics"]
    assert made["rows"] >= 3
    document = Logic.load(Path(made["path"])).document
    assert len(document.rows) == made["rows"]
    assert "may not have ended" in document.unfinished


def test_files_that_are_there_stay(tuned, tmp_path):
    text = invoke("logic", "build", tuned.folder, "-o", tmp_path / "built").stdout
    assert re.search(r"built/logic/Cij_\w+.yaml: 4 sizes, [12] solutions", text)
    shutil.rmtree(tmp_path / "built" / "logic")
    for table in (tmp_path / "built" / "tables").rglob("*_Final.csv"):
        table.unlink()
    with pytest.raises(UserError, match="is there already"):
        invoke("logic", "build", tuned.folder, "-o", tmp_path / "built")
    assert not (tmp_path / "built" / "logic").exists()


@pytest.mark.parametrize("changed", [{"name": "another GPU"}, {"api": "CUDA"}, {"architecture": "sm_0"}])
def test_a_store_of_several_devices_needs_a_name(changed, tuned, tmp_path):
    entries = entries_of(tuned)
    target = replace(entries[0].target, **changed)
    other = [replace(entry, key=f"other {entry.key}", target=target) for entry in entries]
    with Store.open(tmp_path / FILE_NAME) as store:
        store.commit([*entries, *other])
    named = f"{target.api}:{target.name}:{target.architecture}"
    with pytest.raises(UserError, match=rf"has times of .*{named}.*--device"):
        logic_of_store(str(tmp_path / FILE_NAME))
    (made,) = logic_of_store(str(tmp_path / FILE_NAME), named)
    assert (made.document.origin.api, made.document.origin.device) == (target.api, target.name)
    with pytest.raises(UserError, match="has times of "):
        logic_of_store(str(tmp_path / FILE_NAME), "no GPU")


def test_two_types_of_one_name_are_a_mistake(tuned, tmp_path):
    """A user's own kernel that was tuned, changed and tuned again has two types of one name."""
    entries = entries_of(tuned)

    def changed(entry):
        kind = replace(entry.problem.type, fields=entry.problem.type.fields | {"UseBeta": False})
        problem, solution = replace(entry.problem, type=kind), replace(entry.solution, type=kind)
        return replace(entry, key=f"other {entry.key}", problem=problem, solution=solution)

    with Store.open(tmp_path / FILE_NAME) as store:
        store.commit([*entries, *map(changed, entries)])
    with pytest.raises(UserError, match="has 2 problem types that are called Cij_"):
        logic_of_store(str(tmp_path / FILE_NAME))


def test_a_store_without_times_is_a_mistake(tmp_path):
    Store.open(tmp_path / FILE_NAME).close()
    with pytest.raises(UserError, match="has no time of a tuning"):
        logic_of_store(str(tmp_path / FILE_NAME))
