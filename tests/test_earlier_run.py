"""Folders of runs that commit 917448c left: the same command measures nothing there, and goes on from every step."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest

from golden_files import EARLIER, FILES, STEP_ENDS, differences, restore, steady, unpacked
from golden_runs import DEVICE, invoke, portblas_outcome_in
from tuning_runs import FAKE_STEPS, rows

RUNS = ("tune", "portblas", "portblas_guided")
ENDS: dict[str, int] = json.loads(STEP_ENDS.read_text())


@pytest.fixture
def copied(tmp_path):
    """The folders as they were left, to be written to."""
    for run in RUNS:
        restore(EARLIER / run, tmp_path / run)
    shutil.copy(EARLIER / "tuning.yaml", tmp_path)
    return tmp_path


def without_anchor(keys: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """Keys and rounds of what decided something."""
    return {(key, round_) for key, round_ in keys if not round_.startswith("anchor/")}


def changed(copied: Path, name: str) -> list[str]:
    """What differs in the tables and the logic of a run from those that were left then."""
    left = {path: text for path, text in unpacked(EARLIER / name / FILES).items() if not path.startswith("results/")}
    paths = (path for part in ("tables", "logic") for path in (copied / name / part).rglob("*.*"))
    made = {str(path.relative_to(copied / name)): path.read_bytes().decode() for path in paths}
    now, then = ({path: steady(path, text, copied) for path, text in texts.items()} for texts in (made, left))
    return list(differences(name, now, then))


def tuned(folder: Path) -> int:
    """How many measurements the command made."""
    invoke(folder, "tune", folder / "tuning.yaml", "-o", folder / "tune", *DEVICE)
    return json.loads((folder / "tune.json").read_text())["document"]["measured"]


def test_the_steps_of_the_run_are_those_of_the_file():
    assert list(ENDS) == FAKE_STEPS
    assert list(ENDS.values()) == sorted(ENDS.values())


def test_the_same_command_measures_nothing_and_leaves_the_same(copied):
    before = rows(copied / "tune")
    shutil.rmtree(copied / "tune" / "tables")
    assert tuned(copied) == 0
    assert rows(copied / "tune") == before
    assert not changed(copied, "tune")


@pytest.mark.parametrize("step", ENDS)
def test_a_run_that_ended_with_a_step_goes_on_behind_it(copied, step):
    """What the steps after it had committed is measured again, and nothing else; they decide as they did."""
    folder = copied / "tune"
    before = rows(folder)
    _end_with(folder / "measurements.sqlite", step)
    kept = rows(folder)
    assert tuned(copied) - _anchored(folder, kept) == len(without_anchor(before)) - len(without_anchor(kept))
    after = rows(folder)
    assert {key: after[key] for key in kept} == kept
    assert without_anchor(after) == without_anchor(before)
    assert not changed(copied, "tune")


@pytest.mark.parametrize(("name", "guided"), [("portblas", False), ("portblas_guided", True)])
def test_tuning_with_portblas_parameters_measures_nothing_again(copied, name, guided):
    if guided:
        pytest.importorskip("sklearn", reason="the guided search needs scikit-learn")
    before = rows(copied / name)
    outcome = portblas_outcome_in(copied / name, guided)
    assert outcome.ledger.measured == 0
    assert rows(copied / name) == before
    assert not changed(copied, name)


def _end_with(store: Path, step: str) -> None:
    """Take away what was committed after a step, and the record of the run's end: it was killed there."""
    with sqlite3.connect(store) as connection:
        connection.execute("DELETE FROM measurements WHERE id > ?", (ENDS[step],))
        connection.execute("DELETE FROM steps WHERE id > ?", (list(ENDS).index(step) + 1,))
        connection.execute("DELETE FROM run_events WHERE kind = 'end'")
    connection.close()
    for folder in ("tables", "logic"):
        shutil.rmtree(store.parent / folder)


def _anchored(folder: Path, kept: dict) -> int:
    """How often the run looked at its anchor, beside what it had to measure."""
    return sum(round_.startswith("anchor/") for _, round_ in rows(folder).keys() - kept.keys())
