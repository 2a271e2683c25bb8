"""A shallow tree of cut points, for products whose tiles no single metric can tell apart.

Each node takes the cut point, among all features, that lowers the loss most. The search is exact, so the tree accounts
for the cost of a wrong configuration. (scikit-learn's trees, which are optional here, have no such loss.) The tree is
grown greedily, as in Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .cross_validation import MOST_BOUNDARIES
from .losses import Floats, Loss
from .segments import segmentations

DEEPEST = 4
"""The most questions from the root to a leaf, so that a person can still follow them."""
LEAST_PRODUCTS = 5
"""The fewest products of a leaf."""
ROUNDING = 1e-9
"""Relative to the root's loss: a smaller gain is rounding noise of the running sums."""


@dataclass(frozen=True, slots=True)
class TreeLeaf:
    """The decision for the products of this leaf."""

    decision: float


@dataclass(frozen=True, slots=True)
class TreeSplit:
    """Products whose feature is below `cut` go to `below`, the others to `beyond`."""

    feature: str
    cut: float
    below: TreeLeaf | TreeSplit
    beyond: TreeLeaf | TreeSplit


TreeNode = TreeLeaf | TreeSplit


def grown(values: Mapping[str, Floats], loss: Loss, depth: int, weights: Floats | None = None) -> TreeNode:
    """A tree of at most `depth` questions. `values` has each feature's values, one for each product.

    A product of weight 0 is ignored. A node becomes a leaf if no cut point lowers its loss by more than rounding.
    """
    weights = np.ones(loss.count) if weights is None else weights
    root_loss = float(loss.cost(loss.sums(weights).sum(axis=0, keepdims=True))[0])
    return _grown(_Growing(values, loss, weights, ROUNDING * root_loss), np.ones(loss.count, bool), depth)


def leaf_numbers(tree: TreeNode, values: Mapping[str, Floats]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The leaf of each product, counted from 0 in the order of `leaves`."""
    if isinstance(tree, TreeLeaf):
        return np.zeros(len(next(iter(values.values()))), dtype=np.int64)
    beyond = values[tree.feature] >= tree.cut
    below_count = len(leaves(tree.below))
    return np.where(beyond, below_count + leaf_numbers(tree.beyond, values), leaf_numbers(tree.below, values))


def leaves(tree: TreeNode) -> tuple[TreeLeaf, ...]:
    """The leaves, from `below` to `beyond`."""
    return (tree,) if isinstance(tree, TreeLeaf) else (*leaves(tree.below), *leaves(tree.beyond))


def tree_decisions(tree: TreeNode, values: Mapping[str, Floats]) -> Floats:
    """The decision for each product."""
    return np.array([leaf.decision for leaf in leaves(tree)])[leaf_numbers(tree, values)]


@dataclass(frozen=True)
class _Growing:
    """The inputs that all nodes of a tree share. A question must lower the loss by more than `least_gain`."""

    values: Mapping[str, Floats]
    loss: Loss
    weights: Floats
    least_gain: float


def _grown(growing: _Growing, inside: np.ndarray[tuple[int], np.dtype[np.bool_]], depth: int) -> TreeNode:
    loss = growing.loss
    rows = np.flatnonzero(inside & (growing.weights > 0))
    sums = loss.sums(growing.weights)[rows]
    total = sums.sum(axis=0, keepdims=True)
    leaf = TreeLeaf(float(loss.decisions(total)[0]))
    if depth == 0 or len(rows) < 2 * LEAST_PRODUCTS:
        return leaf
    node_loss = _NodeLoss(loss, sums)
    best, feature, cut = float(loss.cost(total)[0]) - growing.least_gain, "", 0.0
    for name, column in growing.values.items():
        split = segmentations(
            column[rows], node_loss, 2, most_boundaries=MOST_BOUNDARIES, least_products=LEAST_PRODUCTS
        ).get(2)
        if split and split.loss < best:
            best, feature, (cut,) = split.loss, name, split.cuts
    if not feature:
        return leaf
    beyond = growing.values[feature] >= cut
    below_tree, beyond_tree = (_grown(growing, inside & side, depth - 1) for side in (~beyond, beyond))
    return TreeSplit(feature, cut, below_tree, beyond_tree)


@dataclass(frozen=True)
class _NodeLoss:
    """The loss over the products of a node. `node_sums` are the sums of these products."""

    loss: Loss
    node_sums: Floats

    @property
    def count(self) -> int:
        return len(self.node_sums)

    def sums(self, weights: Floats) -> Floats:
        return np.asarray(self.node_sums * weights[:, None])

    def cost(self, sums: Floats) -> Floats:
        return self.loss.cost(sums)

    def decisions(self, sums: Floats) -> Floats:
        return self.loss.decisions(sums)
