"""A race of all, then its finalists side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ._base import Batch, Candidates, Mode, Search, Strategy, Told
from .sampling import Exhaustive

Finals = Callable[[Told], Iterable[Batch]]
"""The batches in which finalists are measured again, given the first times of all; none where these are clear."""


class RaceThenConfirm(Strategy):
    """What another strategy asks for, and in the end the `finals`."""

    def __init__(self, finals: Finals, strategy: Strategy | None = None) -> None:
        self._finals, self._strategy = finals, strategy or Exhaustive()

    def start(
        self, candidates: Candidates, random: np.random.Generator, trials: int | None = None, mode: Mode = Mode.RACED
    ) -> Search:
        return _Race(self._strategy.start(candidates, random, trials, mode), self._finals)


class _Race(Search):
    def __init__(self, first: Search, finals: Finals) -> None:
        super().__init__()
        self._first, self._finals = first, finals
        self.told = first.told
        self._confirmed: Iterator[Batch] | None = None

    def ask(self) -> Batch | None:
        if self._confirmed is None:
            if batch := self._first.ask():
                return batch
            self._confirmed = iter(self._finals(self.told))
        return next(self._confirmed, None)

    def tell(self, batch: Batch, rows: Told) -> None:
        if self._confirmed is None:
            self._first.tell(batch, rows)
