"""Every search strategy keeps what strategies promise; what each adds is in `tests/search`."""

from __future__ import annotations

import pytest

from tunesmith.search import STRATEGIES, CandidateBatch, Growing, MeasureMode, RaceThenConfirm
from tunesmith.search.base import total_seconds
from tunesmith.testing import StrategySuite


def two_best(times):
    ran = total_seconds(times)
    finalists = tuple(sorted(ran, key=ran.__getitem__)[:2])
    return [CandidateBatch(finalists, MeasureMode.CONFIRMED)] if finalists else []


class TestExhaustive(StrategySuite):
    strategy = STRATEGIES["exhaustive"]


class TestRandom(StrategySuite):
    strategy = STRATEGIES["random"]


class TestSurrogate(StrategySuite):
    strategy = STRATEGIES["surrogate"]

    @pytest.fixture(autouse=True)
    def _fewer_are_known(self, monkeypatch):
        """Of a large space the model looks at each of 20,000 before every batch, which takes seconds."""
        monkeypatch.setattr("tunesmith.search.surrogate.MOST_CANDIDATES", 1000)
        monkeypatch.setattr("tunesmith.search.surrogate.TREES", 20)


class TestRaceThenConfirm(StrategySuite):
    strategy = RaceThenConfirm(two_best)


class TestRandomThenConfirm(StrategySuite):
    strategy = RaceThenConfirm(two_best, STRATEGIES["random"])


class TestGrowingThatNeverGrows(StrategySuite):
    strategy = Growing(lambda candidates, times: candidates)


def test_every_registered_strategy_is_among_them():
    looked_at = [type(suite.strategy) for suite in (TestExhaustive, TestRandom, TestSurrogate)]
    assert [type(strategy) for strategy in STRATEGIES.values()] == looked_at
