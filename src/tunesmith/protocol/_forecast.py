"""What a run will cost, before it starts: every step's lineages, candidates, sizes and enqueues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import prod

from tunesmith.records import Configuration, Problem
from tunesmith.search import MOST_WHOLE, SAMPLE, STRATEGIES, some
from tunesmith.spaces import Combinations

from ._candidates import later_values, propose
from ._joins import check_names, key_of
from ._judge import Judge
from ._lineage import Lineage
from ._results import phase_of, step_names
from ._run import AS_IT_IS, fork
from ._steps import Benchmark, Final, Fork, Join, Phase, Phases, Step


@dataclass(frozen=True, slots=True)
class StepForecast:
    """One step: `lineages` enter it and `survivors` leave it.

    `choices` is what the file lists for one lineage, `candidates` what all lineages try of it together, `enqueues` the
    cells to be timed: candidates times `sizes`, less the cells that are illegal or the same solution. `is_estimated`
    where a sample stands for more combinations than can be looked at.
    """

    name: str
    phase: Phase
    lineages: int
    choices: int
    candidates: int
    sizes: int
    enqueues: int
    survivors: int
    is_estimated: bool = False


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
    is_estimated: bool = False


@dataclass(frozen=True, slots=True)
class _State:
    """Lineages between two steps, what was tuned in them so far, and whether they were measured since the fork."""

    lineages: tuple[Lineage, ...]
    tuned: tuple[Combinations, ...] = ()
    measured: bool = False


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a step stands among the others, and whom to ask."""

    phases: Phases
    index: int
    judge: Judge

    def measured(self, candidates: int) -> int:
        """Of so many candidates of a lineage."""
        search = self.phases.search
        return STRATEGIES[search.strategy].count(candidates, search.trials)


Lineages = tuple[Lineage, ...]
Attempt = Callable[[Lineages, Combinations, Sequence[Problem], _Place], tuple[_Cost, Lineages]]


def _everything(
    lineages: Lineages, choices: Combinations, problems: Sequence[Problem], place: _Place
) -> tuple[_Cost, Lineages]:
    candidates = len(lineages) * place.measured(choices.count)
    cost = _Cost(choices.count, candidates, len(problems), candidates * len(problems))
    return cost, tuple(lineage | choices[0] for lineage in lineages)


def _what_is_legal(
    lineages: Lineages, choices: Combinations, problems: Sequence[Problem], place: _Place
) -> tuple[_Cost, Lineages]:
    phases, judge = place.phases, place.judge
    to_come = phases.steps[place.index + 1 :]
    prospects = [
        propose(lineage, choices, problems, later_values(to_come, phases.tuned, lineage), judge) for lineage in lineages
    ]
    going_on = [prospect for prospect in prospects if not prospect.refusal]
    if is_whole := choices.count <= MOST_WHOLE:
        legal = [list(prospect.distinct.values()) for prospect in going_on]
    else:
        legal = [
            list(filter(prospect.is_legal, (prospect.lineage.configuration | choice for choice in some(choices))))
            for prospect in going_on
        ]
    scale = 1 if is_whole else choices.count / SAMPLE
    # Solutions that several lineages have are measured once; which these are, a sample does not show.
    configs = {judge.identity(c): c for each in legal for c in each}.values() if is_whole else chain(*legal)
    cells = sum(not judge.rejections_for(config, problem) for config in configs for problem in problems)
    counts = [round(len(each) * scale) for each in legal]
    candidates = sum(map(place.measured, counts))
    enqueues = round(cells * scale * candidates / max(1, sum(counts)))
    cost = _Cost(choices.count, candidates, len(problems), enqueues, not is_whole)
    return cost, tuple(prospect.lineage | prospect.expected for prospect in going_on)


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
                is_estimated=cost.is_estimated,
            )
        )
        state = after
    return tuple(steps)


def _take(step: Step, state: _State, place: _Place, attempt: Attempt) -> tuple[_Cost, _State]:
    """One step: what it costs, and what is left after it."""
    match step:
        case Fork(choices):
            still_tuned = tuple(earlier.without(choices.names) for earlier in state.tuned)
            return _Cost(choices.count), _State(fork(state.lineages, choices), still_tuned)
        case Benchmark(choices=choices):
            cost, lineages = attempt(state.lineages, choices, step.problems, place)
            return cost, _State(lineages, (*(each for each in state.tuned if each != choices), choices), True)
        case Join():
            cost, lineages = _Cost(), state.lineages
            if not state.measured:
                cost, lineages = attempt(lineages, AS_IT_IS, step.problems, place)
            joined, is_estimated = _joined(lineages, step.names, state.tuned, place.judge)
            return replace(cost, is_estimated=is_estimated), _State(joined, state.tuned, True)
        case Final():
            cost, lineages = attempt(state.lineages, AS_IT_IS, step.problems, place)
            return cost, _State(lineages, state.tuned, True)


def _joined(
    lineages: Lineages, names: Sequence[str], tuned: Sequence[Combinations], judge: Judge
) -> tuple[Lineages, bool]:
    """As many lineages as a join can leave: no more than there are, and no more than there are keys within reach; and
    whether that is estimated.

    Those with a key of their own come first.
    """
    keys: set[Configuration] = set()
    first: list[Lineage] = []
    others: list[Lineage] = []
    is_estimated = False
    for lineage in lineages:
        config = lineage.configuration
        held = key_of(config, names, judge)
        # A step that never moves the key alone is left out.
        moving = [choices for choices in tuned if any(key_of(config | c, names, judge) != held for c in some(choices))]
        within = Combinations(tuple(axis for choices in moving for axis in choices.axes))
        reach = {key_of(config | choice, names, judge) for choice in some(within)}
        is_estimated |= within.count > MOST_WHOLE
        (others if reach <= keys else first).append(lineage)
        keys |= reach
    return tuple((first + others)[: len(keys)]), is_estimated


def _exhaustive(phases: Phases) -> int:
    """Every combination of what forks and steps vary, on every final size; a parameter varied twice counts once."""
    varied: dict[frozenset[str], dict[Combinations, None]] = {}
    sizes = 1
    for step in phases.steps:
        if isinstance(step, Fork | Benchmark):
            varied.setdefault(frozenset(step.choices.names), {})[step.choices] = None
        elif isinstance(step, Final):
            sizes = len(step.problems)
    # Only a step that is passed again names its parameters twice in a file, with the same choices.
    counts = (next(iter(each)).count if len(each) == 1 else len(set(chain(*each))) for each in varied.values())
    return prod(counts) * sizes
