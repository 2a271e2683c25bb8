"""The compiled module adds up what NumPy adds up, and takes no nodes that lead outside."""

from __future__ import annotations

import numpy as np
import pytest

from native_build import built
from tunesmith.logic.shipped import FOLDER, SUFFIX, read_shipped_model
from tunesmith.models.choice import trees as trees_module
from tunesmith.models.choice.model_file import model_of
from tunesmith.models.choice.trees import NODE, GrownTree, ensemble
from tunesmith.problems.gemm import gemm_type_named
from tunesmith.records import Problem


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
    monkeypatch.setattr(trees_module, "compiled_trees", lambda: None)
    by_numpy = ensemble(0.5, shape)
    expected = by_numpy.predict(features)
    assert by_numpy._compiled is None
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


def test_a_node_with_two_parents_is_refused(compiled):
    """x0 <= 1: (x0 <= 0: 10, else 20), else the same two leaves."""
    nodes = np.zeros(5, NODE)
    nodes["threshold"] = 1.0, 0.0, 2.0, np.inf, np.inf
    nodes["child"] = 1, 3, 3, 3, 4
    with pytest.raises(ValueError, match="tree 0 is no tree"):
        compiled.Trees(nodes, ROOTS)


@pytest.mark.parametrize("roots", [[1], [2], [-1], [3], [0, 0], [0, 3], [0, 9], [2, 0], [0, 2**31 - 1]])
def test_roots_that_begin_no_trees_are_refused(compiled, roots):
    with pytest.raises(ValueError, match="is no tree"):
        compiled.Trees(a_tree(), np.array(roots, np.int32))


def test_rows_and_sums_that_do_not_fit_are_refused(compiled):
    trees = compiled.Trees(a_tree(feature=(0, 4)), ROOTS)
    trees.add(np.zeros((3, 5), np.float32), np.zeros(3))
    for rows, sums in ((12, 3), (16, 3), (15, 0), (0, 3)):
        with pytest.raises(ValueError, match="rows are not"):
            trees.add(np.zeros(rows, np.float32), np.zeros(sums))


def test_arrays_of_other_types_are_refused(compiled):
    trees, rows, sums = compiled.Trees(a_tree(), ROOTS), np.zeros(6, np.float32), np.zeros(3)
    misplaced = np.zeros(7 * 8 + 1, np.uint8)[1:]
    for call in (
        lambda: compiled.Trees(bytes(16), ROOTS),
        lambda: compiled.Trees(a_tree(), ROOTS.astype(np.int64)),
        lambda: compiled.Trees(a_tree(), ROOTS.astype(np.float32)),
        lambda: trees.add(rows.astype(float), sums),
        lambda: trees.add(rows.astype(np.int32), sums),
        lambda: trees.add(rows, sums.astype(np.int64)),
        lambda: trees.add(rows, misplaced.view(np.float64)[:3]),
        lambda: trees.add(misplaced.view(np.float32)[:6], sums),
    ):
        with pytest.raises(ValueError, match="an array of"):
            call()
    sums.flags.writeable = False
    with pytest.raises((BufferError, ValueError), match="read-only"):
        trees.add(rows, sums)
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        trees.add(rows[::2], np.zeros(3))


def test_trees_are_made_once_and_asked_when_made(compiled):
    with pytest.raises(TypeError, match="already"):
        compiled.Trees(a_tree(), ROOTS).__init__(a_tree(), ROOTS)
    with pytest.raises(TypeError, match="not initialised"):
        compiled.Trees.__new__(compiled.Trees).add(np.zeros(1, np.float32), np.zeros(1))


def test_choices_are_the_same(compiled, monkeypatch):
    """By the model in the package, at sizes that were drawn."""
    path = FOLDER / f"nvidia-h200-bf16{SUFFIX}"
    orders = []
    for module in (None, compiled):
        monkeypatch.setattr(trees_module, "compiled_trees", lambda module=module: module)
        model = model_of(read_shipped_model(path), str(path))
        kinds = list(map(gemm_type_named, model.types))
        random = np.random.default_rng(0)
        problems = [
            Problem(kind, tuple(map(int, sizes))) for kind in kinds for sizes in np.exp2(random.uniform(0, 13, (30, 3)))
        ]
        known = {kind: model.times_of(kind, model.solutions_of(kind)) for kind in kinds}
        orders.append([known[problem.type].ranked(problem) for problem in problems])
    for by_numpy, by_compiled in zip(*orders, strict=True):
        assert [time.solution for time in by_compiled] == [time.solution for time in by_numpy]
