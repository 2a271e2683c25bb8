"""A search that measures a part of a list: asks a strategy, measures what it proposes, and tells it the times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tunesmith.protocol import Searched, carry_out
from tunesmith.records import Configuration, Problem, Value
from tunesmith.search import STRATEGIES, Candidates, Mode

from . import events
from ._recorded import RecordedMeasure


def guided(
    measure: RecordedMeasure, configs: Sequence[Configuration], problem: Problem, seed: int = 0
) -> tuple[Configuration, ...]:
    """Measure a tenth of the configurations, each where the model expects most; those that were, in their order.

    A run that was stopped goes the same way again: the walk is a function of the seed and the times, and the store has
    the times. Raises OutOfBudgetError.
    """
    judge, strategy = measure.judge, STRATEGIES["surrogate"]

    def describe(config: Configuration) -> Mapping[str, Value]:
        own = judge.solution(config).configuration
        guess = judge.family(config).guess(own, problem, judge.target)
        return {**judge.derived(config), **({"guess": guess} if guess else {})}

    candidates = replace(Candidates.of_list(configs), describe=describe, mode=Mode.FULL)
    search = strategy.start(candidates, np.random.default_rng(seed))
    wanted = strategy.count(candidates.choices.count, None)
    observe, told = measure.observe, _Whole(measure.observe, measure.purpose, wanted)
    measure.observe = told
    try:
        carry_out([Searched(search, [problem])], measure)
    finally:
        measure.observe = observe
    return tuple(search.told)


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
