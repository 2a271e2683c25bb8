"""The compiled module adds up what NumPy adds up, and takes no nodes that lead outside."""

from __future__ import annotations

import numpy as np
import pytest

from native_build import built
from tunesmith.models.choice import trees as trees_module
from tunesmith.models.choice.trees import NODE, GrownTree, ensemble


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    module = built(tmp_path_factory.mktemp("native"), "tunesmith_trees")
    if isinstance(module, str):
        pytest.skip(module)
    return module


def grown(random, depth, features):
    """A tree whose branches end at random."""
    tree = GrownTree(*([] for _ in range(5)))

    def add(levels):
        index = len(tree.feature)
        for values in (tree.feature, tree.threshold, tree.value):
            values.append(0)
        for side in (tree.left, tree.right):
            side.append(-1)
        if levels and random.random() < 0.8:
            tree.feature[index], tree.threshold[index] = int(random.integers(features)), float(random.normal())
            tree.left[index], tree.right[index] = add(levels - 1), add(levels - 1)
        else:
            tree.value[index] = float(random.normal())
        return index

    add(depth)
    return tree


@pytest.mark.parametrize("rows", [0, 1, 7, 256, 257, 600])
def test_the_sums_are_numpys(compiled, monkeypatch, rows):
    random = np.random.default_rng(rows)
    shape = [grown(random, depth, 5) for depth in (0, 1, 3, 6, 9, 9, 9)]
    features = random.normal(size=(rows, 8))
    features[:3] = np.nan
    expected = ensemble(0.5, shape).predict(features)
    monkeypatch.setattr(trees_module, "compiled_trees", lambda: compiled)
    found = ensemble(0.5, shape)
    assert found.predict(features) == pytest.approx(expected, abs=1e-12)
    parts = found.split(3)
    assert parts[0].predict(features) + parts[1].predict(features) == pytest.approx(expected, abs=1e-12)
    assert found._compiled is not None


def a_tree(**changes):
    """x0 <= 1: 10, else 20."""
    nodes = np.array([(1.0, 0, 1, 0.0), (np.inf, 0, 1, 10.0), (np.inf, 0, 2, 20.0)], NODE)
    for name, (index, value) in changes.items():
        nodes[name][index] = value
    return nodes


ROOTS = np.zeros(1, np.int32)


def test_a_row_at_the_threshold_goes_to_the_first_child(compiled):
    sums = np.array([0.0, 1.0, 2.0])
    compiled.Trees(a_tree(), ROOTS).add(np.array([0.5, 1.0, 1.5], np.float32), sums)
    assert sums.tolist() == [10.0, 11.0, 22.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"child": (0, 2)},
        {"child": (0, 0)},
        {"child": (0, -1)},
        {"child": (1, 2)},
        {"child": (2, 3)},
        {"feature": (0, -1)},
        {"threshold": (0, np.nan)},
        {"threshold": (1, 0.0)},
        {"threshold": (0, np.inf)},
    ],
)
def test_nodes_that_lead_elsewhere_are_refused(compiled, changes):
    with pytest.raises(ValueError, match="tree 0 is no tree"):
        compiled.Trees(a_tree(**changes), ROOTS)


@pytest.mark.parametrize("roots", [[1], [-1], [3], [0, 0], [0, 3], [0, 9], [2, 0]])
def test_roots_that_begin_no_trees_are_refused(compiled, roots):
    with pytest.raises(ValueError, match="is no tree"):
        compiled.Trees(a_tree(), np.array(roots, np.int32))


def test_arrays_of_other_lengths_are_refused(compiled):
    with pytest.raises(ValueError, match="not of nodes"):
        compiled.Trees(bytes(15), ROOTS)
    with pytest.raises(ValueError, match="not of nodes"):
        compiled.Trees(a_tree(), bytes(3))
    trees = compiled.Trees(a_tree(feature=(0, 4)), ROOTS)
    trees.add(np.zeros((3, 5), np.float32), np.zeros(3))
    for rows, sums in ((12, 24), (15, 16), (15, 23), (15, 0), (0, 24)):
        with pytest.raises(ValueError, match="rows are not"):
            trees.add(bytes(4 * rows), bytearray(sums))
    with pytest.raises(TypeError):
        trees.__init__(a_tree(), ROOTS)
