"""What to try next? Ask/tell strategies: pure, seeded, no I/O."""

from tunesmith.records import Registry

from ._base import Candidates, Search, Strategy, Walk
from .listed import Listed

STRATEGIES: Registry[Strategy] = Registry(
    "search strategy",
    {
        "exhaustive": "tunesmith.search.exhaustive:Exhaustive",
        "random": "tunesmith.search.random_sample:RandomSample",
        "surrogate": "tunesmith.search.surrogate:Surrogate",
    },
    group="tunesmith.strategies",
)

__all__ = ["STRATEGIES", "Candidates", "Listed", "Search", "Strategy", "Walk"]
