"""What one branch of the protocol has settled so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tunesmith.records import Configuration, Problem, Value


@dataclass(frozen=True)
class Lineage:
    """A branch of the search: where it started, what is settled in it, and how fast its last winner was.

    `fixed` holds forked values and determined parameters. `provisional` holds substitutes for parameters whose own
    step is still to come, in a lineage that would be illegal with their initial values. `times` are the seconds of the
    last winner on the problems of its step, empty when nothing was measured since the last fork. Nothing here is ever
    changed in place, so no winner can leak into a sister.
    """

    start: Configuration
    fixed: Configuration = Configuration()
    provisional: Configuration = Configuration()
    times: Mapping[Problem, float] = field(default_factory=dict, hash=False)

    @property
    def configuration(self) -> Configuration:
        """A value for every parameter: settled, else substituted, else initial."""
        return self.start | self.provisional | self.fixed

    def __or__(self, choice: Mapping[str, Value]) -> Lineage:
        """The lineage with these values settled and without a measurement of them yet."""
        return replace(self, fixed=self.fixed | choice, provisional=self.provisional.without(choice), times={})

    def substitute(self, values: Mapping[str, Value]) -> Lineage:
        """The lineage with these values held until their own steps come."""
        return replace(self, provisional=self.provisional | values)

    def timed(self, times: Mapping[Problem, float]) -> Lineage:
        return replace(self, times=dict(times))
