"""Trees come back from the values of a file with equal numbers, and a file whose numbers are no trees is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith.models.choice.fit.growing import TIMES, _ensemble_of
from tunesmith.models.choice.packed import packed, unpacked
from tunesmith.models.choice.tree_file import ARRAYS, plain_of_trees, trees_of
from tunesmith.models.choice.trees import LEAF_UNIT, GrownTree, ensemble
from tunesmith.problems.yaml import node_of
from tunesmith.records import UserError

STUMP = GrownTree([2, 0, 0], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 3 * LEAF_UNIT, -LEAF_UNIT])
UNEVEN = GrownTree([0, 0, 1, 0, 0], [0.0, 0, 2.0, 0, 0], [1, -1, 3, -1, -1], [2, -1, 4, -1, -1], [0, 1, 0, 0.5, 2])
LEAF = GrownTree([0], [0.0], [-1], [-1], [0.25])
FEATURES = 5


def again(plain, features=FEATURES):
    return trees_of(node_of(plain, "kept"), "times", plain["base"], features)


def assert_same(trees, other):
    assert trees.base == other.base
    for array in ("roots", "feature", "threshold", "value"):
        np.testing.assert_array_equal(getattr(trees, array), getattr(other, array))


@pytest.mark.parametrize("trees", [[STUMP, UNEVEN, LEAF, STUMP], [LEAF], [LEAF, LEAF], [UNEVEN], []])
def test_trees_come_back(trees):
    made = ensemble(1.5, trees)
    assert_same(made, again(plain_of_trees(made)))


def test_trees_that_scikit_learn_grew_come_back_in_few_bytes():
    sklearn = pytest.importorskip("sklearn.ensemble")
    random = np.random.default_rng(0)
    features = random.normal(size=(900, FEATURES)).astype(np.float32).astype(float)
    values = np.sin(3 * features[:, 0]) + features[:, 1] * (features[:, 2] > 0)
    fitted = sklearn.HistGradientBoostingRegressor(random_state=3, **TIMES).fit(features, values)
    trees = _ensemble_of(fitted, features).rounded()
    plain = plain_of_trees(trees)
    assert_same(trees, again(plain))
    # A feature's number, a border's and a value: at most four bytes for a node beside the borders, before compression.
    of_nodes = sum(len(unpacked(plain[name]).tobytes()) for name in ("feature", "border", "value"))
    assert of_nodes <= 4 * len(trees.feature)


def test_more_borders_of_a_feature_than_a_byte_has_come_back():
    borders = np.linspace(-3, 3, 700).astype(np.float32)
    trees = [GrownTree([1, 0, 0], [border, 0, 0], [1, -1, -1], [2, -1, -1], [0, 1, 2]) for border in borders.tolist()]
    made = ensemble(0.0, trees)
    plain = plain_of_trees(made)
    assert plain["border"].startswith("int16 ")
    assert_same(made, again(plain))


# The two trees' nodes: root, leaf, leaf; root, leaf, inner, leaf, leaf.
@pytest.mark.parametrize(
    ("array", "changes", "what"),
    [
        ("roots", {0: -1}, "none of the 8 nodes"),
        ("roots", {1: 8}, "none of the 8 nodes"),
        ("roots", {0: 1}, "nodes that no tree has"),
        ("roots", {1: 0}, "nodes that no tree has"),
        ("roots", {1: 4}, "nodes that no tree has"),
        ("feature", {0: 4}, "feature has a number outside of 0 to 3"),
        ("feature", {0: -1}, "feature has a number outside of 0 to 3"),
        ("feature", {0: 0, 1: 3}, "nodes that no tree has"),
        ("feature", {5: 0, 7: 2}, "nodes that no tree has"),
        ("feature", {0: 0}, "3 numbers for 2 nodes"),
        ("counts", {0: 2}, "counts of 4 borders, and there are 3"),
        ("counts", {0: -1, 1: 3}, "counts of 3 borders"),
        ("borders", {0: np.inf}, "a border is infinite"),
        ("border", {0: 1}, "beyond the borders of its feature"),
        ("border", {0: -1}, "beyond the borders of its feature"),
    ],
)
def test_no_number_leads_outside(array, changes, what):
    plain = plain_of_trees(ensemble(0.0, [STUMP, UNEVEN]))
    numbers = np.array(unpacked(plain[array]), float if array == "borders" else int)
    numbers[list(changes)] = list(changes.values())
    changed = plain | {array: packed(numbers)}
    with pytest.raises(UserError, match=what) as error:
        again(changed)
    assert error.value.location == "kept"


@pytest.mark.parametrize("array", ARRAYS)
def test_a_list_of_another_length_or_kind_is_refused(array):
    plain = plain_of_trees(ensemble(0.0, [STUMP, UNEVEN]))
    numbers = unpacked(plain[array])
    for wrong in (numbers[:-1], np.append(numbers, numbers[-1:]), numbers.reshape(1, -1)):
        with pytest.raises(UserError, match=r"^kept: "):
            again(plain | {array: packed(wrong)})
    other = packed(numbers.astype(int if array == "borders" else float))
    with pytest.raises(UserError, match=f"{array} must have (whole|broken) numbers"):
        again(plain | {array: other})
    with pytest.raises(UserError, match=f"{array}: "):
        again(plain | {array: packed(numbers.astype(float)).replace("float32", "float16")})


@pytest.mark.parametrize("value", [LEAF_UNIT / 2, 0.3, np.nan, np.inf, -np.inf])
def test_a_leaf_between_two_multiples_is_not_written(value):
    with pytest.raises(ValueError, match="no multiple"):
        plain_of_trees(ensemble(0.0, [GrownTree([0], [0.0], [-1], [-1], [value])]))


def test_a_leaf_beyond_32_bits_is_not_written():
    with pytest.raises(ValueError, match="beyond 32 bits"):
        plain_of_trees(ensemble(0.0, [GrownTree([0], [0.0], [-1], [-1], [2.0**20])]))


def test_a_feature_that_the_model_lacks_is_refused():
    plain = plain_of_trees(ensemble(0.0, [STUMP, UNEVEN]))
    assert len(again(plain, features=3).roots) == 2
    with pytest.raises(UserError, match="feature has a number outside of 0 to 2"):
        again(plain, features=2)
