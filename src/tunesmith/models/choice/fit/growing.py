"""Grows the trees of a model with scikit-learn, and takes them over as plain arrays.

Teachers, large forests of extremely randomised trees, learn the measured times: one those of the vendor's library, one
how much longer our own kernels take than their estimate. They predict better from few products than boosted trees do,
but have far too many nodes for a choice at run time. So they label many products of the design that nobody measured,
and smaller boosted ensembles learn from these labels: one the teachers' predictions, one how far their trees disagree
on the ratio of a time to the vendor's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.models.choice.features import PAIR_FEATURES
from tunesmith.models.choice.trees import GrownTree, TreeEnsemble, ensemble
from tunesmith.records import UserError

from .cells import PairRows, TimeCells

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

TEACHER: dict[str, Any] = {"n_estimators": 100, "min_samples_leaf": 2, "max_features": 1.0}
STUDENT = {"min_samples_leaf": 5, "max_features": 0.5, "early_stopping": False}
TIMES = STUDENT | {"max_iter": 400, "learning_rate": 0.08, "max_leaf_nodes": 255, "max_depth": 12}
LIBRARY = STUDENT | {"max_iter": 300, "learning_rate": 0.05, "max_leaf_nodes": 31}
DOUBTS = STUDENT | {"max_iter": 40, "learning_rate": 0.2, "max_leaf_nodes": 31, "max_depth": 6}
LEAST_DOUBT = 0.05
"""Trees that agree more closely than this are not trusted more."""
VENDOR_WEIGHT = 5.0
"""How much a time of the vendor's library counts beside that of one of many own kernels, since every decision rests on
it. On 1,265 products of an H200 with families held out, the expected times of the library were 0.168 off at a weight of
1 and 0.160 at 5 (root mean square of logarithms, 0.159 for the teacher). Own kernels were chosen as well as before."""
SAME = 1e-4
"""How closely the arrays must predict what scikit-learn predicts. They are single precision, and it is double."""
COMPARED = 4096
"""How many of the lessons the two predict, at most."""


@dataclass(frozen=True)
class GrownModel:
    """The ensembles of a model: the logarithms of times over the products' floors, those of the doubts, and those of
    the vendor's library where its plan is known; None if too few plans are."""

    times: TreeEnsemble
    doubts: TreeEnsemble
    library: TreeEnsemble | None


def grown(cells: TimeCells, unmeasured: PairRows, seed: int) -> GrownModel:
    """The ensembles that `cells` teach, by way of pairs that were not measured. Raises UserError if scikit-learn is not
    installed, and if it lays its trees out in an unknown way."""
    forest, boosted = regressors()
    teachers = _Teachers.taught(forest, cells, seed)
    known = teachers.know(unmeasured)
    lessons = [_lesson(teachers, pairs) for pairs in (cells.pairs, unmeasured.only(known)) if len(pairs.row)]
    features, logs, doubts, is_vendor = (np.concatenate(parts) for parts in zip(*lessons, strict=True))
    weights = np.where(is_vendor, VENDOR_WEIGHT, 1.0)

    def student(settings: dict[str, Any], values: Floats) -> TreeEnsemble:
        fitted = boosted(random_state=seed, **settings).fit(features, values, weights)
        return _student(fitted, features).rounded()

    return GrownModel(student(TIMES, logs), student(DOUBTS, np.log(doubts)), _library(boosted, cells, seed))


def _library(boosted: Any, cells: TimeCells, seed: int) -> TreeEnsemble | None:
    """The trees of the vendor's library, which learn from its times themselves: they are few, and the plans of products
    that nobody measured are not known."""
    if not cells.planned.any():
        return None
    features = cells.planned_features.astype(np.float32)
    fitted = boosted(random_state=seed, **LIBRARY).fit(features, cells.logs[cells.planned])
    return _student(fitted, features).rounded()


@dataclass(frozen=True)
class _Teachers:
    """The forests of the vendor's library and of our own kernels; None for one without a time.

    The library does not say how it computes a product, so its trees know its times alone. Our kernels do what their
    configurations say, so their trees learn how much longer they take than their estimate.
    """

    vendor: Any
    own: Any

    @staticmethod
    def taught(forest: Any, cells: TimeCells, seed: int) -> _Teachers:
        features, is_vendor = _singles(cells.pairs), _is_vendor(cells.pairs)
        over = cells.logs - np.where(is_vendor, 0.0, _estimates(features))

        def of(kind: NDArray[np.bool_]) -> Any:
            model = forest(random_state=seed, n_jobs=-1, **TEACHER)
            return model.fit(features[kind], over[kind]) if kind.any() else None

        return _Teachers(of(is_vendor), of(~is_vendor))

    def know(self, pairs: PairRows) -> NDArray[np.bool_]:
        """Which of the pairs have a forest."""
        return np.where(_is_vendor(pairs), self.vendor is not None, self.own is not None)

    def of_trees(self, pairs: PairRows) -> Singles:
        """The logarithms that each tree expects, a row for each tree, a column for each pair."""
        features, is_vendor = _singles(pairs), _is_vendor(pairs)
        logs = np.zeros((TEACHER["n_estimators"], len(features)), np.float32)
        for teacher, kind in ((self.vendor, is_vendor), (self.own, ~is_vendor)):
            if kind.any():
                logs[:, kind] = [tree.predict(features[kind]) for tree in teacher.estimators_]
        logs[:, ~is_vendor] += _estimates(features[~is_vendor])
        return logs


def _is_vendor(pairs: PairRows) -> NDArray[np.bool_]:
    return pairs.vendors[pairs.column]


def _estimates(features: Singles) -> Singles:
    """The natural logarithms of the estimates over the products' floors."""
    return features[:, PAIR_FEATURES.index("estimate") - len(PAIR_FEATURES)] * np.float32(math.log(2))


def _lesson(teachers: _Teachers, pairs: PairRows) -> tuple[Singles, Floats, Floats, NDArray[np.bool_]]:
    """The pairs' features, what the teachers expect of each, how far their trees disagree on the ratio to the reference
    of the same product, and whether it is the vendor's library."""
    features, of_trees = _singles(pairs), teachers.of_trees(pairs)
    logs = of_trees.mean(axis=0, dtype=float)
    reference = _references(pairs, logs)
    spreads = (of_trees - of_trees[:, reference]).std(axis=0, dtype=float)
    return features, logs, np.maximum(spreads, LEAST_DOUBT), _is_vendor(pairs)


def _references(pairs: PairRows, logs: Floats) -> NDArray[np.intp]:
    """For each pair the pair that it is compared with: the vendor's library at the same product; for the vendor itself,
    and where there is none, the expected fastest of the others."""
    is_vendor = _is_vendor(pairs)
    order = np.lexsort((logs, pairs.row))
    vendor, fastest = (np.full(pairs.shape[0], -1, np.intp) for _ in range(2))
    # Written from the slowest to the fastest, so that the fastest stays.
    for chosen, of_kind in ((vendor, order[is_vendor[order]][::-1]), (fastest, order[~is_vendor[order]][::-1])):
        chosen[pairs.row[of_kind]] = of_kind
    others, same = np.where(is_vendor, (fastest[pairs.row], vendor[pairs.row]), (vendor[pairs.row], fastest[pairs.row]))
    references: NDArray[np.intp] = np.where(others < 0, same, others)
    return references


def _student(model: Any, features: Singles) -> TreeEnsemble:
    """A fitted model's trees. Raises UserError if scikit-learn, which has no public name for these trees, lays them out
    in another way."""
    try:
        base = float(np.ravel(model._baseline_prediction)[0])
        found = ensemble(base, [_tree(predictor) for (predictor,) in model._predictors])
        some = features[:: -(-len(features) // COMPARED)]
        same = np.allclose(found.predict(some.astype(float)), model.predict(some), atol=SAME)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        same = False
    if not same:
        what = "its trees are laid out in a way that this tunesmith does not know"
        raise UserError(f"scikit-learn {_version()}", what, "install scikit-learn 1.9, or a newer tunesmith")
    return found


def _tree(predictor: Any) -> GrownTree:
    nodes = predictor.nodes
    left, right = (np.where(nodes["is_leaf"], -1, nodes[side].astype(np.int64)).tolist() for side in ("left", "right"))
    feature, value = (nodes[name].tolist() for name in ("feature_idx", "value"))
    return GrownTree(feature, _rounded_down(nodes["num_threshold"]).tolist(), left, right, value)


def _rounded_down(thresholds: Floats) -> Singles:
    """The thresholds in single precision, in which the features are: rounded up, one could become the next feature."""
    singles = thresholds.astype(np.float32)
    return np.where(singles > thresholds, np.nextafter(singles, np.float32(-np.inf)), singles)


def _version() -> str:
    import sklearn

    return str(sklearn.__version__)


def _singles(pairs: PairRows) -> Singles:
    return pairs.features.astype(np.float32)


def regressors() -> tuple[Any, Any]:
    """scikit-learn's extremely randomised trees, and its boosted ones. Raises UserError if it is not installed."""
    try:
        # Imported here because scikit-learn is an extra, and its import takes a second.
        from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
    except ImportError as error:
        what = "scikit-learn is not installed, and a choice model is fitted with it"
        raise UserError("--method choice", what, "pip install 'tunesmith[search]'") from error
    return ExtraTreesRegressor, HistGradientBoostingRegressor
