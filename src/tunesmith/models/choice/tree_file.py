"""The trees of an ensemble as plain values of a file: packed arrays, each in as few bytes as its numbers need.

`feature` has a number for each node: 0 for a leaf, else the feature's number plus 1. A threshold is stored as its index
in the `borders` of its feature, of which there are `counts`: the fit makes at most 255 borders for a feature. `border`
and `value` have a number for each inner node and for each leaf. Values are in units of LEAF_UNIT.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems import Node

from .packed import packed, unpacked
from .trees import LEAF_UNIT, TreeEnsemble

ARRAYS = ("roots", "feature", "counts", "borders", "border", "value")
WHOLE = tuple(name for name in ARRAYS if name != "borders")
_REMEDY = "give a file that `tunesmith heuristics fit --method choice` wrote, or fit again"

Arrays = dict[str, NDArray[Any]]


def plain_of_trees(trees: TreeEnsemble) -> dict[str, Any]:
    """The trees with their base; `trees_of` gives them back. Raises ValueError for leaves that are no multiples of
    LEAF_UNIT."""
    is_inner = np.isfinite(trees.threshold)
    asked, thresholds = trees.feature[is_inner], trees.threshold[is_inner]
    borders = [np.unique(thresholds[asked == feature]) for feature in range(asked.max(initial=-1) + 1)]
    border = np.empty(len(asked), np.intp)
    for feature, known in enumerate(borders):
        border[asked == feature] = np.searchsorted(known, thresholds[asked == feature])
    values = np.rint(trees.value[~is_inner] / LEAF_UNIT)
    if not (np.isfinite(values).all() and (values * LEAF_UNIT == trees.value[~is_inner]).all()):
        raise ValueError("a leaf is no multiple of LEAF_UNIT")
    arrays: Arrays = {
        "roots": trees.roots,
        "feature": np.where(is_inner, trees.feature + 1, 0),
        "counts": np.array([len(known) for known in borders], np.intp),
        "borders": np.concatenate([np.empty(0, np.float32), *borders]),
        "border": border,
        "value": values.astype(np.intp),
    }
    return {"base": trees.base, **{name: packed(arrays[name]) for name in ARRAYS}}


def trees_of(node: Node, name: str, base: float, features: int) -> TreeEnsemble:
    """The trees of a node that has the arrays of `plain_of_trees`, with this many features.

    Every number is checked, so that none points outside. Raises UserError, with the node's location.
    """
    parts = node.fields(name, ("base", *ARRAYS))
    arrays = {array: _array(parts[array], array) for array in ARRAYS}
    for array in ARRAYS:
        if (arrays[array].dtype.kind in "iu") != (array in WHOLE):
            raise parts[array].wrong(f"{array} must have {'whole' if array in WHOLE else 'broken'} numbers", _REMEDY)
    arrays |= {array: arrays[array].astype(np.intp) for array in WHOLE}
    if mistake := next(_mistakes(arrays, features), None):
        array, what = mistake
        raise parts[array].wrong(what, _REMEDY)
    is_inner = arrays["feature"] > 0
    feature = np.maximum(arrays["feature"] - 1, 0)
    before = np.cumsum(arrays["counts"]) - arrays["counts"]
    threshold = np.full(len(feature), np.inf, np.float32)
    threshold[is_inner] = arrays["borders"][before[feature[is_inner]] + arrays["border"]]
    value = np.zeros(len(feature), np.float32)
    value[~is_inner] = arrays["value"] * LEAF_UNIT
    trees = TreeEnsemble(base, arrays["roots"], feature, threshold, value)
    if not _are_trees(trees):
        raise parts["feature"].wrong("there are nodes that no tree has, or that lack children", _REMEDY)
    return trees


def _mistakes(arrays: Arrays, features: int) -> Iterator[tuple[str, str]]:
    """The arrays with a mistake, and what it is. Only the first one counts: what comes after it rests on it."""
    feature, counts = arrays["feature"], arrays["counts"]
    if _is_outside(arrays["roots"], len(feature)):
        yield "roots", f"roots has a number that is none of the {len(feature)} nodes"
    if _is_outside(feature, min(features, len(counts)) + 1):
        yield "feature", f"feature has a number outside of 0 to {min(features, len(counts))}"
    if (counts < 0).any() or counts.sum() != len(arrays["borders"]):
        yield "counts", f"counts of {counts.sum()} borders, and there are {len(arrays['borders'])}"
    if not np.isfinite(arrays["borders"]).all():
        yield "borders", "a border is infinite"
    inner = feature[feature > 0]
    for array, needed in (("border", len(inner)), ("value", len(feature) - len(inner))):
        if len(arrays[array]) != needed:
            yield array, f"{len(arrays[array])} numbers for {needed} nodes"
    if (arrays["border"] < 0).any() or (arrays["border"] >= counts[inner - 1]).any():
        yield "border", "border has an index beyond the borders of its feature"


def _is_outside(numbers: NDArray[np.intp], limit: int) -> bool:
    return bool(len(numbers)) and not 0 <= numbers.min() <= numbers.max() < limit


def _are_trees(trees: TreeEnsemble) -> bool:
    """Whether each part from one root to the next is a whole tree: a root and two children of each inner node, which
    follow it."""
    roots, is_inner = trees.roots, np.isfinite(trees.threshold)
    ends = [*roots.tolist(), len(is_inner)]
    if ends[0]:
        return False
    inner = np.add.reduceat(is_inner, roots, dtype=np.intp) if len(roots) else roots
    has_pairs: bool = ends[1:] == (roots + 1 + 2 * inner).tolist()
    return has_pairs and bool((trees.child[is_inner] > np.flatnonzero(is_inner)).all())


def _array(node: Node, what: str) -> NDArray[Any]:
    try:
        array = unpacked(node.word(what))
    except ValueError as error:
        raise node.wrong(f"{what}: {error}", _REMEDY) from error
    if array.ndim != 1:
        raise node.wrong(f"{what} is no list of numbers", _REMEDY)
    return array
