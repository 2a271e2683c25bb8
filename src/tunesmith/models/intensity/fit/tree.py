"""A shallow tree of cut points: the alternative where no single metric tells tiles apart.

A node takes the cut point, of all features, that lowers the loss most, found exactly; so the tree knows what a wrong
configuration costs. (scikit-learn's trees, which are optional here, have no such loss.) The tree is grown greedily, as
in Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .cross_validation import MOST_BOUNDARIES
from .losses import Floats, Loss
from .segments import segmentations

DEEPEST = 4
"""Questions from the root to a leaf: what a person can still follow."""
LEAST_PRODUCTS = 5
"""Of a leaf."""
ROUNDING = 1e-9
"""Of the root's loss: a question that gains less follows noise of the running sums."""


@dataclass(frozen=True, slots=True)
class TreeLeaf:
    """A decision for the products that come here."""

    decision: float


@dataclass(frozen=True, slots=True)
class TreeSplit:
    """Products whose feature is below `cut` go one way, the others go the other."""

    feature: str
    cut: float
    below: TreeLeaf | TreeSplit
    beyond: TreeLeaf | TreeSplit


TreeNode = TreeLeaf | TreeSplit


def grown(values: Mapping[str, Floats], loss: Loss, depth: int, weights: Floats | None = None) -> TreeNode:
    """A tree of at most `depth` questions; `values` has each feature's, one a product.

    A product of weight 0 has no say. A node becomes a leaf where no cut point lowers its loss by more than rounding.
    """
    weighted = np.ones(loss.count) if weights is None else weights
    root = float(loss.cost(loss.sums(weighted).sum(axis=0, keepdims=True))[0])
    return _grown(_Growing(values, loss, weighted, ROUNDING * root), np.ones(loss.count, bool), depth)


def leaf_numbers(tree: TreeNode, values: Mapping[str, Floats]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The leaf of each product, counted from 0 in the order of `leaves`."""
    if isinstance(tree, TreeLeaf):
        return np.zeros(len(next(iter(values.values()))), dtype=np.int64)
    beyond = values[tree.feature] >= tree.cut
    below_count = len(leaves(tree.below))
    return np.where(beyond, below_count + leaf_numbers(tree.beyond, values), leaf_numbers(tree.below, values))


def leaves(tree: TreeNode) -> tuple[TreeLeaf, ...]:
    """From the left, where features are small, to the right."""
    return (tree,) if isinstance(tree, TreeLeaf) else (*leaves(tree.below), *leaves(tree.beyond))


def tree_decisions(tree: TreeNode, values: Mapping[str, Floats]) -> Floats:
    """The decision for each product."""
    return np.array([leaf.decision for leaf in leaves(tree)])[leaf_numbers(tree, values)]


@dataclass(frozen=True)
class _Growing:
    """What all nodes of a tree share; a question must lower the loss by more than `least_gain`."""

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
    part = _NodeLoss(loss, sums)
    best, feature, cut = float(loss.cost(total)[0]) - growing.least_gain, "", 0.0
    for name, column in growing.values.items():
        split = segmentations(
            column[rows], part, 2, most_boundaries=MOST_BOUNDARIES, least_products=LEAST_PRODUCTS
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
    """The loss of a node's products, whose sums are known."""

    loss: Loss
    part: Floats

    @property
    def count(self) -> int:
        return len(self.part)

    def sums(self, weights: Floats) -> Floats:
        return np.asarray(self.part * weights[:, None])

    def cost(self, sums: Floats) -> Floats:
        return self.loss.cost(sums)

    def decisions(self, sums: Floats) -> Floats:
        return self.loss.decisions(sums)
