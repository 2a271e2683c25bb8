"""A model that is fitted to a made-up GPU chooses well at other products, and knows what it does not know."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import choice_machine as machine
from tunesmith.kernels import VENDOR
from tunesmith.models.choice.fit import growing
from tunesmith.models.choice.fit.cells import time_cells
from tunesmith.models.choice.fit.fitting import fit_choice
from tunesmith.models.choice.fit.held_out import HeldOutTimes, doubt_curve, held_out_times
from tunesmith.models.choice.learning import products_to_learn
from tunesmith.models.choice.model import ExpectedTimes, feature_names
from tunesmith.models.choice.model_file import dump_choice_model, read_choice_model
from tunesmith.models.intensity.scoring import geomean
from tunesmith.records import Problem, Solution, UserError

pytest.importorskip("sklearn")


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    """So that the tests are quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(growing.SETTINGS, "n_estimators", 60)
        patch.setitem(growing.SETTINGS, "learning_rate", 0.2)
        yield


@pytest.fixture(scope="module")
def fit():
    return fit_choice(machine.matrix(40), machine.TARGET, "bfloat16", ("a",), ("0", "2026-01-02"))


def orders(model, problems):
    """The solutions of each problem's type by the model."""
    for problem in problems:
        solutions = [solution for solution in machine.solutions() if solution.type == problem.type]
        yield [(solutions[time.index], time) for time in ExpectedTimes(model, solutions).ranked(problem)]


def efficiencies(matrix, order_of_rows):
    chosen = []
    for row, order in enumerate(order_of_rows):
        ran = [s for s, _ in order if math.isfinite(matrix.seconds[row, matrix.columns[s]])]
        chosen.append(matrix.seconds[row, matrix.columns[ran[0]]])
    return matrix.best / np.array(chosen)


def test_choices_at_other_products_are_near_the_best(fit):
    other = machine.matrix(30, seed=1)
    found = efficiencies(other, orders(fit.model, other.problems))
    vendor = [solution.kernel == VENDOR for solution in other.solutions]
    by_vendor = other.best / np.nanmin(np.where(vendor, other.seconds, np.nan), axis=1)
    assert geomean(found) > 0.97
    assert geomean(found) > geomean(by_vendor) + 0.05


def test_expected_times_are_near_the_measured_ones(fit):
    other = machine.matrix(10, seed=2)
    errors = [
        math.log(time.seconds / other.seconds[row, other.columns[solution]])
        for row, order in enumerate(orders(fit.model, other.problems))
        for solution, time in order
        if math.isfinite(other.seconds[row, other.columns[solution]])
    ]
    assert np.median(np.abs(errors)) < 0.1


def test_scores_are_those_of_families_that_were_held_out(fit):
    """Without a family's rows, its predictions are the same whatever its times are."""
    matrix = machine.matrix(12)
    cells = time_cells(matrix, machine.TARGET)
    held_out = held_out_times(matrix, cells, 0)
    few = np.array(matrix.families) == "few"
    slower = np.where(few[:, None], 3 * matrix.seconds, matrix.seconds)
    changed = replace(matrix, seconds=slower)
    again = held_out_times(changed, time_cells(changed, machine.TARGET), 0)
    np.testing.assert_array_equal(held_out.logs[few], again.logs[few])
    assert not np.array_equal(held_out.logs[~few], again.logs[~few], equal_nan=True)
    assert fit.model.scores["geomean"] == pytest.approx(geomean(fit.efficiencies))
    assert fit.model.scores["worst"] <= fit.model.scores["percentile-10"] <= fit.model.scores["geomean"]


def test_the_doubt_is_the_error_of_ratios_and_grows_with_distance():
    random = np.random.default_rng(0)
    times = random.normal(0, 0.05, (400, 6))
    distances = np.repeat([1.0, 2.0], 200)
    error = np.where(distances == 1, 0.02, 0.2)
    logs = times + random.normal(0, 1, times.shape) * error[:, None] / math.sqrt(2)
    curve = doubt_curve(HeldOutTimes(logs, times, np.zeros(400, int), distances), np.ones(400, bool))
    assert curve.at(0.0) == pytest.approx(0.02, rel=0.4)
    assert curve.at(9.0) == pytest.approx(0.2, rel=0.4)
    assert all(first <= second for first, second in zip(curve.spreads, curve.spreads[1:], strict=False))


def test_the_vendor_is_chosen_unless_the_gain_exceeds_the_doubt(fit):
    """With more caution, only the order between the vendor and the others changes."""
    problem = Problem(machine.TYPES[0], (1000, 1000, 1001))
    (bold,) = orders(replace(fit.model, caution=0.0), [problem])
    (timid,) = orders(replace(fit.model, caution=1e6), [problem])
    assert timid[0][0].kernel == VENDOR
    assert bold[0][0].kernel != VENDOR
    own = [solution for solution, _ in bold if solution.kernel != VENDOR]
    assert own == [solution for solution, _ in timid if solution.kernel != VENDOR]
    assert {time.seconds for _, time in bold} == {time.seconds for _, time in timid}
    gain = math.log(dict(bold)[timid[0][0]].seconds / bold[0][1].seconds)
    just = gain / bold[0][1].doubt
    assert next(orders(replace(fit.model, caution=0.99 * just), [problem]))[0][0].kernel != VENDOR
    assert next(orders(replace(fit.model, caution=1.01 * just), [problem]))[0][0].kernel == VENDOR


def test_nothing_is_expected_of_solutions_that_were_not_in_the_fit(fit):
    known, *_ = machine.solutions()
    other = Solution(known.type, known.kernel, known.configuration | {"NumStages": 7})
    times = ExpectedTimes(fit.model, [other, known])
    assert [time.index for time in times.ranked(Problem(known.type, (100, 100, 100)))] == [1]
    assert ExpectedTimes(fit.model, [other]).ranked(Problem(known.type, (100, 100, 100))) == ()


def test_a_model_comes_back_from_its_file(fit, tmp_path):
    path = tmp_path / "choice.yaml"
    path.write_text(dump_choice_model(fit.model))
    again = read_choice_model(path)
    for name in ("origin", "target", "data_type", "types", "solutions", "columns", "caution"):
        assert getattr(again, name) == getattr(fit.model, name)
    problems = machine.matrix(5, seed=3).problems
    for mine, theirs in zip(orders(fit.model, problems), orders(again, problems), strict=True):
        assert [solution for solution, _ in mine] == [solution for solution, _ in theirs]
        assert [time.seconds for _, time in mine] == pytest.approx([time.seconds for _, time in theirs], rel=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("tunesmith-choice: 1", "tunesmith-choice: 2", "format 2"),
        ("log m, ", "", "features"),
        ("spreads: [", "spreads: [1.0, ", "distances"),
        ("caution: ", "caution: x", "caution"),
        ("child: int32 ", "child: int32 1", "child"),
        ("kind: GPU", "kind: 7", "kind"),
        ("depth: ", "depth: 1000", "depth"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_line(fit, tmp_path, old, new, what):
    path = tmp_path / "choice.yaml"
    text = dump_choice_model(fit.model)
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError, match=what) as error:
        read_choice_model(path)
    assert error.value.location.startswith(f"{path}:")


def test_no_number_of_a_tree_leads_outside(fit, tmp_path):
    """A file whose nodes point behind the last one is refused when it is read, not when it is asked."""
    trees = fit.model.trees
    path = tmp_path / "choice.yaml"
    for name, value in (("child", len(trees.child)), ("feature", len(feature_names(fit.model.columns))), ("roots", -1)):
        broken = np.array(getattr(trees, name))
        broken[0] = value
        path.write_text(dump_choice_model(replace(fit.model, trees=replace(trees, **{name: broken}))))
        with pytest.raises(UserError, match=name):
            read_choice_model(path)


def test_what_would_teach_most_lies_far_from_what_is_known(fit):
    rows = products_to_learn(fit.model, 40, seed=1)
    assert len(rows) == len(set(rows)) == 40
    assert not any(row.trans_a for row in rows), "the model has no type for these"
    assert len({row.family for row in rows}) > 10
    random = products_to_learn(fit.model, 40, seed=2)
    assert set(rows) != set(random)


def test_one_family_cannot_be_held_out():
    with pytest.raises(ValueError, match="one group"):
        fit_choice(machine.matrix(60, names=("square",)), machine.TARGET, "bfloat16", (), ("", ""))
