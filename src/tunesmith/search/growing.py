"""A space that grows while the best of it may lie beyond its edge."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ._base import Batch, Candidates, Mode, Search, Strategy, Told
from .sampling import Exhaustive

Beyond = Callable[[Candidates, Told], Candidates]
"""The candidates with what lies beyond their edge, given what was told; equal candidates where nothing does."""


class Growing(Strategy):
    """Every legal candidate; then, up to `growths` times, those that `beyond` adds."""

    def __init__(self, beyond: Beyond, growths: int = 3) -> None:
        self._beyond, self._growths = beyond, growths

    def start(
        self, candidates: Candidates, random: np.random.Generator, trials: int | None = None, mode: Mode = Mode.RACED
    ) -> Search:
        return _Growing(candidates, self._beyond, self._growths, random, trials, mode)


class _Growing(Search):
    def __init__(
        self,
        candidates: Candidates,
        beyond: Beyond,
        growths: int,
        random: np.random.Generator,
        trials: int | None,
        mode: Mode,
    ) -> None:
        super().__init__()
        self._beyond, self._growths, self._random, self._trials, self._mode = beyond, growths, random, trials, mode
        self._begin(candidates)

    def ask(self) -> Batch | None:
        while (batch := self._walk.ask()) is None and self._growths:
            self._growths -= 1
            grown = self._beyond(self._candidates, self.told)
            if grown == self._candidates:
                self._growths = 0
            else:
                self._begin(grown)
        return batch

    def _begin(self, candidates: Candidates) -> None:
        left = None if self._trials is None else self._trials - len(self.told)
        self._candidates, self._walk = candidates, Exhaustive().start(candidates, self._random, left, self._mode)
        # The walk leaves out what was told, of the smaller space too.
        self._walk.told = self.told
