"""What to try next? Ask/tell strategies: pure, seeded, no I/O."""

from tunesmith.records import Registry

from ._base import Candidates, Search, Strategy, Walk

STRATEGIES: Registry[Strategy] = Registry(
    "search strategy",
    {
        "exhaustive": "tunesmith.search.exhaustive:Exhaustive",
        "random": "tunesmith.search.random_sample:RandomSample",
    },
)

__all__ = ["STRATEGIES", "Candidates", "Search", "Strategy", "Walk"]
