"""Grows the trees with scikit-learn, and takes them over as plain arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.models.choice.trees import GrownTree, TreeEnsemble, ensemble
from tunesmith.records import UserError

Floats = NDArray[np.float64]

SETTINGS = {
    "n_estimators": 200,
    "learning_rate": 0.1,
    "max_depth": 6,
    "min_samples_leaf": 5,
    "subsample": 0.6,
    "max_features": 0.3,
}
"""Each tree sees a part of the times and, at each question, a part of the features, so that trees differ."""


def grown(features: Floats, logs: Floats, seed: int) -> TreeEnsemble:
    """Boosted trees that predict `logs` from rows of features. Raises UserError if scikit-learn is not installed."""
    rounded = features.astype(np.float32)
    model = _regressor()(random_state=seed, **SETTINGS).fit(rounded, logs)
    rate = SETTINGS["learning_rate"]
    trees = [
        GrownTree(
            tree.tree_.feature,
            tree.tree_.threshold,
            tree.tree_.children_left,
            tree.tree_.children_right,
            rate * tree.tree_.value.reshape(-1),
        )
        for (tree,) in model.estimators_
    ]
    return ensemble(float(np.mean(logs)), trees)


def _regressor() -> Any:
    try:
        # Imported here because scikit-learn is an extra, and its import takes a second.
        from sklearn.ensemble import GradientBoostingRegressor
    except ImportError as error:
        what = "scikit-learn is not installed, and a choice model is fitted with it"
        raise UserError("--method choice", what, "pip install 'tunesmith[search]'") from error
    return GradientBoostingRegressor
