"""A boosted ensemble of regression trees as plain arrays, evaluated for many rows at once without scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


@dataclass(frozen=True)
class TreeEnsemble:
    """The sum of `base` and one leaf's value of each tree.

    All nodes of all trees are numbered; `roots` has the number of each tree's root. A row goes from node i to node
    `child[i]` if its feature `feature[i]` is at most `threshold[i]`, else to `child[i] + 1`. A leaf's child is the leaf
    itself, and its threshold is infinite. No leaf is more than `depth` nodes below a root.
    """

    base: float
    roots: Indices
    feature: Indices
    threshold: NDArray[np.float32]
    child: Indices
    value: NDArray[np.float32]
    depth: int

    def predict(self, rows: Floats) -> Floats:
        """The prediction for each row of features."""
        values = np.ascontiguousarray(rows, np.float32)
        flat, starts = values.reshape(-1), np.arange(len(values))[:, None] * values.shape[1]
        node = np.broadcast_to(self.roots, (len(values), len(self.roots)))
        # No index is outside, so that `wrap`, the quickest mode, changes none.
        for _ in range(self.depth):
            feature, threshold = self.feature.take(node, mode="wrap"), self.threshold.take(node, mode="wrap")
            node = self.child.take(node, mode="wrap") + (flat.take(starts + feature, mode="wrap") > threshold)
        predicted: Floats = self.base + self.value.take(node).sum(axis=1, dtype=np.float64)
        return predicted


@dataclass(frozen=True, slots=True)
class GrownTree:
    """One tree as scikit-learn numbers its nodes: `left` and `right` are the children, -1 at a leaf."""

    feature: Sequence[int]
    threshold: Sequence[float]
    left: Sequence[int]
    right: Sequence[int]
    value: Sequence[float]


def ensemble(base: float, trees: Sequence[GrownTree]) -> TreeEnsemble:
    """The trees as one ensemble. Siblings get consecutive numbers."""
    feature: list[int] = []
    threshold: list[float] = []
    child: list[int] = []
    value: list[float] = []
    roots, deepest = [], 0
    for tree in trees:
        roots.append(len(child))
        level, depth = [0], 0
        while level:
            deepest = max(deepest, depth)
            below: list[int] = []
            first_below = len(child) + len(level)
            for node in level:
                is_leaf = tree.left[node] < 0
                child.append(len(child) if is_leaf else first_below + len(below))
                feature.append(0 if is_leaf else int(tree.feature[node]))
                threshold.append(np.inf if is_leaf else float(tree.threshold[node]))
                value.append(float(tree.value[node]) if is_leaf else 0.0)
                below += [] if is_leaf else [int(tree.left[node]), int(tree.right[node])]
            level, depth = below, depth + 1
    return TreeEnsemble(
        base,
        np.array(roots, np.intp),
        np.array(feature, np.intp),
        np.array(threshold, np.float32),
        np.array(child, np.intp),
        np.array(value, np.float32),
        deepest,
    )
