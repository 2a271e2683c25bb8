"""A model that was told the library's plans expects the library's times where sizes do not tell them."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import choice_machine as machine
from few_trees import few_trees
from tunesmith.kernels import VENDOR
from tunesmith.models.choice import model as choice_model
from tunesmith.models.choice.features import PRODUCT_FEATURES, ProductNumbers
from tunesmith.models.choice.fit import fitting
from tunesmith.models.choice.fit.fitting import ChoiceLesson, fit_choice
from tunesmith.models.choice.model_file import dump_choice_model, model_of, parse_choice_model, plain_of_model
from tunesmith.models.choice.plans import (
    NO_PLAN,
    OF_PLAN,
    OF_PRODUCT,
    OF_TILE,
    PLAN_FEATURES,
    plan_features,
    with_plans,
)
from tunesmith.models.choice.trees import ensemble
from tunesmith.records import LibraryPlan, UserError

pytest.importorskip("sklearn")

SLOW, QUICK = (LibraryPlan(66, tile, 1, 0, 3, 35, 4, 0, 0.5) for tile in (15, 24))


@pytest.fixture(scope="module", autouse=True)
def quick_fits():
    with few_trees(times=60):
        yield


def matrix(count, seed=0, known=1.0):
    """The made-up GPU's times. At a random half of the products the library takes twice as long, and says so by its
    tile. A part of the plans is known."""
    plain, random = machine.matrix(count, seed=seed), np.random.default_rng(seed)
    slow = random.random(len(plain.problems)) < 0.5
    vendors = np.array([solution.kernel == VENDOR for solution in plain.solutions])
    seconds = np.where(slow[:, None] & vendors, 2.0, 1.0) * plain.seconds
    is_known = random.random(len(plain.problems)) < known
    plans = {
        problem: SLOW if is_slow else QUICK
        for problem, is_slow, listed in zip(plain.problems, slow, is_known, strict=True)
        if listed
    }
    return replace(plain, seconds=seconds, plans=plans)


@pytest.fixture(scope="module")
def lesson():
    return ChoiceLesson.of(matrix(40), machine.TARGET)


@pytest.fixture(scope="module")
def model():
    return fit_choice(matrix(40), machine.TARGET, "bfloat16", ("a",), ("0", "2026-01-02")).model


def errors(model, other, plans):
    """Errors of the library's expected times, in logarithms."""
    found = []
    for problem, row in zip(other.problems, other.seconds, strict=True):
        solutions = [solution for solution in other.solutions if solution.type == problem.type]
        (expected,) = (
            time.seconds
            for time in model.times_of(problem.type, solutions).ranked(problem, plans.get(problem))
            if solutions[time.solution].kernel == VENDOR
        )
        (vendor,) = (s for s in solutions if s.kernel == VENDOR)
        found.append(math.log(expected / row[other.columns[vendor]]))
    return np.array(found)


def test_a_plan_tells_what_sizes_do_not(model):
    other = matrix(20, seed=5)
    assert np.abs(errors(model, other, {})).mean() > 0.25
    assert np.abs(errors(model, other, other.plans)).mean() < 0.12


def test_the_librarys_trees_alone_expect_its_time(model, monkeypatch):
    """Also where the late trees are asked about the others."""
    monkeypatch.setattr(choice_model, "EARLY_TREES", 20)
    other = matrix(5, seed=6)
    known = replace(model, library=ensemble(0.25, []))
    for problem, plan in other.plans.items():
        solutions = [solution for solution in other.solutions if solution.type == problem.type]
        (seconds,) = (
            time.seconds
            for time in known.times_of(problem.type, solutions).ranked(problem, plan)
            if solutions[time.solution].kernel == VENDOR
        )
        assert seconds == pytest.approx(math.exp(0.25) * ProductNumbers.of(problem, machine.TARGET).floor)


def test_own_solutions_are_expected_as_before(model):
    other = matrix(5, seed=6)
    plain = replace(model, library=None)
    for problem, plan in other.plans.items():
        solutions = [solution for solution in other.solutions if solution.type == problem.type]
        with_plan, without = (
            {time.solution: time.seconds for time in known.times_of(problem.type, solutions).ranked(problem, plan)}
            for known in (model, plain)
        )
        assert model.times_of(problem.type, solutions).ranked(problem) == plain.times_of(
            problem.type, solutions
        ).ranked(problem)
        own = [index for index, solution in enumerate(solutions) if solution.kernel != VENDOR]
        assert with_plan.keys() == without.keys()
        # Whether a solution competes, and so how sharply it is expected, depends on the library's time.
        assert [with_plan[index] for index in own] == pytest.approx([without[index] for index in own], rel=0.15)


def test_held_out_times_of_the_library_are_expected_by_its_plans(lesson):
    without = replace(lesson, cells=replace(lesson.cells, plans=np.full_like(lesson.cells.plans, np.nan)))
    by_plan, blind = lesson.held_out(0).families.logs, without.held_out(0).families.logs
    vendors = lesson.cells.pairs.vendors
    change = np.nanmean((by_plan - blind)[:, vendors], axis=1)
    slow = np.array([lesson.candidates.matrix.plans[problem] is SLOW for problem in lesson.candidates.matrix.problems])
    assert change[slow].mean() - change[~slow].mean() == pytest.approx(math.log(2), rel=0.25)
    np.testing.assert_array_equal(by_plan[:, ~vendors], blind[:, ~vendors])


def test_a_product_without_a_plan_is_expected_by_its_sizes():
    """A part of the plans is known: only those cells differ from a fit without any."""
    some = ChoiceLesson.of(matrix(40, known=0.7), machine.TARGET)
    none = replace(some, cells=replace(some.cells, plans=np.full_like(some.cells.plans, np.nan)))
    differ = some.held_out(0).families.logs != none.held_out(0).families.logs
    known = np.isfinite(some.cells.plans[:, 0])
    assert 0.5 < known.mean() < 0.9
    ran = np.isfinite(some.cells.times)
    assert (differ & ran)[known].any(axis=1).all()
    assert not (differ & ran)[~known].any()


def test_few_plans_teach_nothing():
    few = matrix(40)
    plans = dict(list(few.plans.items())[: fitting.LEAST_PLANS - 1])
    model = fit_choice(replace(few, plans=plans), machine.TARGET, "bfloat16", ("a",), ("0", "2026-01-02")).model
    assert model.library is None
    assert "library" not in plain_of_model(model)


def test_the_librarys_trees_come_back(model):
    plain = plain_of_model(model)
    for again in (model_of(json.loads(json.dumps(plain)), "kept"), parse_choice_model(dump_choice_model(model), "a")):
        assert plain_of_model(again) == plain
    for changes in ({"library-features": ["library's tile"]}, {"library-features": None}):
        with pytest.raises(UserError, match="features"):
            model_of(plain | changes, "kept")
    for missing in ("library", "library-features"):
        with pytest.raises(UserError, match="go together"):
            model_of({name: value for name, value in plain.items() if name != missing}, "kept")
    broken = plain["library"] | {"feature": plain["times"]["feature"]}
    with pytest.raises(UserError, match="nodes"):
        model_of(plain | {"library": broken}, "kept")


def test_a_plan_as_numbers():
    numbers = dict(zip(OF_PLAN, plan_features(replace(SLOW, parts=4, workspace=7, waves=2.0)), strict=True))
    assert numbers["library's tile"] == 15
    assert numbers["library's workspace"] == 3
    assert numbers["library's waves"] == 1
    assert numbers["library's log work-groups"] == -1
    assert np.isfinite(plan_features(replace(SLOW, parts=0, waves=0.0))).all()
    assert plan_features(None) is NO_PLAN
    assert np.isnan(NO_PLAN).all()


def test_a_plan_on_a_product_as_numbers():
    """Batches of 2, 64 x 32 by a K of 1000 in 4 parts, in two and a half waves: a part has 250 of K, a work-group a
    fifth of the elements of all parts, and a compute unit three of them in turn."""
    sizes = {"log m": 6.0, "log n": 5.0, "log k": math.log2(1000), "log batch": 1.0, "log floor": -10.0}
    row = np.array([[sizes.get(name, 0.0) for name in PRODUCT_FEATURES]])
    plan = plan_features(replace(SLOW, parts=4, waves=2.5))
    (values,) = with_plans(row, plan)[:, len(PRODUCT_FEATURES) + len(OF_PLAN) : -len(OF_TILE)]
    elements, of_k = 64 * 32 * 2 / (2.5 / 4), 1000 / 4
    expected = (2.5 / 3, of_k, elements, 3 * of_k * elements * 2**10, 3 * of_k * 2**10, 3)
    assert len(OF_PRODUCT) == len(expected)
    np.testing.assert_allclose([values[0], *np.exp2(values[1:])], expected)


def test_whole_waves_are_full():
    for waves in range(1, 400):
        plan = plan_features(replace(SLOW, waves=float(waves)))
        appended = with_plans(np.ones((1, len(PRODUCT_FEATURES))), plan)[0, len(PRODUCT_FEATURES) :]
        values = dict(zip(PLAN_FEATURES, appended, strict=True))
        assert values["library's wave share"] == pytest.approx(1.0)
        assert 2 ** values["library's log rounds"] == pytest.approx(waves)


def test_the_tile_of_a_plan_on_a_product_as_numbers():
    """130 x 100 by a K of 1000 in 4 parts, a batch of 2, in two and a half waves of tiles of 64 x 32: 3 x 4 of them for
    each matrix of the batch. A compute unit fetches three tiles' rows and columns, 250 long."""
    sizes = {"log m": 130, "log n": 100, "log k": 1000, "log batch": 2, "log floor": 2**-10}
    row = np.array([[math.log2(sizes.get(name, 1)) for name in PRODUCT_FEATURES]])
    tile = 13
    for parts, of_k in ((4, 250), (1, 1000), (0, 1000), (2**32 - 1, 1000)):
        (values,) = with_plans(row, plan_features(replace(SLOW, tile=tile, parts=parts, waves=2.5)))[:, -len(OF_TILE) :]
        expected = (64, 32, 3 * 4 * 2, 3 * (64 + 32) * of_k * 2**10)
        np.testing.assert_allclose(np.exp2(values[[0, 1, 2, 5]]), expected)
        np.testing.assert_allclose(values[[3, 4]], (130 / (3 * 64), 100 / (4 * 32)))
    (unknown,) = with_plans(row, plan_features(replace(SLOW, tile=0)))[:, -len(OF_TILE) :]
    np.testing.assert_allclose(unknown[:2], 0)
    np.testing.assert_allclose(unknown[[3, 4]], 1)


@pytest.mark.parametrize("former", [OF_PLAN, (*OF_PLAN, *OF_PRODUCT)])
def test_a_library_that_was_fitted_with_fewer_features_expects_the_same(model, former):
    """The features that were added are behind the others. This library's trees never ask for them."""
    plain = plain_of_model(model)
    first = len(plain["features"]) + len(former)
    trees = plain["library"]
    known = replace(model.library, feature=np.where(model.library.feature < first, model.library.feature, 0))
    older = plain_of_model(replace(model, library=known)) | {"library-features": list(former)}
    again = model_of(older, "kept")
    rows = np.random.default_rng(0).normal(size=(5, len(plain["features"]) + len(PLAN_FEATURES)))
    np.testing.assert_allclose(again.library.predict(rows[:, :first]), known.predict(rows))
    assert trees != older["library"], "some tree asked for a feature that was added"
