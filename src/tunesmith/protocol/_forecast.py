"""What a run will cost, before it starts: every step's lineages, candidates, sizes and enqueues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tunesmith.records import Configuration, Problem

from ._candidates import later_values, propose
from ._joins import check_names, key_of
from ._judge import Judge
from ._lineage import Lineage
from ._results import phase_of, step_names
from ._run import AS_IT_IS, fork
from ._steps import Benchmark, Final, Fork, Join, Phase, Phases, Step

Choices = Sequence[Configuration]


@dataclass(frozen=True, slots=True)
class StepForecast:
    """One step: `lineages` enter it and `survivors` leave it.

    `choices` is what the file lists for one lineage, `candidates` the total over all lineages, `enqueues` the cells
    to be timed: candidates times `sizes`, less the cells that are illegal or the same solution.
    """

    name: str
    phase: Phase
    lineages: int
    choices: int
    candidates: int
    sizes: int
    enqueues: int
    survivors: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """All steps before and after rejections, and what trying everything would take.

    Before rejections the counts are bounds: exact but for a join over values that are still to be tuned. After
    rejections they are an estimate, since what is legal later may depend on who wins: the value held before a step is
    taken to stay, else the first legal one to win. `exhaustive` is the product of all value lists and the final sizes.
    """

    before: tuple[StepForecast, ...]
    after: tuple[StepForecast, ...]
    exhaustive: int

    @property
    def enqueues_before(self) -> int:
        return sum(step.enqueues for step in self.before)

    @property
    def enqueues_after(self) -> int:
        return sum(step.enqueues for step in self.after)


def forecast(phases: Phases, judge: Judge) -> Forecast:
    """Walk through the steps without measuring. Raises UserError for a join over an unknown name."""
    check_names(phases, judge)
    return Forecast(_walk(phases, judge, _everything), _walk(phases, judge, _what_is_legal), _exhaustive(phases))


@dataclass(frozen=True, slots=True)
class _Cost:
    """What a step tries: choices of one lineage, candidates of all, sizes, cells."""

    choices: int = 0
    candidates: int = 0
    sizes: int = 0
    enqueues: int = 0


@dataclass(frozen=True, slots=True)
class _State:
    """Lineages between two steps, what was tuned in them so far, and whether they were measured since the fork."""

    lineages: tuple[Lineage, ...]
    tuned: tuple[Choices, ...] = ()
    measured: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a step stands among the others, and whom to ask."""

    phases: Phases
    index: int
    judge: Judge


Lineages = tuple[Lineage, ...]
Attempt = Callable[[Lineages, Choices, Sequence[Problem], _Place], tuple[_Cost, Lineages]]


def _everything(
    lineages: Lineages, choices: Choices, problems: Sequence[Problem], place: _Place
) -> tuple[_Cost, Lineages]:
    candidates = len(lineages) * len(choices)
    cost = _Cost(len(choices), candidates, len(problems), candidates * len(problems))
    return cost, tuple(lineage | choices[0] for lineage in lineages)


def _what_is_legal(
    lineages: Lineages, choices: Choices, problems: Sequence[Problem], place: _Place
) -> tuple[_Cost, Lineages]:
    phases, judge = place.phases, place.judge
    to_come = phases.steps[place.index + 1 :]
    proposals = [
        propose(lineage, choices, problems, later_values(to_come, phases.tuned, lineage), judge) for lineage in lineages
    ]
    distinct = {judge.identity(config): config for proposal in proposals for config in proposal.configurations}
    legal_cells = sum(not judge.rejections_for(config, problem) for config in distinct.values() for problem in problems)
    cost = _Cost(len(choices), sum(len(proposal.candidates) for proposal in proposals), len(problems), legal_cells)
    return cost, tuple(
        proposal.lineage | dict(proposal.candidates)[proposal.incumbent or proposal.configurations[0]]
        for proposal in proposals
        if proposal.candidates
    )


def _walk(phases: Phases, judge: Judge, attempt: Attempt) -> tuple[StepForecast, ...]:
    state = _State((Lineage(phases.start),))
    steps = []
    for index, (name, step) in enumerate(zip(step_names(phases), phases.steps, strict=True)):
        cost, after = _take(step, state, _Place(phases, index, judge), attempt)
        steps.append(
            StepForecast(
                name=name,
                phase=phase_of(step),
                lineages=len(state.lineages),
                choices=cost.choices,
                candidates=cost.candidates,
                sizes=cost.sizes,
                enqueues=cost.enqueues,
                survivors=len(after.lineages),
            )
        )
        state = after
    return tuple(steps)


def _take(step: Step, state: _State, place: _Place, attempt: Attempt) -> tuple[_Cost, _State]:
    """One step: what it costs, and what is left after it."""
    match step:
        case Fork(choices):
            still_tuned = tuple([choice.without(choices[0]) for choice in earlier] for earlier in state.tuned)
            return _Cost(len(choices)), _State(fork(state.lineages, choices), still_tuned)
        case Benchmark():
            cost, lineages = attempt(state.lineages, step.choices, step.problems, place)
            return cost, _State(lineages, (*state.tuned, step.choices), True)
        case Join():
            cost, lineages = _Cost(), state.lineages
            if not state.measured:
                cost, lineages = attempt(lineages, AS_IT_IS, step.problems, place)
            return cost, _State(_joined(lineages, step.names, state.tuned, place.judge), state.tuned, True)
        case Final():
            cost, lineages = attempt(state.lineages, AS_IT_IS, step.problems, place)
            return cost, _State(lineages, state.tuned, True)


def _joined(lineages: Lineages, names: Sequence[str], tuned: Sequence[Choices], judge: Judge) -> Lineages:
    """As many lineages as a join can leave: no more than there are, and no more than there are keys within reach.

    Those with a key of their own come first.
    """
    keys: set[Configuration] = set()
    first: list[Lineage] = []
    others: list[Lineage] = []
    for lineage in lineages:
        reach = _keys_within_reach(lineage, names, tuned, judge)
        (others if reach <= keys else first).append(lineage)
        keys |= reach
    return tuple((first + others)[: len(keys)])


def _keys_within_reach(
    lineage: Lineage, names: Sequence[str], tuned: Sequence[Choices], judge: Judge
) -> set[Configuration]:
    """The keys that a lineage may have, whoever won its steps. A step that never moves the key alone is left out."""

    def key(*choices: Configuration) -> Configuration:
        config = lineage.configuration
        for choice in choices:
            config = config | choice
        return key_of(config, names, judge)

    held = key()
    moving = [choices for choices in tuned if any(key(choice) != held for choice in choices)]
    return {key(*combination) for combination in product(*moving)}


def _exhaustive(phases: Phases) -> int:
    """Every combination of what forks and steps vary, on every final size; a parameter varied twice counts once."""
    varied: dict[frozenset[str], set[Configuration]] = {}
    sizes = 1
    for step in phases.steps:
        if isinstance(step, Fork | Benchmark):
            for choice in step.choices:
                varied.setdefault(frozenset(choice), set()).add(choice)
        elif isinstance(step, Final):
            sizes = len(step.problems)
    return prod(len(choices) for choices in varied.values()) * sizes
