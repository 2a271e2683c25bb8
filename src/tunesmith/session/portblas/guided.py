"""A guided search of a long list: the surrogate strategy proposes which configurations to measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tunesmith.protocol import SearchRun, carry_out
from tunesmith.records import Configuration, Problem, Value
from tunesmith.search import STRATEGIES, Candidates, MeasureMode
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.frame.run import Run

SEED = 0


def measure_guided(run: Run, measure: RecordedMeasure, configs: Sequence[Configuration], problem: Problem) -> None:
    """Measure a tenth of the configurations: those from which the model expects most.

    A resumed run measures the same configurations: the search is a function of the seed and the times, and the store
    has the times. Raises OutOfBudgetError.
    """
    oracle, strategy = measure.oracle, STRATEGIES["surrogate"]

    def describe(config: Configuration) -> Mapping[str, Value]:
        full = oracle.solution(config).configuration
        guess = oracle.family(config).guess(full, problem, oracle.target)
        return {**oracle.derived(config), **({"guess": guess} if guess else {})}

    candidates = replace(Candidates.of_list(configs), describe=describe, mode=MeasureMode.FULL)
    search = strategy.start(candidates, np.random.default_rng(SEED))
    with run.batch(measure.purpose, strategy.count(candidates.choices.count, None)):
        carry_out([SearchRun(search, [problem])], measure)
