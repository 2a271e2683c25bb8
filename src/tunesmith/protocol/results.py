"""The protocol's results: a record for each step, and one for the whole run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from tunesmith.records import Configuration, Problem, Rejection

from .candidates import Proposal
from .lineage import Lineage
from .measure import TimeTable
from .steps import Final, Join, Phase, Phases, Step
from .winners import ContestDecision

NOTHING_RAN = "nothing ran"


@dataclass(frozen=True)
class StepTrial:
    """One lineage in one step: its proposal, the decision, and the lineage after the step.

    `refusal` says why a lineage ends in this step. In the final step a lineage that is the same solution as an earlier
    lineage ends without a refusal; the earlier lineage stands for both (`proposal.duplicates`).
    """

    proposal: Proposal
    decision: ContestDecision | None = None
    after: Lineage | None = None
    refusal: Rejection | None = None


@dataclass(frozen=True)
class Dropped:
    """A lineage that ended, the step in which it ended, and the reason."""

    step: str
    lineage: Lineage
    rejection: Rejection


@dataclass(frozen=True)
class StepResult:
    """A step, the lineages before and after it, and the measurements in between.

    `trials` has an entry for each lineage that the step measured, in the order of `before`; it is empty for a fork and
    for a join of measured lineages. `cells` is the number of screened cells: distinct solutions times problems.
    `decisions` has the decision of each problem, in the final step only.
    """

    name: str
    step: Step
    before: tuple[Lineage, ...]
    after: tuple[Lineage, ...]
    trials: tuple[StepTrial, ...] = ()
    table: TimeTable = TimeTable()
    cells: int = 0
    decisions: Mapping[Problem, ContestDecision] = field(default_factory=dict)

    @property
    def phase(self) -> Phase:
        return self.step.phase

    @property
    def candidates(self) -> int:
        """The number of legal candidates, summed over lineages."""
        return sum(len(trial.proposal.candidates) for trial in self.trials)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        return tuple(
            Dropped(self.name, trial.proposal.lineage, trial.refusal) for trial in self.trials if trial.refusal
        )

    @property
    def rejected(self) -> Counter[str]:
        """The number of illegal candidates by reason, summed over lineages."""
        return Counter(rejection.reason for trial in self.trials for _, rejection in trial.proposal.rejected)

    @property
    def dropped_by_reason(self) -> tuple[tuple[Dropped, int], ...]:
        """The first lineage that was dropped for each reason, and the number of lineages dropped for it."""
        counts = Counter(dropped.rejection.reason for dropped in self.dropped)
        first = {dropped.rejection.reason: dropped for dropped in reversed(self.dropped)}
        return tuple((first[reason], count) for reason, count in counts.items())

    @property
    def asked_for(self) -> Counter[str]:
        """The part of `rejected` that the user's own constraints rule out."""
        rejections = (rejection for trial in self.trials for _, rejection in trial.proposal.rejected)
        return Counter(rejection.reason for rejection in rejections if rejection.is_asked_for)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the step for the user."""
        return tuple(
            f"{_values(trial.proposal.lineage.fixed) or 'the only lineage'}: nothing is legal with the initial values, "
            f"so {_values(trial.proposal.substituted)} until its own step"
            for trial in self.trials
            if trial.proposal.substituted
        )


@dataclass(frozen=True)
class ProtocolResult:
    """All steps, and the `survivors` of the last: full configurations in the order of their lineages."""

    steps: tuple[StepResult, ...]
    survivors: tuple[Configuration, ...]

    @property
    def table(self) -> TimeTable:
        """The times of survivors by problem, with the finalists' paired samples; empty without a final step."""
        return self.steps[-1].table if self.steps else TimeTable()

    @property
    def decisions(self) -> Mapping[Problem, ContestDecision]:
        """The decision of each problem. A problem on which nothing ran is absent."""
        return self.steps[-1].decisions if self.steps else {}

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        return tuple(dropped for step in self.steps for dropped in step.dropped)


MOST_NAMED = 4
"""The most parameters in a step's name."""

_SHORT = {
    Phase.COMMON: "CM",
    Phase.FORK: "Fork",
    Phase.BENCHMARK_FORK: "BF",
    Phase.JOIN: "Join",
    Phase.BENCHMARK_JOIN: "BJ",
    Phase.FINAL: "Final",
}


def step_names(phases: Phases) -> tuple[str, ...]:
    """A name for each step, as in Tensile: number, phase, parameters (`03_BF_NumLoadsCoalescedA`)."""
    return tuple(
        "_".join([f"{number:02}", _SHORT[step.phase], *_shortened(_names(step))])
        for number, step in enumerate(phases.steps, start=1)
    )


def _names(step: Step) -> tuple[str, ...]:
    """The parameters that a step varies or joins over; none for the final step, whose name does not depend on them."""
    if isinstance(step, Final):
        return ()
    return step.names if isinstance(step, Join) else step.choices.names


def _shortened(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names; of many, the first and the number of the others: a step's name is used in tables and file names."""
    if len(names) <= MOST_NAMED:
        return names
    return *names[: MOST_NAMED - 1], f"and_{len(names) - MOST_NAMED + 1}_more"


def _values(config: Configuration) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.items())
