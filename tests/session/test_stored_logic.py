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
from tunesmith.records import UserError
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


def test_the_last_race_decides_even_against_the_first_times(tuned, tmp_path):
    with Store.read(tuned.folder / FILE_NAME) as store:
        entries = list(store.entries())
    raced = [entry for entry in entries if entry.round.startswith("confirm/")]
    problem = raced[0].problem
    slower = max(
        (entry for entry in raced if entry.problem == problem), key=lambda entry: entry.measurement.estimate.seconds
    )
    hurried = replace(
        slower.measurement,
        estimate=replace(slower.measurement.estimate, seconds=slower.measurement.estimate.seconds / 1e3),
    )
    with Store.open(tmp_path / FILE_NAME) as store:
        store.commit([entry for entry in entries if entry.round == "full" or entry.problem != problem])
        store.commit(
            [replace(slower, measurement=hurried), *(e for e in raced if e.problem == problem and e != slower)]
        )
    (made,) = logic_of_store(str(tmp_path / FILE_NAME))
    assert choices(made)[problem.sizes] == slower.solution


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
    assert len(Logic.load(Path(made["path"])).document.rows) == made["rows"]


def test_files_that_are_there_stay(tuned, tmp_path):
    text = invoke("logic", "build", tuned.folder, "-o", tmp_path / "built").stdout
    assert re.search(r"built/logic/Cij_\w+.yaml: 4 sizes, [12] solutions", text)
    shutil.rmtree(tmp_path / "built" / "logic")
    with pytest.raises(UserError, match="is there already"):
        invoke("logic", "build", tuned.folder, "-o", tmp_path / "built")
    assert not (tmp_path / "built" / "logic").exists()


def test_a_store_of_several_devices_needs_a_name(tuned, tmp_path):
    with Store.read(tuned.folder / FILE_NAME) as store:
        entries = list(store.entries())
    other = [
        replace(entry, key=f"other {entry.key}", target=replace(entry.target, name="another GPU")) for entry in entries
    ]
    with Store.open(tmp_path / FILE_NAME) as store:
        store.commit([*entries, *other])
    with pytest.raises(UserError, match=r"has times of another GPU, .*--device"):
        logic_of_store(str(tmp_path / FILE_NAME))
    (made,) = logic_of_store(str(tmp_path / FILE_NAME), "another GPU")
    assert made.document.origin.device == "another GPU"
    with pytest.raises(UserError, match="has times of another GPU, "):
        logic_of_store(str(tmp_path / FILE_NAME), "no GPU")


def test_a_store_without_times_is_a_mistake(tmp_path):
    Store.open(tmp_path / FILE_NAME).close()
    with pytest.raises(UserError, match="has no time of a tuning"):
        logic_of_store(str(tmp_path / FILE_NAME))
