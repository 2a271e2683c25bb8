"""Fits of choice models that are quick enough for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tunesmith.models.choice.fit import fitting, growing


@contextmanager
def few_trees(times: int = 40, unmeasured: int = 40) -> Iterator[None]:
    """With so many trees for times, fewer in the other ensembles, and so many products that nobody measured."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(growing.TEACHER, "n_estimators", 25)
        for name, value in {"max_iter": times, "learning_rate": 0.09, "max_leaf_nodes": 127, "max_depth": 9}.items():
            patch.setitem(growing.TIMES, name, value)
        patch.setitem(growing.DOUBTS, "max_iter", 20)
        patch.setitem(growing.LIBRARY, "max_iter", 100)
        patch.setattr(fitting, "UNMEASURED", unmeasured)
        yield
