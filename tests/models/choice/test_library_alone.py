"""Times of the vendor's library alone teach a model how fast the library is, and nothing else."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import choice_machine as machine
from few_trees import few_trees
from tunesmith.kernels import VENDOR
from tunesmith.models.choice.features import ProductNumbers
from tunesmith.models.choice.fit.fitting import ChoiceLesson, fit_choice
from tunesmith.models.choice.fit.library import LibraryRun
from tunesmith.models.choice.model_file import dump_choice_model, parse_choice_model, plain_of_model
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import LibraryPlan, Problem

pytest.importorskip("sklearn")

PLAN = LibraryPlan(66, 24, 1, 0, 3, 35, 4, 0, 0.5)


@pytest.fixture(scope="module", autouse=True)
def quick_fits():
    with few_trees(times=20):
        yield


def planned(count, seed=0):
    plain = machine.matrix(count, seed=seed)
    return replace(plain, plans=dict.fromkeys(plain.problems, PLAN))


def runs(count, seed, factor=1.0, hour="times.csv"):
    """The library's times at other products of the made-up GPU, in an hour in which it takes `factor` times as long."""
    whole = machine.matrix(count, seed=seed)
    vendors = [solution.kernel == VENDOR for solution in whole.solutions]
    seconds = np.nanmin(np.where(vendors, whole.seconds, np.nan), axis=1)
    rows = zip(whole.problems, whole.families, seconds.tolist(), strict=True)
    return [LibraryRun(problem, family, PLAN, factor * time, hour) for problem, family, time in rows]


def lesson(library, matrix=None):
    return ChoiceLesson.of(matrix or planned(20), machine.TARGET, library=library)


def error_of_library(held_out):
    """The mean error of the library's expected times, without its sign."""
    return np.nanmean(np.abs(held_out.logs - held_out.times)[:, held_out.vendors])


def test_they_make_its_expected_times_better_and_leave_the_others():
    without, taught = (lesson(library).held_out(0).products for library in ((), runs(150, seed=9)))
    assert error_of_library(taught) < 0.8 * error_of_library(without)
    own = ~without.vendors
    np.testing.assert_array_equal(taught.logs[:, own], without.logs[:, own])


def test_a_family_that_is_held_out_is_not_taught():
    """Whatever the times at its products are."""
    taught = lesson(runs(30, seed=9))
    slower = taught.library.logs + math.log(2) * (taught.library.families == "few")
    changed = replace(taught, library=replace(taught.library, logs=slower))
    once, again = taught.held_out(0), changed.held_out(0)
    few = np.array(taught.candidates.matrix.families) == "few"
    np.testing.assert_array_equal(once.families.logs[few], again.families.logs[few])
    assert not np.array_equal(once.families.logs[~few], again.families.logs[~few], equal_nan=True)
    assert not np.array_equal(once.products.logs[few], again.products.logs[few], equal_nan=True)


def test_an_hour_in_which_the_device_is_slower_changes_nothing():
    """Each hour by itself: of two, one is slower than the tuning and one is quicker."""
    plain = lesson(runs(40, seed=9)).library
    both = lesson([*runs(40, seed=9, factor=1.07), *runs(40, seed=8, factor=0.93, hour="another.csv")]).library
    np.testing.assert_allclose(both.logs[: len(plain)], plain.logs)
    np.testing.assert_allclose(both.logs[len(plain) :], lesson(runs(40, seed=8)).library.logs)


def test_an_hour_is_brought_to_what_the_cells_let_expect():
    """The made-up times of a product that the cells know well, but for the factor."""
    few = planned(60)
    found = lesson(runs(60, seed=9, factor=1.5), few).library
    seconds = np.array([run.seconds for run in runs(60, seed=9)])
    floors = np.array([ProductNumbers.of(run.problem, machine.TARGET).floor for run in runs(60, seed=9)])
    assert np.median(found.logs - np.log(seconds / floors)) == pytest.approx(0, abs=0.1)


def test_of_a_product_that_was_timed_twice_the_last_time_counts():
    once = runs(5, seed=9)
    twice = lesson([*runs(5, seed=9, factor=3.0, hour="before.csv"), *once])
    assert len(twice.library) == len(once)
    np.testing.assert_allclose(twice.library.logs, lesson(once).library.logs)


def test_products_of_the_matrix_and_of_other_types_teach_nothing():
    matrix = planned(20)
    other = gemm_type("h", transpose_b=False)
    known = [LibraryRun(problem, "few", PLAN, 1e-5, "times.csv") for problem in matrix.problems]
    foreign = [replace(run, problem=Problem(other, run.problem.sizes)) for run in runs(2, seed=9)]
    new = runs(2, seed=9)
    assert lesson([*known, *foreign], matrix).library is None
    assert len(lesson([*known, *foreign, *new], matrix).library) == len(new)


def test_without_plans_of_the_matrix_they_teach_nothing():
    assert lesson(runs(20, seed=9), machine.matrix(20)).library is None


def test_a_model_says_how_many_there_were():
    taught = fit_choice(
        planned(15), machine.TARGET, "bfloat16", ("a",), ("0", "2026-01-02"), library=runs(10, seed=9)
    ).model
    again = parse_choice_model(dump_choice_model(taught), "kept")
    assert taught.origin.library_alone == again.origin.library_alone == 40
    assert math.isfinite(taught.caution)
    plain = fit_choice(planned(15), machine.TARGET, "bfloat16", ("a",), ("0", "2026-01-02")).model
    assert plain_of_model(plain)["library"] != plain_of_model(taught)["library"]
    assert plain_of_model(plain)["times"] == plain_of_model(taught)["times"]
