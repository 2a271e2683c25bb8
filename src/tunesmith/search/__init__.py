"""Search strategies: they propose batches of configurations and learn their times. Pure, seeded, without I/O."""

from tunesmith.records import Registry

from .base import LARGEST_LISTED, CandidateBatch, Candidates, MeasuredTimes, MeasureMode, Search, Strategy
from .sampling import SAMPLE, all_or_sample, sample
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
    "LARGEST_LISTED",
    "SAMPLE",
    "STRATEGIES",
    "CandidateBatch",
    "Candidates",
    "Growing",
    "MeasureMode",
    "MeasuredTimes",
    "RaceThenConfirm",
    "Search",
    "Strategy",
    "all_or_sample",
    "sample",
]
