"""Grows the trees of a model with scikit-learn, and takes them over as plain arrays.

A teacher, a large forest of extremely randomised trees, learns the measured times. It predicts better from few products
than boosted trees do, but has far too many nodes for a choice at run time. So it labels many products of the design
that nobody measured, and smaller boosted ensembles learn from these labels: one the teacher's prediction, one how far
its trees disagree on the ratio of a time to the vendor's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.models.choice.trees import GrownTree, TreeEnsemble, ensemble
from tunesmith.records import UserError

from .cells import PairRows, TimeCells

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

TEACHER = {"n_estimators": 100, "min_samples_leaf": 2, "max_features": 0.5}
STUDENT = {"min_samples_leaf": 5, "max_features": 0.5, "early_stopping": False}
TIMES = STUDENT | {"max_iter": 240, "learning_rate": 0.09, "max_leaf_nodes": 127, "max_depth": 9}
DOUBTS = STUDENT | {"max_iter": 40, "learning_rate": 0.2, "max_leaf_nodes": 31, "max_depth": 6}
LEAST_DOUBT = 0.15
"""Trees that agree more closely than this are not trusted more: on 1,265 products of an H100 with their families held
out, a smaller least doubt lost at the same number of regrets."""
SAME = 1e-4
"""How closely the arrays must predict what scikit-learn predicts. They are single precision, and it is double."""
COMPARED = 4096
"""How many of the lessons the two predict, at most."""


@dataclass(frozen=True)
class GrownModel:
    """The ensembles of a model: the logarithms of times over the products' floors, and those of the doubts."""

    times: TreeEnsemble
    doubts: TreeEnsemble


def grown(cells: TimeCells, unmeasured: PairRows, seed: int) -> GrownModel:
    """The ensembles that `cells` teach, by way of pairs that were not measured. Raises UserError if scikit-learn is not
    installed, and if it lays its trees out in an unknown way."""
    forest, boosted = _regressors()
    teacher = forest(random_state=seed, n_jobs=-1, **TEACHER).fit(_singles(cells.pairs), cells.logs)
    lessons = [_lesson(teacher, pairs) for pairs in (cells.pairs, unmeasured) if len(pairs.row)]
    features, logs, doubts = (np.concatenate(parts) for parts in zip(*lessons, strict=True))
    return GrownModel(
        _student(boosted, TIMES, features, logs, seed), _student(boosted, DOUBTS, features, np.log(doubts), seed)
    )


def _lesson(teacher: Any, pairs: PairRows) -> tuple[Singles, Floats, Floats]:
    """The pairs' features, what the teacher expects of each, and how far its trees disagree on the ratio to the
    reference of the same product."""
    features = _singles(pairs)
    of_trees = np.stack([tree.predict(features).astype(np.float32) for tree in teacher.estimators_])
    logs = of_trees.mean(axis=0, dtype=float)
    reference = _references(pairs, logs)
    spreads = (of_trees - of_trees[:, reference]).std(axis=0, dtype=float)
    return features, logs, np.maximum(spreads, LEAST_DOUBT)


def _references(pairs: PairRows, logs: Floats) -> NDArray[np.intp]:
    """For each pair the pair that it is compared with: the vendor's library at the same product; for the vendor itself,
    and where there is none, the expected fastest of the others."""
    is_vendor = pairs.vendors[pairs.column]
    order = np.lexsort((logs, pairs.row))
    vendor, fastest = (np.full(pairs.shape[0], -1, np.intp) for _ in range(2))
    # Written from the slowest to the fastest, so that the fastest stays.
    for chosen, of_kind in ((vendor, order[is_vendor[order]][::-1]), (fastest, order[~is_vendor[order]][::-1])):
        chosen[pairs.row[of_kind]] = of_kind
    others, same = np.where(is_vendor, (fastest[pairs.row], vendor[pairs.row]), (vendor[pairs.row], fastest[pairs.row]))
    references: NDArray[np.intp] = np.where(others < 0, same, others)
    return references


def _student(boosted: Any, settings: dict[str, Any], features: Singles, values: Floats, seed: int) -> TreeEnsemble:
    """Raises UserError if scikit-learn, which has no public name for these trees, lays them out in another way."""
    model = boosted(random_state=seed, **settings).fit(features, values)
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


def _regressors() -> tuple[Any, Any]:
    try:
        # Imported here because scikit-learn is an extra, and its import takes a second.
        from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
    except ImportError as error:
        what = "scikit-learn is not installed, and a choice model is fitted with it"
        raise UserError("--method choice", what, "pip install 'tunesmith[search]'") from error
    return ExtraTreesRegressor, HistGradientBoostingRegressor
