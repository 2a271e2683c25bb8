"""A search that measures a part of a list: asks a strategy, measures what it proposes, and tells it the times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tunesmith.protocol import Table
from tunesmith.records import Configuration, Problem, Value
from tunesmith.search import Listed, Search
from tunesmith.search.surrogate import Surrogate
from tunesmith.session.frame import events
from tunesmith.session.frame.measure import RecordedMeasure

SHARE = 0.1
"""Of the candidates that are measured."""

FEWEST = 24
"""Candidates that are measured at least: twice what the model begins with."""

BATCH = 4
"""Candidates between two looks of the model: more would be chosen on less knowledge."""


def count_of(candidates: int) -> int:
    """How many of so many candidates a guided search measures."""
    return min(candidates, max(FEWEST, math.ceil(SHARE * candidates)))


def guided(
    measure: RecordedMeasure, configs: Sequence[Configuration], problem: Problem, seed: int = 0
) -> tuple[Configuration, ...]:
    """Measure a tenth of the configurations, each where the model expects most; those that were, in their order.

    A run that was stopped goes the same way again: the walk is a function of the seed and the times, and the store has
    the times. Raises OutOfBudgetError.
    """
    judge = measure.judge

    def describe(config: Configuration) -> Mapping[str, Value]:
        own = judge.solution(config).configuration
        guess = judge.family(config).guess(own, problem, judge.target)
        return {**judge.derived(config), **({"guess": guess} if guess else {})}

    search = Surrogate(describe).start(Listed.of_list(configs), np.random.default_rng(seed))
    wanted = count_of(len(configs))
    observe, told = measure.observe, _Whole(measure.observe, measure.purpose, wanted)
    measure.observe = told
    try:
        return tuple(_walk(search, measure, problem, wanted))
    finally:
        measure.observe = observe


def _walk(search: Search, measure: RecordedMeasure, problem: Problem, wanted: int) -> list[Configuration]:
    asked: list[Configuration] = []
    while more := search.ask(min(BATCH, wanted - len(asked))):
        table: Table = measure.screen([list(more)], [problem], racing=False)
        for config in more:
            estimate = table.cells.get((config, problem))
            search.tell(config, estimate.seconds if estimate else None)
        asked += more
        if len(asked) == wanted:
            break
    return asked


class _Whole:
    """Tells an observer of one large batch instead of many small ones, so that the time left is that of the search."""

    def __init__(self, observe: events.Observer, purpose: str, cells: int) -> None:
        self._observe, self._batch = observe, events.BatchBegan(purpose, cells, 0)
        self._begun = False

    def __call__(self, event: events.Event) -> None:
        if not isinstance(event, events.BatchBegan):
            self._observe(event)
        elif self._begun:
            return
        elif event.reused < event.cells:
            self._observe(self._batch)
            self._begun = True
        else:
            self._batch = replace(self._batch, reused=self._batch.reused + event.reused)
