"""Fits of choice models that are quick enough for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tunesmith.models.choice.fit import growing


@contextmanager
def few_trees(times: int = 40) -> Iterator[None]:
    """With so many trees for times, and fewer in the other ensembles."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"max_iter": times, "learning_rate": 0.09, "max_leaf_nodes": 127, "max_depth": 9}.items():
            patch.setitem(growing.TIMES, name, value)
        patch.setitem(growing.DOUBTS, "max_iter", 20)
        patch.setitem(growing.LIBRARY, "max_iter", 100)
        yield
