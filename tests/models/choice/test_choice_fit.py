"""A model that is fitted to a made-up GPU chooses well at other products, and knows what it does not know."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import choice_machine as machine
from few_trees import few_trees
from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.models.choice import model as choice_model
from tunesmith.models.choice.fit import growing
from tunesmith.models.choice.fit.candidates import CandidateTimes
from tunesmith.models.choice.fit.fitting import ChoiceLesson, fit_choice
from tunesmith.models.choice.learning import products_to_learn
from tunesmith.models.choice.model_file import dump_choice_model, model_of, plain_of_model, read_choice_model
from tunesmith.models.choice.trees import LEAF_UNIT
from tunesmith.models.intensity.scoring import TimeMatrix, geomean
from tunesmith.records import Problem, Solution, UserError

pytest.importorskip("sklearn.ensemble")


@pytest.fixture(scope="module", autouse=True)
def quick_fits():
    with few_trees(times=60):
        yield


@pytest.fixture(scope="module")
def fit():
    return fit_choice(machine.matrix(40), machine.TARGET, "bfloat16", ("a",), ("0", "2026-01-02"))


def orders(model, problems):
    """The solutions of each problem's type by the model."""
    for problem in problems:
        solutions = [solution for solution in machine.solutions() if solution.type == problem.type]
        yield [(solutions[time.solution], time) for time in model.times_of(problem.type, solutions).ranked(problem)]


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


def test_the_leaves_of_a_fit_are_rounded(fit):
    for trees in (fit.model.times, fit.model.doubts):
        assert (trees.value % LEAF_UNIT == 0).all()


def test_scores_are_those_of_families_that_were_held_out(fit, monkeypatch):
    """Without a family's rows, its predictions are the same whatever its times are. That is so of any trees."""
    for settings in (growing.TIMES, growing.DOUBTS):
        monkeypatch.setitem(settings, "max_iter", 5)
    matrix = machine.matrix(12)
    held_out = ChoiceLesson.of(matrix, machine.TARGET).held_out(0).families
    few = np.array(matrix.families) == "few"
    changed = replace(matrix, seconds=np.where(few[:, None], 3 * matrix.seconds, matrix.seconds))
    again = ChoiceLesson.of(changed, machine.TARGET).held_out(0).families
    np.testing.assert_array_equal(held_out.logs[few], again.logs[few])
    assert not np.array_equal(held_out.logs[~few], again.logs[~few], equal_nan=True)
    assert fit.model.scores["geomean"] == pytest.approx(geomean(fit.efficiencies))
    assert fit.model.scores["worst"] <= fit.model.scores["percentile-10"] <= fit.model.scores["geomean"]


@pytest.mark.parametrize("kept", ["own", "vendor"])
def test_a_fold_may_lack_the_vendor_or_our_kernels(kept):
    lesson = ChoiceLesson.of(machine.matrix(12), machine.TARGET)
    pairs = lesson.cells.pairs
    is_kept = pairs.vendors[pairs.column] == (kept == "vendor")
    cells = lesson.cells.only(is_kept)
    errors = growing.grown(cells, 0).times.predict(cells.pairs.features) - cells.logs
    assert np.sqrt((errors**2).mean()) < 0.5 * np.std(cells.logs)


def test_slow_kernels_count_less_and_the_vendor_more():
    """A kernel that takes twice the best own time, one that takes the best, and the vendor, which is slower than both;
    the best of one product says nothing of another."""
    cells = ChoiceLesson.of(machine.matrix(12), machine.TARGET).cells
    pairs = cells.pairs
    is_vendor = pairs.vendors[pairs.column]
    logs = np.where(is_vendor, 1.0, 0.1 * pairs.row + math.log(2) * (pairs.column % 2))
    weights = growing.time_weights(replace(cells, logs=logs))
    assert set(weights[is_vendor]) == {growing.VENDOR_WEIGHT}
    fast, slow = (weights[~is_vendor & (pairs.column % 2 == odd)] for odd in (0, 1))
    np.testing.assert_allclose(fast, 1.0)
    np.testing.assert_allclose(slow, 1 / (1 + (math.log(2) / growing.HALF_WEIGHT) ** 2))


def test_times_are_learned_by_their_weights(monkeypatch):
    """Half of the times are doubled and weigh next to nothing, so that the others are expected."""
    cells = ChoiceLesson.of(machine.matrix(12), machine.TARGET).cells
    is_odd = np.arange(len(cells.logs)) % 2 == 1
    doubled = replace(cells, logs=cells.logs + math.log(2) * is_odd)
    monkeypatch.setattr(growing, "time_weights", lambda cells: np.where(is_odd, 1e-6, 1.0))
    expected = growing.grown(doubled, 0).times.predict(cells.pairs.features)
    assert np.median(expected - cells.logs) == pytest.approx(0.0, abs=0.1)


def test_doubt_is_greater_where_errors_are():
    """The times of one family jump from product to product, so that no model expects them."""
    matrix, other = machine.matrix(40), machine.matrix(20, seed=4)
    jumps = np.exp(np.random.default_rng(0).normal(0, 0.5, matrix.seconds.shape))
    is_few = np.array(matrix.families) == "few"
    jumping = replace(matrix, seconds=np.where(is_few[:, None], jumps, 1.0) * matrix.seconds)
    model = fit_choice(jumping, machine.TARGET, "bfloat16", ("a",), ("0", "2026-01-02")).model
    doubts = np.array([order[0][1].doubt for order in orders(model, other.problems)])
    is_few = np.array(other.families) == "few"
    assert np.median(doubts[is_few]) > 2 * np.median(doubts[~is_few])


def test_the_vendor_is_chosen_unless_the_gain_exceeds_the_doubt(fit):
    """The vendor is first as soon as no other solution's gain exceeds caution times its doubt."""
    problem = Problem(machine.TYPES[0], (1000, 1000, 1001))
    (bold,) = orders(replace(fit.model, caution=0.0), [problem])
    (timid,) = orders(replace(fit.model, caution=1e6), [problem])
    assert timid[0][0].kernel == VENDOR
    assert bold[0][0].kernel != VENDOR
    assert dict(bold) == dict(timid), "expected times do not depend on the caution"
    vendor = timid[0][1].seconds
    just = max(math.log(vendor / time.seconds) / time.doubt for solution, time in bold if solution.kernel != VENDOR)
    assert next(orders(replace(fit.model, caution=0.99 * just), [problem]))[0][0].kernel != VENDOR
    assert next(orders(replace(fit.model, caution=1.01 * just), [problem]))[0][0].kernel == VENDOR


def test_nothing_is_expected_of_solutions_that_were_not_in_the_fit(fit):
    known, *_ = machine.solutions()
    other = Solution(known.type, known.kernel, known.configuration | {"NumStages": 7})
    problem = Problem(known.type, (100, 100, 100))
    assert [time.solution for time in fit.model.times_of(known.type, [other, known]).ranked(problem)] == [1]
    assert fit.model.times_of(known.type, [other]).ranked(problem) == ()


@pytest.mark.parametrize("kept", ["a file", "plain values"])
def test_a_model_comes_back(fit, tmp_path, kept):
    path = tmp_path / "choice.yaml"
    path.write_text(dump_choice_model(fit.model))
    plain = json.dumps(plain_of_model(fit.model))
    again = read_choice_model(path) if kept == "a file" else model_of(json.loads(plain), "kept")
    for name in ("origin", "target", "data_type", "types", "solutions", "columns", "caution"):
        assert getattr(again, name) == getattr(fit.model, name)
    problems = machine.matrix(5, seed=3).problems
    for mine, theirs in zip(orders(fit.model, problems), orders(again, problems), strict=True):
        assert [solution for solution, _ in mine] == [solution for solution, _ in theirs]
        assert [time.seconds for _, time in mine] == pytest.approx([time.seconds for _, time in theirs], rel=1e-6)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("tunesmith-choice: 3", "tunesmith-choice: 2", "format 2"),
        ("log m, ", "", "features"),
        ("types:\n", "types:\n  other: [1000]\n", "index"),
        ("caution: ", "caution: x", "caution"),
        ("borders: float32 ", "borders: float32 1", "borders"),
        ("kind: GPU", "kind: 7", "kind"),
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


@pytest.mark.parametrize(
    "changes",
    [
        {"types": [1]},
        {"caution": True},
        {"caution": "1.0"},
        {"caution": 10**400},
        {"caution": math.nan},
        {"solutions": None},
        {"made": {}},
        {"features": [[]]},
        {"more": 1},
    ],
)
def test_wrong_plain_values_are_told(fit, changes):
    with pytest.raises(UserError, match=r"^kept: "):
        model_of(plain_of_model(fit.model) | changes, "kept")


@pytest.mark.parametrize("value", [None, 5, [], {}])
def test_other_plain_values_are_no_model(value):
    with pytest.raises(UserError, match=r"^kept: "):
        model_of(value, "kept")


def test_values_that_are_nested_too_deeply_are_told():
    deep = {}
    for _ in range(10_000):
        deep = {"deeper": deep}
    with pytest.raises(UserError, match="nested more than"):
        model_of(deep, "kept")


def test_late_trees_are_asked_about_what_is_not_far_behind_the_vendor(fit, monkeypatch):
    """The others come last, whatever the late trees would say of them. The first choice is that of all trees."""
    problems = machine.matrix(10, seed=4).problems
    monkeypatch.setattr(choice_model, "EARLY_TREES", 40)
    monkeypatch.setattr(choice_model, "FIRST", 1)
    monkeypatch.setattr(choice_model, "BEHIND", math.inf)
    of_all = list(orders(replace(fit.model), problems))
    monkeypatch.setattr(choice_model, "BEHIND", 0.2)
    found = list(orders(replace(fit.model), problems))
    assert [order[0][0] for order in found] == [order[0][0] for order in of_all]
    behind = 0
    for few, every in zip(found, of_all, strict=True):
        expected = {solution: time.seconds for solution, time in every}
        competes = [time.seconds == pytest.approx(expected[solution], rel=1e-9) for solution, time in few]
        assert competes == sorted(competes, reverse=True), "one that does not compete is before one that does"
        assert competes[[solution.kernel for solution, _ in few].index(VENDOR)]
        behind += competes.count(False)
    assert behind > len(problems), "so few that the late trees were asked about all"


def test_late_trees_are_asked_about_the_first_however_far_behind_the_vendor_they_are(fit, monkeypatch):
    """Three of eight, when nothing is near enough."""
    problems = machine.matrix(5, seed=4).problems
    monkeypatch.setattr(choice_model, "EARLY_TREES", 30)
    monkeypatch.setattr(choice_model, "BEHIND", math.inf)
    of_all = list(orders(replace(fit.model), problems))
    monkeypatch.setattr(choice_model, "BEHIND", -100.0)
    monkeypatch.setattr(choice_model, "FIRST", 3)
    for few, every in zip(orders(replace(fit.model), problems), of_all, strict=True):
        expected = {solution: time.seconds for solution, time in every}
        competes = [time.seconds == pytest.approx(expected[solution], rel=1e-9) for solution, time in few]
        assert competes == [True] * 3 + [False] * (len(few) - 3)


def test_all_trees_are_asked_about_all_solutions_without_a_vendor(monkeypatch):
    matrix = machine.matrix(12)
    own = [column for column, solution in enumerate(matrix.solutions) if solution.kernel != VENDOR]
    solutions = tuple(matrix.solutions[column] for column in own)
    alone = TimeMatrix(matrix.problems, matrix.families, solutions, matrix.seconds[:, own])
    model = fit_choice(alone, machine.TARGET, "bfloat16", ("a",), ("0", "2026-01-02")).model
    monkeypatch.setattr(choice_model, "EARLY_TREES", 5)
    early = [[time.seconds for _, time in order] for order in orders(replace(model), matrix.problems)]
    monkeypatch.setattr(choice_model, "EARLY_TREES", 60)
    every = [[time.seconds for _, time in order] for order in orders(replace(model), matrix.problems)]
    for few, whole in zip(early, every, strict=True):
        assert few == pytest.approx(whole, rel=1e-9)


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


def test_what_ran_on_few_products_is_not_offered():
    """A solution that ran on two products only: it is the best on one of them, and the other has no other time."""
    matrix = machine.matrix(12)
    rows, columns = matrix.seconds.shape
    kind = matrix.problems[0].type
    rare = replace(matrix.solutions[0], configuration=matrix.solutions[0].configuration | {"NumWarps": 8})
    seconds = np.full((rows + 1, columns + 1), np.nan)
    seconds[:rows, :columns] = matrix.seconds
    seconds[0, columns], seconds[rows, columns] = matrix.best[0] / 2, 1.0
    problems = (*matrix.problems, Problem(kind, (17, 18, 19)))
    whole = TimeMatrix(problems, (*matrix.families, "rare"), (*matrix.solutions, rare), seconds)
    candidates = CandidateTimes.of(whole, machine.TARGET)
    assert candidates.matrix.solutions == matrix.solutions
    assert candidates.matrix.problems == matrix.problems
    assert candidates.rows.tolist() == list(range(rows))
    np.testing.assert_array_equal(candidates.matrix.seconds, matrix.seconds)
    np.testing.assert_array_equal(candidates.best, [matrix.best[0] / 2, *matrix.best[1:]])


@pytest.mark.parametrize(("ran", "is_offered"), [(2, True), (1, False)])
def test_what_is_legal_at_few_products_is_offered_if_it_ran_on_half_of_them(ran, is_offered):
    """A kernel of vectors, legal at three of many products."""
    matrix = machine.matrix(40)
    kind = matrix.problems[0].type
    vectors = Solution(kind, "TritonGemv", KERNELS["TritonGemv"].space(kind, machine.TARGET).defaults)
    rows, columns = matrix.seconds.shape
    seconds = np.full((rows + 3, columns + 1), np.nan)
    seconds[:rows, :columns], seconds[rows:, 0], seconds[rows : rows + ran, columns] = matrix.seconds, 1.0, 0.5
    problems = (*matrix.problems, *(Problem(kind, (size, 1, 512)) for size in (256, 512, 1024)))
    whole = TimeMatrix(problems, (*matrix.families, *["vector"] * 3), (*matrix.solutions, vectors), seconds)
    assert (vectors in CandidateTimes.of(whole, machine.TARGET).matrix.solutions) == is_offered
