"""Folders of runs that commit 917448c left: the same command takes no first time there again, and goes on from every
step.

Since then more is measured side by side before it decides, so that finalists may be measured there once.
"""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

from golden_files import EARLIER, FILES, STEP_ENDS, differences, restore, steady, unpacked
from golden_runs import DEVICE, invoke, portblas_outcome_in
from tunesmith.logic import Logic
from tunesmith.store.schema import LATER_COLUMNS
from tuning_runs import FAKE_STEPS, rows

RUNS = ("tune", "portblas", "portblas_guided")
ENDS: dict[str, int] = json.loads(STEP_ENDS.read_text())


@pytest.fixture
def copied(tmp_path):
    """Writable copies of the folders."""
    for run in RUNS:
        restore(EARLIER / run, tmp_path / run)
    shutil.copy(EARLIER / "tuning.yaml", tmp_path)
    return tmp_path


def first_times(keys):
    """Keys and rounds of the first times, without the anchor's and the finalists' rounds."""
    return {(key, round_) for key, round_ in keys if not round_.startswith(("anchor/", "confirm/"))}


def migrated(earlier):
    """The rows of a store of the first version as today's has them: unchanged, with empty columns that came later."""
    return {key: {**row, **dict.fromkeys(LATER_COLUMNS, "")} for key, row in earlier.items()}


def changed(copied, name):
    """The differences between the tables of a run and the tables that the earlier run left."""
    left = {path: text for path, text in unpacked(EARLIER / name / FILES).items() if is_table(path)}
    paths = [path for path in (copied / name / "tables").rglob("*.*") if is_table(str(path.relative_to(copied / name)))]
    made = {str(path.relative_to(copied / name)): path.read_bytes().decode() for path in paths}
    now, then = ({path: steady(path, text, copied) for path, text in texts.items()} for texts in (made, left))
    return list(differences(name, now, then))


def is_table(path):
    """Whether a file is a table of times. The details are left out: they name winners only since that commit."""
    return path.startswith("tables/") and not path.endswith(".details.csv")


def winners(folder):
    """The choices of each logic of a run, by file and size."""
    logics = {path.name: Logic.load(path).document for path in (folder / "logic").glob("*.yaml")}
    assert logics
    return {
        name: {row.where: logic.solutions[row.solution].solution for row in logic.rows}
        for name, logic in logics.items()
    }


def tuned(folder):
    """The number of measurements that the command made."""
    invoke(folder, "tune", folder / "tuning.yaml", "-o", folder / "tune", *DEVICE)
    return json.loads((folder / "tune.json").read_text())["document"]["measured"]


def test_the_steps_of_the_run_are_those_of_the_file():
    assert list(ENDS) == FAKE_STEPS
    assert list(ENDS.values()) == sorted(ENDS.values())


def test_the_same_command_takes_no_first_time_again_and_decides_as_it_did(copied):
    before, decided = rows(copied / "tune"), winners(copied / "tune")
    shutil.rmtree(copied / "tune" / "tables")
    tuned(copied)
    after = rows(copied / "tune")
    assert first_times(after) == first_times(before)
    assert {key: after[key] for key in before} == migrated(before)
    assert (winners(copied / "tune"), changed(copied, "tune")) == (decided, [])
    assert tuned(copied) == 0


@pytest.mark.parametrize("step", ENDS)
def test_a_run_that_ended_with_a_step_goes_on_behind_it(copied, step):
    """Only first times of later steps are measured again, and those steps decide as before."""
    folder = copied / "tune"
    before, decided = rows(folder), winners(folder)
    _end_with(folder / "measurements.sqlite", step)
    kept = rows(folder)
    tuned(copied)
    after = rows(folder)
    assert {key: after[key] for key in kept} == migrated(kept)
    assert first_times(after) == first_times(before)
    assert (winners(folder), changed(copied, "tune")) == (decided, [])


@pytest.mark.parametrize(("name", "guided"), [("portblas", False), ("portblas_guided", True)])
def test_tuning_with_portblas_parameters_takes_no_first_time_again(copied, name, guided):
    if guided:
        pytest.importorskip("sklearn", reason="the guided search needs scikit-learn")
    before, decided = rows(copied / name), winners(copied / name)
    portblas_outcome_in(copied / name, guided)
    after = rows(copied / name)
    assert first_times(after) == first_times(before)
    assert (winners(copied / name), changed(copied, name)) == (decided, [])
    assert portblas_outcome_in(copied / name, guided).ledger.measured == 0


def _end_with(store, step):
    """Remove all commits after a step, and the record of the run's end, as if the run was killed there."""
    with sqlite3.connect(store) as connection:
        connection.execute("DELETE FROM measurements WHERE id > ?", (ENDS[step],))
        connection.execute("DELETE FROM steps WHERE id > ?", (list(ENDS).index(step) + 1,))
        connection.execute("DELETE FROM run_events WHERE kind = 'end'")
    connection.close()
    for folder in ("tables", "logic"):
        shutil.rmtree(store.parent / folder)
