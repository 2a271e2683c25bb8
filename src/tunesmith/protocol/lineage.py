"""`Lineage`: one branch of the protocol, with the values that it has settled so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from tunesmith.records import Configuration, Problem, Value


@dataclass(frozen=True)
class Lineage:
    """A branch of the search: its initial values, its settled values, and the times of its last winner.

    `fixed` holds forked values and determined parameters. `provisional` holds substitutes for parameters that a later
    step tunes, in a lineage that would be illegal with their initial values. `times` are the seconds of the last winner
    on the problems of its step; they are empty if nothing was measured since the last fork. A lineage is never changed
    in place, so no winner can leak into another lineage.
    """

    start: Configuration
    fixed: Configuration = Configuration()
    provisional: Configuration = Configuration()
    times: Mapping[Problem, float] = field(default_factory=dict, hash=False)

    @cached_property
    def configuration(self) -> Configuration:
        """A value for every parameter: the settled value, else the substitute, else the initial value."""
        return self.start | self.provisional | self.fixed

    def __or__(self, choice: Mapping[str, Value]) -> Lineage:
        """The lineage with these values settled. It has no times, since the values are not measured yet."""
        return replace(self, fixed=self.fixed | choice, provisional=self.provisional.without(choice), times={})

    def substitute(self, values: Mapping[str, Value]) -> Lineage:
        """The lineage with these values as substitutes until their own steps."""
        return replace(self, provisional=self.provisional | values)

    def timed(self, times: Mapping[Problem, float]) -> Lineage:
        return replace(self, times=dict(times))
