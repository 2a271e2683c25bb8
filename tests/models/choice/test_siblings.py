"""Times of a sibling teach what a device has not measured, by way of the products that both measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import choice_machine as machine
from few_trees import few_trees
from tunesmith.kernels import VENDOR
from tunesmith.models.choice.fit import growing
from tunesmith.models.choice.fit import siblings as siblings_module
from tunesmith.models.choice.fit.cells import ChoiceFeatures, joined, time_cells
from tunesmith.models.choice.fit.fitting import ChoiceLesson, fit_choice
from tunesmith.models.choice.fit.siblings import FewSharedError, Sibling, SiblingCells, with_siblings
from tunesmith.models.choice.model_file import dump_choice_model, parse_choice_model
from tunesmith.models.intensity.scoring import TimeMatrix
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, LibraryPlan

pytest.importorskip("sklearn.ensemble")

MEASURED = 15
"""Products of each family that both devices measure."""
PLAN = LibraryPlan(66, 24, 2, 0, 3, 35, 4, 1024, 0.5)


@pytest.fixture(scope="module", autouse=True)
def quick_fits():
    with few_trees(times=60), pytest.MonkeyPatch.context() as patch:
        patch.setitem(siblings_module.FOREST, "n_estimators", 40)
        yield


def slower(problem, solution):
    """How much longer the sibling takes: it has a slow memory, and its library suffers more."""
    gemm = Gemm.of(problem)
    return (1.5 if min(gemm.m, gemm.n) < 256 else 1.1) * (1.2 if solution.kernel == VENDOR else 1.0)


def on_sibling(matrix):
    factors = [[slower(problem, solution) for solution in matrix.solutions] for problem in matrix.problems]
    return replace(matrix, seconds=matrix.seconds * np.array(factors))


def rows_of(matrix, rows):
    return TimeMatrix(
        tuple(matrix.problems[row] for row in rows),
        tuple(matrix.families[row] for row in rows),
        matrix.solutions,
        matrix.seconds[rows],
    )


@pytest.fixture(scope="module")
def whole():
    """The times of this device at all products, of which it has measured the first of each family."""
    return machine.matrix(60)


@pytest.fixture(scope="module")
def here(whole):
    return rows_of(whole, [row for row in range(len(whole.problems)) if row % 60 < MEASURED])


@pytest.fixture(scope="module")
def sibling(whole):
    # A store keeps the scalars of a problem, a table does not.
    problems = tuple(replace(problem, scalars=Configuration({"alpha": 1.0})) for problem in whole.problems)
    return Sibling("sibling", machine.TARGET, replace(on_sibling(whole), problems=problems), {})


@pytest.fixture(scope="module")
def lesson(here, sibling):
    return ChoiceLesson.of(here, machine.TARGET, (sibling,))


def test_what_the_sibling_alone_measured_becomes_times_of_this_device(whole, lesson):
    taught = with_siblings(lesson.cells, lesson.siblings, 0)
    count = len(lesson.cells.logs)
    np.testing.assert_array_equal(taught.logs[:count], lesson.cells.logs)
    rows = np.unique(taught.pairs.row[count:]) - len(lesson.candidates.matrix.problems)
    assert [row % 60 >= MEASURED for row in rows] == [True] * 4 * (60 - MEASURED)
    truth = time_cells(whole, machine.TARGET, ChoiceFeatures(lesson.candidates.matrix.solutions, machine.TARGET))
    translated = taught.times[len(lesson.candidates.matrix.problems) :]
    errors = (translated - truth.times)[rows]
    sibling_is_off = (lesson.siblings[0].cells.times - truth.times)[rows]
    assert np.nanmedian(np.abs(errors)) < 0.03
    assert np.nanmedian(np.abs(errors)) < np.nanmedian(np.abs(sibling_is_off)) / 5


def test_trees_learn_from_the_sibling(here, lesson):
    others = machine.matrix(30, seed=1)
    truth = time_cells(others, machine.TARGET, ChoiceFeatures(here.solutions, machine.TARGET))

    def error(cells):
        times = growing.grown(cells, 0).times
        return np.median(np.abs(times.predict(truth.pairs.features) - truth.logs))

    assert error(with_siblings(lesson.cells, lesson.siblings, 0)) < 0.8 * error(lesson.cells)


@pytest.fixture
def tiny_trees(monkeypatch):
    for settings in (growing.TIMES, growing.DOUBTS):
        monkeypatch.setitem(settings, "max_iter", 5)


def test_a_model_is_taught_by_the_sibling_and_says_so(here, sibling, lesson, tiny_trees):
    made = ("a",), ("0", "2026-01-02")
    alone = fit_choice(here, machine.TARGET, "bfloat16", *made)
    taught = fit_choice(here, machine.TARGET, "bfloat16", *made, siblings=(sibling,))
    assert (alone.model.origin.siblings, alone.model.origin.translated) == ((), 0)
    assert (taught.model.origin.siblings, taught.model.origin.translated) == (("sibling",), 4 * (60 - MEASURED))
    assert taught.model.origin.products == alone.model.origin.products == len(here.problems)
    assert len(taught.efficiencies) == len(here.problems), "the scores are of this device's products alone"
    expected = growing.grown(with_siblings(lesson.cells, lesson.siblings, 0), 0).times
    np.testing.assert_array_equal(taught.model.times.value, expected.value)
    text = dump_choice_model(taught.model)
    assert parse_choice_model(text, "a").origin == taught.model.origin
    assert "translated" not in dump_choice_model(alone.model)


def test_a_family_that_is_held_out_is_also_left_out_of_the_sibling(here, sibling, lesson, tiny_trees):
    held_out = lesson.held_out(0).families
    few = np.array(sibling.matrix.families) == "few"
    seconds = np.where(few[:, None], 3 * sibling.matrix.seconds, sibling.matrix.seconds)
    changed = replace(sibling, matrix=replace(sibling.matrix, seconds=seconds))
    again = ChoiceLesson.of(here, machine.TARGET, (changed,)).held_out(0).families
    is_few = np.array(here.families) == "few"
    np.testing.assert_array_equal(held_out.logs[is_few], again.logs[is_few])
    assert not np.array_equal(held_out.logs[~is_few], again.logs[~is_few], equal_nan=True)
    left = with_siblings(lesson.cells, lesson.siblings, 0, {"few", "deep"})
    assert len(np.unique(left.pairs.row[len(lesson.cells.logs) :])) == 2 * (60 - MEASURED)


def test_a_time_of_the_library_is_kept_if_it_would_run_the_same_kernel(sibling, lesson):
    same, other, unknown, unknown_there, other_units, *_ = sibling.matrix.problems
    there = replace(sibling.matrix, plans=dict.fromkeys((same, other, unknown, other_units), PLAN))
    here = {same: PLAN, other: replace(PLAN, parts=1), unknown_there: PLAN, other_units: replace(PLAN, waves=0.6)}
    cells = SiblingCells.of(
        Sibling("sibling", sibling.target, there, here),
        lesson.candidates.matrix,
        ChoiceFeatures(lesson.candidates.matrix.solutions, machine.TARGET),
    ).cells
    vendors = cells.pairs.vendors
    assert np.isfinite(cells.times[:5, vendors]).any(axis=1).tolist() == [True, False, True, True, True]
    assert np.isfinite(cells.times[1, ~vendors]).any()
    assert np.isfinite(cells.plans[:5, 0]).tolist() == [True, True, False, True, True], "plans are of this device"


def test_solutions_and_types_that_this_device_lacks_are_left_out(here, sibling, monkeypatch):
    monkeypatch.setattr(siblings_module, "LEAST_SHARED", 50)
    kind = machine.TYPES[0]
    of_kind = [column for column, solution in enumerate(here.solutions) if solution.type == kind][:3]
    solutions = tuple(here.solutions[column] for column in of_kind)
    rows = [row for row, problem in enumerate(here.problems) if problem.type == kind]
    part = replace(rows_of(here, rows), solutions=solutions, seconds=here.seconds[np.ix_(rows, of_kind)])
    cells = SiblingCells.of(sibling, part, ChoiceFeatures(solutions, machine.TARGET))
    of_kind_there = [row for row, problem in enumerate(sibling.matrix.problems) if problem.type == kind]
    assert cells.cells.pairs.shape == (len(cells.families), 3)
    there = np.isfinite(sibling.matrix.seconds[np.ix_(of_kind_there, of_kind)])
    assert len(cells.cells.logs) == there.sum()


def test_parts_are_joined_row_behind_row(lesson):
    twice = joined([lesson.cells, lesson.cells])
    rows = lesson.cells.pairs.shape[0]
    np.testing.assert_array_equal(twice.times[:rows], lesson.cells.times)
    np.testing.assert_array_equal(twice.times[rows:], lesson.cells.times)
    assert twice.plans.shape[0] == 2 * rows


@pytest.mark.parametrize(("known", "is_used"), [(49, False), (50, True)])
def test_few_plans_of_this_device_teach_nothing_with_those_of_the_sibling(here, sibling, known, is_used):
    plans = dict.fromkeys(here.problems[:known], PLAN)
    planned = replace(sibling, plans_here=dict.fromkeys(sibling.matrix.problems, PLAN))
    lesson = ChoiceLesson.of(replace(here, plans=plans), machine.TARGET, (planned,))
    assert with_siblings(lesson.cells, lesson.siblings, 0).planned.any() == is_used


def test_a_sibling_that_measured_nothing_else_changes_nothing(here, lesson):
    lesson = ChoiceLesson.of(here, machine.TARGET, (Sibling("sibling", machine.TARGET, on_sibling(here), {}),))
    taught = with_siblings(lesson.cells, lesson.siblings, 0)
    np.testing.assert_array_equal(taught.logs, lesson.cells.logs)


def test_times_that_do_not_differ_are_taken_as_they_are(here, lesson):
    """Single matrices are batches of one. No product need be shared."""
    others = machine.matrix(20, seed=7)
    same = ChoiceLesson.of(
        here, machine.TARGET, (Sibling("single", machine.TARGET, others, {}, needs_translation=False),)
    )
    taught = with_siblings(same.cells, same.siblings, 0)
    truth = time_cells(others, machine.TARGET, ChoiceFeatures(here.solutions, machine.TARGET))
    np.testing.assert_array_equal(taught.times[len(here.problems) :], truth.times)
    again = Sibling("single", machine.TARGET, here, {}, needs_translation=False)
    known = ChoiceLesson.of(here, machine.TARGET, (again,))
    assert len(with_siblings(known.cells, known.siblings, 0).logs) == len(known.cells.logs), "no product counts twice"
    few = np.array(others.families) == "few"
    without = with_siblings(same.cells, same.siblings, 0, {"few"})
    np.testing.assert_array_equal(np.isnan(without.times[len(here.problems) :]).all(axis=1), few)


def test_times_that_are_taken_as_they_are_must_be_of_the_same_solutions(here):
    others = machine.matrix(20, seed=7)
    unknown = tuple(
        replace(s, configuration=s.configuration | {"NumWarps": 16, "KernelLanguage": "x"}) for s in others.solutions
    )
    sibling = Sibling("single", machine.TARGET, replace(others, solutions=unknown), {}, needs_translation=False)
    with pytest.raises(FewSharedError, match=r"^0 times are of the sources' solutions, and 200"):
        ChoiceLesson.of(here, machine.TARGET, (sibling,))


def test_a_sibling_needs_times_of_what_this_device_measured(here, lesson, monkeypatch):
    shared = int(np.isfinite(lesson.cells.times).sum())
    other_products = machine.matrix(20, seed=7)
    other_solutions = replace(here, solutions=here.solutions[:1], seconds=here.seconds[:, :1])
    of_one_type = [row for row, problem in enumerate(here.problems) if problem.type == machine.TYPES[0]]
    only = ChoiceLesson.of(rows_of(here, of_one_type), machine.TARGET)
    rest = rows_of(here, [row for row in range(len(here.problems)) if row not in of_one_type])
    assert with_siblings(only.cells, (), 0) is only.cells
    for matrix, there in ((here, other_products), (here, other_solutions), (rows_of(here, of_one_type), rest)):
        with pytest.raises(FewSharedError, match=r"^\d+ times were measured by both, and 200 are needed$"):
            ChoiceLesson.of(matrix, machine.TARGET, (Sibling("sibling", machine.TARGET, there, {}),))
    monkeypatch.setattr(siblings_module, "LEAST_SHARED", shared)
    with_siblings(lesson.cells, lesson.siblings, 0)
    few = np.array(lesson.candidates.matrix.families) == "few"
    without = lesson.cells.only(~few[lesson.cells.pairs.row])
    left = int(np.isfinite(without.times).sum())
    with pytest.raises(FewSharedError, match=f"^{left} times were measured by both without what"):
        with_siblings(without, lesson.siblings, 0, {"few"})
