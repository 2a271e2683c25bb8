"""Whether a run reuses a stored measurement or makes it again: `ReuseRule.reuses` decides.

The store finds a measurement by its key, which holds the device, driver, compiler, program, problem and policy
(`store.measurement_key`). The rule is asked about each measurement that was found.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum

from tunesmith.bench.machine_failures import machine_failure
from tunesmith.records import Measurement, Outcome
from tunesmith.store import RunState, Store


class Reuse(StrEnum):
    """Which measurements of earlier runs are used again: all, only those that ran right, or none.

    A failure that the machine caused (`bench.machine_failures`) is never used again, even if an earlier version stored
    it.
    """

    ALL = "all"
    GOOD = "good"
    NONE = "none"

    @staticmethod
    def of(retry_failed: bool, remeasure: bool) -> Reuse:
        """From the commands' options `--retry-failed` and `--remeasure`."""
        return Reuse.NONE if remeasure else Reuse.GOOD if retry_failed else Reuse.ALL


@dataclass
class ReuseRule:
    """Decides for one run which stored measurements it reuses.

    Measurements from `since` on (seconds since the epoch) are reused unless the machine caused their failure: `since`
    is the start of this run, or of the stopped run that this run resumes. `measured_now` has the key and round of each
    measurement that this run made itself; those are always used. `resumed` are the runs that this run resumes, if
    folders share the store: then other folders' measurements were made since, too, on other machines.
    """

    reuse: Reuse = Reuse.ALL
    since: float = field(default_factory=time.time)
    measured_now: set[tuple[str, str]] = field(default_factory=set)
    resumed: list[str] = field(default_factory=list)

    @staticmethod
    def of(store: Store, reuse: Reuse) -> ReuseRule:
        """The rule for a run that begins now. A run that measures everything again resumes the runs before it that did
        the same and were stopped."""
        rule = ReuseRule(reuse)
        if reuse is Reuse.NONE:
            for run in reversed(store.runs()):
                if not run.start.remeasures or run.state is RunState.FINISHED:
                    break
                if store.folder:
                    rule.resumed.append(run.id)
                else:
                    rule.since = run.started
        return rule

    def reuses(self, key: str, round_: str, measurement: Measurement) -> bool:
        """Whether the run uses this stored measurement for its key and round, and does not measure again."""
        if (key, round_) in self.measured_now:
            return True
        if machine_failure(measurement):
            return False
        if self.reuse is Reuse.ALL or measurement.started >= self.since:
            return True
        return self.reuse is Reuse.GOOD and not failed(measurement.outcome)


def failed(outcome: Outcome) -> bool:
    """Whether a cell was tried and did not run right, which a person should look at."""
    return outcome not in (Outcome.OK, Outcome.REJECTED)
