"""Searches in stages: everything that another strategy asks for, and then what follows from the times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from .base import CandidateBatch, Candidates, Search, Strategy, Told
from .sampling import Exhaustive


class RaceThenConfirm(Strategy):
    """What `strategy` asks for (every legal candidate), and then `finals`: given all times, the finalists' batches."""

    def __init__(self, finals: Callable[[Told], Iterable[CandidateBatch]], strategy: Strategy | None = None) -> None:
        self._finals, self._strategy = finals, strategy or Exhaustive()

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        return _Stages(self._strategy.start(candidates, random), self._finals)


class Growing(Strategy):
    """Every legal candidate; then, while the best of them may lie on the edge, up to `growths` times what is beyond.

    `beyond` gives the candidates with what lies beyond their edge, given all times, and equal ones where nothing does.
    """

    def __init__(self, beyond: Callable[[Candidates, Told], Candidates], growths: int = 3) -> None:
        self._beyond, self._growths = beyond, growths

    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        return _Stages(Exhaustive().start(candidates, random), partial(self._more, candidates))

    def _more(self, candidates: Candidates, told: Told) -> Iterator[CandidateBatch]:
        for _ in range(self._growths):
            grown = self._beyond(candidates, told)
            if grown == candidates:
                return
            candidates = grown
            fresh = [config for config in candidates if config not in told and candidates.legal(config)]
            if fresh:
                yield CandidateBatch(tuple(fresh), candidates.mode)


class _Stages(Search):
    """What `first` asks for, and then `more`, given what was told; which goes on growing, so that a generator finds in
    it what became of each batch."""

    def __init__(self, first: Search, more: Callable[[Told], Iterable[CandidateBatch]]) -> None:
        super().__init__()
        self._first, self._more, self.told = first, more, first.told
        self._later: Iterator[CandidateBatch] | None = None

    def ask(self) -> CandidateBatch | None:
        if self._later is None:
            if batch := self._first.ask():
                return batch
            self._later = iter(self._more(self.told))
        return next(self._later, None)
