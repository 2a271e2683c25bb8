"""Search strategies: they propose batches of configurations and learn their times. Pure, seeded, without I/O."""

from tunesmith.records import Registry

from .base import MOST_WHOLE, CandidateBatch, Candidates, MeasureMode, Search, Strategy, Told
from .sampling import SAMPLE, sample, some
from .stages import Growing, RaceThenConfirm

STRATEGIES: Registry[Strategy] = Registry(
    "search strategy",
    {
        "exhaustive": "tunesmith.search.sampling:Exhaustive",
        "random": "tunesmith.search.sampling:RandomSample",
        "surrogate": "tunesmith.search.surrogate:Surrogate",
    },
    group="tunesmith.strategies",
)
"""The strategies that a tuning file can name."""

__all__ = [
    "MOST_WHOLE",
    "SAMPLE",
    "STRATEGIES",
    "CandidateBatch",
    "Candidates",
    "Growing",
    "MeasureMode",
    "RaceThenConfirm",
    "Search",
    "Strategy",
    "Told",
    "sample",
    "some",
]
