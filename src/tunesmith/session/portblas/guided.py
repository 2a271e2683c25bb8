"""A search that measures a part of a list: asks a strategy, measures what it proposes, and tells it the times."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tunesmith.protocol import Table
from tunesmith.records import Configuration, Problem, Value
from tunesmith.search import Listed
from tunesmith.search.surrogate import Surrogate
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.frame.run import Run

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
    run: Run, measure: RecordedMeasure, configs: Sequence[Configuration], problem: Problem, seed: int = 0
) -> None:
    """Measure a tenth of the configurations, each where the model expects most.

    A run that was stopped goes the same way again: the walk is a function of the seed and the times, and the store has
    the times. Raises OutOfBudgetError.
    """
    oracle, wanted = measure.oracle, count_of(len(configs))

    def describe(config: Configuration) -> Mapping[str, Value]:
        own = oracle.solution(config).configuration
        guess = oracle.family(config).guess(own, problem, oracle.target)
        return {**oracle.derived(config), **({"guess": guess} if guess else {})}

    search = Surrogate(describe).start(Listed.of_list(configs), np.random.default_rng(seed))
    asked = 0
    with run.batch(measure.purpose, wanted):
        while more := search.ask(min(BATCH, wanted - asked)):
            table: Table = measure.screen([list(more)], [problem], racing=False)
            for config in more:
                estimate = table.cells.get((config, problem))
                search.tell(config, estimate.seconds if estimate else None)
            asked += len(more)
            if asked == wanted:
                break
