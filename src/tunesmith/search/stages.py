"""Searches in two stages: first the batches of another strategy, then batches that follow from all times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from .base import CandidateBatch, Candidates, MeasuredTimes, Search, Strategy
from .sampling import Exhaustive


class RaceThenConfirm(Strategy):
    """First the batches of `strategy` (by default all legal candidates), then those of `finals`, which gets all times
    and returns the finalists' batches."""

    def __init__(
        self, finals: Callable[[MeasuredTimes], Iterable[CandidateBatch]], strategy: Strategy | None = None
    ) -> None:
        self._finals, self._strategy = finals, strategy or Exhaustive()

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        return _Stages(self._strategy.start(candidates, random), self._finals)


class Growing(Strategy):
    """All legal candidates; then, up to `growths` times, candidates beyond the edge of the space while the best may lie
    on the edge.

    `beyond` gets the candidates and all times. It returns the candidates extended beyond their edge, or equal
    candidates if there is nothing beyond.
    """

    def __init__(self, beyond: Callable[[Candidates, MeasuredTimes], Candidates], growths: int = 3) -> None:
        self._beyond, self._growths = beyond, growths

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        return _Stages(Exhaustive().start(candidates, random), partial(self._more, candidates))

    def _more(self, candidates: Candidates, times: MeasuredTimes) -> Iterator[CandidateBatch]:
        for _ in range(self._growths):
            grown = self._beyond(candidates, times)
            if grown == candidates:
                return
            candidates = grown
            unmeasured = [config for config in candidates if config not in times and candidates.legal(config)]
            if unmeasured:
                yield CandidateBatch(tuple(unmeasured), candidates.mode)


class _Stages(Search):
    """First the batches of `first`, then those of `second`. `second` gets the mapping of all times, which keeps
    growing: if `second` is a generator, it finds the times of its own batches there."""

    def __init__(self, first: Search, second: Callable[[MeasuredTimes], Iterable[CandidateBatch]]) -> None:
        super().__init__()
        self._first, self._second, self.told = first, second, first.told
        self._second_batches: Iterator[CandidateBatch] | None = None

    def ask(self) -> CandidateBatch | None:
        if self._second_batches is None:
            if batch := self._first.ask():
                return batch
            self._second_batches = iter(self._second(self.told))
        return next(self._second_batches, None)
