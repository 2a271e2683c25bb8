"""Grows the trees of a model with scikit-learn, and takes them over as plain arrays.

One boosted ensemble learns the measured times, one those of the vendor's library by its plans, and one the doubts, from
the errors that such models make on products which they were not fitted on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tunesmith.models.choice.trees import GrownTree, TreeEnsemble, ensemble
from tunesmith.records import UserError

from .cells import TimeCells

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

BOOSTED: dict[str, Any] = {"max_features": 0.5, "early_stopping": False}
TIMES = BOOSTED | {
    "max_iter": 400,
    "learning_rate": 0.08,
    "max_leaf_nodes": 255,
    "max_depth": 12,
    "min_samples_leaf": 20,
}
LIBRARY = BOOSTED | {"max_iter": 400, "learning_rate": 0.05, "max_leaf_nodes": 63, "min_samples_leaf": 5}
DOUBTS = BOOSTED | {
    "max_iter": 40,
    "learning_rate": 0.1,
    "max_leaf_nodes": 31,
    "max_depth": 6,
    "min_samples_leaf": 40,
    "l2_regularization": 5.0,
}
VENDOR_WEIGHT = 5.0
"""How much a time of the vendor's library counts beside that of the best own kernel, since every decision rests on it.
"""
HALF_WEIGHT = 0.7
"""A kernel's time counts half if it is longer than the best own time of its product by so much, in logarithms: how slow
the slow ones are decides nothing."""
LEAST_ERROR = 0.02
"""An error counts as this much larger for the doubts, since its logarithm is learned."""
SAME = 1e-4
"""How closely the arrays must predict what scikit-learn predicts. They are single precision, and it is double."""
COMPARED = 4096
"""How many of the lessons the two predict, at most."""


@dataclass(frozen=True)
class GrownTimes:
    """The ensembles that expect the logarithms of times over the products' floors, and those of the vendor's library
    where its plan is known; None if too few plans are."""

    times: TreeEnsemble
    library: TreeEnsemble | None


class Lessons(Protocol):
    """Rows of features, and the logarithms that trees learn from them."""

    @property
    def features(self) -> Floats: ...

    @property
    def logs(self) -> Floats: ...


def grown(cells: TimeCells, seed: int, more: Lessons | None = None) -> GrownTimes:
    """The ensembles that `cells` teach, and `more` the library's. Raises UserError if scikit-learn is not installed,
    and if it lays its trees out in an unknown way."""
    library = None
    if cells.planned.any():
        features, logs = cells.planned_features, cells.logs[cells.planned]
        if more:
            features, logs = np.concatenate([features, more.features]), np.concatenate([logs, more.logs])
        library = grown_library(features, logs, seed)
    return GrownTimes(_grown(TIMES, cells.pairs.features, cells.logs, seed, time_weights(cells)), library)


def grown_library(features: Floats, logs: Floats, seed: int) -> TreeEnsemble:
    """The trees that expect the library's times by its plans. Raises UserError as `grown` does."""
    return _grown(LIBRARY, features, logs, seed)


def grown_doubts(features: Floats, errors: Floats, seed: int) -> TreeEnsemble:
    """The trees that expect the logarithm of an error's size; of LEAST_ERROR, without any error. Raises UserError as
    `grown` does."""
    if not len(errors):
        return ensemble(math.log(LEAST_ERROR), [GrownTree((0,), (0.0,), (-1,), (-1,), (0.0,))])
    return _grown(DOUBTS, features, np.log(np.abs(errors) + LEAST_ERROR), seed)


def time_weights(cells: TimeCells) -> Floats:
    """How much each time counts: VENDOR_WEIGHT, or less the slower a kernel is beside the best of ours."""
    pairs = cells.pairs
    is_vendor = pairs.vendors[pairs.column]
    best = np.full(pairs.shape[0], np.inf)
    np.minimum.at(best, pairs.row[~is_vendor], cells.logs[~is_vendor])
    behind = np.where(is_vendor, 0.0, cells.logs - best[pairs.row])
    return np.where(is_vendor, VENDOR_WEIGHT, 1 / (1 + (behind / HALF_WEIGHT) ** 2))


def _grown(
    settings: dict[str, Any], features: Floats, values: Floats, seed: int, weights: Floats | None = None
) -> TreeEnsemble:
    singles = features.astype(np.float32)
    return _ensemble_of(
        regressor("HistGradientBoostingRegressor")(random_state=seed, **settings).fit(singles, values, weights), singles
    ).rounded()


def _ensemble_of(model: Any, features: Singles) -> TreeEnsemble:
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


def regressor(name: str) -> Any:
    """scikit-learn's class of trees with this name. Raises UserError if it is not installed."""
    try:
        # Imported here because scikit-learn is an extra, and its import takes a second.
        from sklearn import ensemble as trees
    except ImportError as error:
        what = "scikit-learn is not installed, and a choice model is fitted with it"
        raise UserError("--method choice", what, "pip install 'tunesmith[search]'") from error
    return getattr(trees, name)
