"""The counts of a run: what was measured, reused, and what failed."""

from __future__ import annotations

from dataclasses import dataclass, field

from tunesmith.records import Cost


class OutOfBudgetError(Exception):
    """The time that the user gave is spent; everything measured is committed."""


@dataclass
class Ledger:
    """Counts of a run: cells `measured` now and `reused` from the store, and the `cost` of those measured now.

    By a cell's key: the reasons of `failures`, and the reasons for which the machine left a cell `unmeasured`.
    """

    measured: int = 0
    reused: int = 0
    cost: Cost = field(default_factory=Cost)
    failures: dict[str, str] = field(default_factory=dict)
    unmeasured: dict[str, str] = field(default_factory=dict)

    def add(self, cost: Cost) -> None:
        self.measured += 1
        total = self.cost
        self.cost = Cost(total.compile + cost.compile, total.verify + cost.verify, total.timing + cost.timing)
