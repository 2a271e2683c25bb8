"""A boosted ensemble of regression trees as plain arrays, evaluated for many rows at once without scikit-learn.

`pip install ./native` gives a compiled module that walks the trees; without it, NumPy does.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]
NODE = np.dtype([("threshold", "=f4"), ("feature", "=i4"), ("child", "=i4"), ("value", "=f4")])
"""A node as the compiled module takes it."""
LEAF_UNIT = 2.0**-14
"""Leaves are rounded to multiples of this. The sum of 400 rounded leaves is typically 0.0004 off."""


@dataclass(frozen=True)
class TreeEnsemble:
    """The sum of `base` and one leaf's value of each tree.

    The nodes of all trees are numbered tree by tree, and in a tree level by level; `roots` has each root's number.
    A row goes from node i to node `child[i]` if its feature `feature[i]` is at most `threshold[i]`, else to
    `child[i] + 1`. A leaf's threshold is infinite, and its child is the leaf itself.
    """

    base: float
    roots: Indices
    feature: Indices
    threshold: NDArray[np.float32]
    value: NDArray[np.float32]

    @cached_property
    def child(self) -> Indices:
        """The first child of each node. Level by level, the children of a tree follow its root in pairs."""
        is_inner = np.isfinite(self.threshold)
        sizes = np.diff(self.roots, append=len(is_inner))
        pairs_before = np.cumsum(is_inner) - is_inner
        in_tree = pairs_before - np.repeat(pairs_before[self.roots], sizes)
        children: Indices = np.repeat(self.roots, sizes) + 1 + 2 * in_tree
        return np.where(is_inner, children, np.arange(len(is_inner)))

    @cached_property
    def depth(self) -> int:
        """How many nodes the deepest leaf is below its root."""
        depth, level = 0, self.roots
        while len(inner := level[np.isfinite(self.threshold[level])]):
            depth, level = depth + 1, np.concatenate([self.child[inner], self.child[inner] + 1])
        return depth

    def predict(self, rows: Floats) -> Floats:
        """The prediction for each row of features."""
        values = np.ascontiguousarray(rows, np.float32)
        if self._compiled is not None:
            sums = np.full(len(values), self.base, np.float64)
            self._compiled.add(values, sums)
            return sums
        flat, starts = values.reshape(-1), np.arange(len(values))[:, None] * values.shape[1]
        node = np.broadcast_to(self.roots, (len(values), len(self.roots)))
        # No index is outside, so that `wrap`, the quickest mode, changes none.
        for _ in range(self.depth):
            feature, threshold = self.feature.take(node, mode="wrap"), self.threshold.take(node, mode="wrap")
            node = self.child.take(node, mode="wrap") + (flat.take(starts + feature, mode="wrap") > threshold)
        predicted: Floats = self.base + self.value.take(node).sum(axis=1, dtype=np.float64)
        return predicted

    @cached_property
    def _compiled(self) -> Any:
        """The trees for the compiled module; None if it is not installed."""
        if (module := compiled_trees()) is None:
            return None
        nodes = np.empty(len(self.feature), NODE)
        for name in nodes.dtype.names or ():
            nodes[name] = getattr(self, name)
        return module.Trees(nodes, self.roots.astype(np.int32))

    def split(self, count: int) -> tuple[TreeEnsemble, TreeEnsemble]:
        """The first `count` trees with the base, and the others. Their predictions add up to that of all, but for
        rounding."""
        first = self.roots[count] if count < len(self.roots) else len(self.feature)
        before = self.feature[:first], self.threshold[:first], self.value[:first]
        after = self.feature[first:], self.threshold[first:], self.value[first:]
        return (
            TreeEnsemble(self.base, self.roots[:count], *before),
            TreeEnsemble(0.0, self.roots[count:] - first, *after),
        )

    def rounded(self) -> TreeEnsemble:
        """The same with leaves' values that are multiples of LEAF_UNIT, which a file keeps."""
        return replace(self, value=(np.rint(self.value / LEAF_UNIT) * LEAF_UNIT).astype(np.float32))


@cache
def compiled_trees() -> Any:
    """The compiled module; None if it is not installed."""
    try:
        return importlib.import_module("tunesmith_trees")
    except ImportError:
        return None


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
    value: list[float] = []
    roots = []
    for tree in trees:
        roots.append(len(feature))
        level = [0]
        while level:
            below: list[int] = []
            for node in level:
                is_leaf = tree.left[node] < 0
                feature.append(0 if is_leaf else int(tree.feature[node]))
                threshold.append(np.inf if is_leaf else float(tree.threshold[node]))
                value.append(float(tree.value[node]) if is_leaf else 0.0)
                below += [] if is_leaf else [int(tree.left[node]), int(tree.right[node])]
            level = below
    return TreeEnsemble(
        base,
        np.array(roots, np.intp),
        np.array(feature, np.intp),
        np.array(threshold, np.float32),
        np.array(value, np.float32),
    )
