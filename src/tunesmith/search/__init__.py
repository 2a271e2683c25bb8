"""What to try next? Strategies that are asked and told: pure, seeded, no I/O."""

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
"""Those that a tuning file can name."""

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
