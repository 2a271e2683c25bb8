"""Which of the store's measurements answer in a run, and which are made again."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum

from tunesmith.bench.machine_failures import blame
from tunesmith.records import Measurement, Outcome
from tunesmith.store import RunState, Store


class Reuse(StrEnum):
    """What counts of what was measured before a run: everything, only what ran right, or nothing.

    What failed because of the machine (`bench.machine_failures`) never counts, whatever an earlier version stored.
    """

    ALL = "all"
    GOOD = "good"
    NONE = "none"

    @staticmethod
    def of(retry_failed: bool, remeasure: bool) -> Reuse:
        """By the options of the commands."""
        return Reuse.NONE if remeasure else Reuse.GOOD if retry_failed else Reuse.ALL


@dataclass
class Counting:
    """Tells what counts in one run. `since` (seconds since the epoch) is when the run began, or the stopped one that it
    goes on with; `made` holds key and round of what this run measured itself."""

    reuse: Reuse = Reuse.ALL
    since: float = field(default_factory=time.time)
    made: set[tuple[str, str]] = field(default_factory=set)

    @staticmethod
    def of(store: Store, reuse: Reuse) -> Counting:
        """For a run that begins now. One that measures everything again goes on with those before it that did so and
        did not come to their end."""
        counting = Counting(reuse)
        if reuse is Reuse.NONE:
            for run in reversed(store.runs()):
                if not run.start.remeasures or run.state is RunState.FINISHED:
                    break
                counting.since = run.started
        return counting

    def counts(self, key: str, round_: str, measurement: Measurement) -> bool:
        """Whether a measurement of the store answers for its key and round."""
        if (key, round_) in self.made:
            return True
        if blame(measurement):
            return False
        if self.reuse is Reuse.ALL or measurement.started >= self.since:
            return True
        return self.reuse is Reuse.GOOD and not failed(measurement.outcome)


def failed(outcome: Outcome) -> bool:
    """It was tried and did not run right: something for a person to look at."""
    return outcome not in (Outcome.OK, Outcome.REJECTED)
