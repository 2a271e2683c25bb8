"""Trees as plain arrays predict what scikit-learn's model predicts, and survive being packed as text."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith.models.choice.fit.growing import TIMES, _ensemble_of, _rounded_down
from tunesmith.models.choice.packed import packed, unpacked
from tunesmith.models.choice.trees import LEAF_UNIT, GrownTree, ensemble
from tunesmith.records import UserError

sklearn = pytest.importorskip("sklearn.ensemble")


def sample(rows, seed=0):
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, 5)).astype(np.float32).astype(float)
    return features, np.sin(3 * features[:, 0]) + features[:, 1] * (features[:, 2] > 0)


def test_the_arrays_predict_what_scikit_learn_predicts():
    features, values = sample(800)
    theirs = sklearn.HistGradientBoostingRegressor(random_state=3, **TIMES).fit(features, values)
    ours = _ensemble_of(theirs, features)
    others, _ = sample(500, seed=1)
    assert ours.predict(others) == pytest.approx(theirs.predict(others), abs=1e-5)
    assert np.std(ours.predict(features) - values) < 0.3 * np.std(values)


@pytest.mark.parametrize("changed", [{"_predictors": None}, {"_baseline_prediction": 5.0}])
def test_trees_of_an_unknown_layout_are_refused(changed):
    """The names are scikit-learn's own, so another version may mean something else by them."""

    class Changed(sklearn.HistGradientBoostingRegressor):
        def fit(self, *data):
            super().fit(*data)
            vars(self).update(changed)
            return self

        def predict(self, features):
            return np.zeros(len(features))

    features, values = sample(100)
    model = Changed(random_state=0, **TIMES | {"max_iter": 3}).fit(features, values)
    with pytest.raises(UserError, match=r"scikit-learn [\d.]+.*laid out"):
        _ensemble_of(model, features)


def test_a_threshold_between_two_neighbours_in_single_precision_keeps_them_apart():
    """The middle of two neighbours is rounded to the even one, which may be the upper."""
    lower = np.float32(1) + np.arange(1, 9, dtype=np.float32) * np.finfo(np.float32).eps
    upper = np.nextafter(lower, np.float32(2))
    middles = (lower.astype(float) + upper.astype(float)) / 2
    assert (middles.astype(np.float32) == upper).any()
    assert (_rounded_down(middles) == lower).all()
    assert (_rounded_down(upper.astype(float)) == upper).all()


def test_a_tree_without_questions_is_a_constant():
    trees = ensemble(1.5, [GrownTree([0], [0.0], [-1], [-1], [0.25])])
    assert trees.predict(np.zeros((3, 2))).tolist() == [1.75] * 3


def test_uneven_trees_are_walked_to_their_leaves():
    """x0 <= 0: 1; else x1 <= 2: 10, else 100. A value equal to the threshold goes to the left."""
    tree = GrownTree([0, 0, 1, 0, 0], [0.0, 0, 2.0, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [0, 1, 0, 10, 100])
    trees = ensemble(0.0, [tree, tree])
    rows = np.array([[-1.0, 5.0], [0.0, 5.0], [1.0, 2.0], [1.0, 3.0]])
    assert trees.predict(rows).tolist() == [2, 2, 20, 200]
    assert trees.depth == 2
    assert trees.child.tolist() == [1, 1, 3, 3, 4, 6, 6, 8, 8, 9]


def test_the_parts_of_an_ensemble_add_up_to_it():
    features, values = sample(400)
    whole = _ensemble_of(sklearn.HistGradientBoostingRegressor(random_state=3, **TIMES).fit(features, values), features)
    others, _ = sample(50, seed=1)
    for count in (0, 1, 60, len(whole.roots), len(whole.roots) + 1):
        first, rest = whole.split(count)
        assert len(first.roots) == min(count, len(whole.roots))
        assert first.predict(others) + rest.predict(others) == pytest.approx(whole.predict(others), abs=1e-9)


def test_rounded_leaves_are_multiples_and_as_near_as_can_be():
    features, values = sample(400)
    whole = _ensemble_of(sklearn.HistGradientBoostingRegressor(random_state=3, **TIMES).fit(features, values), features)
    rounded = whole.rounded()
    assert (rounded.value % LEAF_UNIT == 0).all()
    assert np.abs(rounded.value - whole.value).max() <= LEAF_UNIT / 2


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.array([[1.5, np.inf], [-2.0, 0.0]]), "float32"),
        (np.arange(256), "uint8"),
        (np.arange(257), "int16"),
        (np.array([-1, 255]), "int16"),
        (np.array([-(2**15), 2**15 - 1], np.int64), "int16"),
        (np.array([[-(2**15) - 1, 7, 9]]), "int32"),
        (np.array([2**31 - 1, -(2**31)]), "int32"),
        (np.zeros(0), "float32"),
        (np.zeros((3, 0), int), "uint8"),
    ],
)
def test_packed_arrays_come_back_in_the_narrowest_type(array, kind):
    text = packed(array)
    again = unpacked(text)
    assert text.startswith(f"{kind} ")
    assert again.shape == array.shape
    assert again.tolist() == array.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "float32 2 eJw=",
        "float64 1 eJw=",
        "float32 1000000000000 eJw=",
        packed(np.array([np.nan])),
        packed(np.ones(4)).replace(" 4 ", " 5 "),
        packed(np.ones(4)).replace(" 4 ", " 3 "),
        packed(np.ones(4)) + "!",
    ],
)
def test_a_damaged_text_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        unpacked(text)
