"""Fits of these tests are quick: what a fit is good for is tested with the models."""

from __future__ import annotations

from functools import partial

import pytest

from tunesmith.models.stream_k import calibration
from tunesmith.models.stream_k.fit import fit


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch):
    """Twenty resamples instead of 200 give intervals, however rough."""
    monkeypatch.setattr(calibration, "fit", partial(fit, resamples=20))
