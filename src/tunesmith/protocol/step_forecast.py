"""`forecast`: what a run will cost, before it starts. Counts every step's lineages, candidates, sizes and enqueues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod

from tunesmith.records import Configuration, Problem
from tunesmith.search import LARGEST_LISTED, SAMPLE, STRATEGIES, all_or_sample
from tunesmith.spaces import Combinations

from .benchmark_protocol import AS_IT_IS, fork
from .candidates import Proposal, candidates_of, proposals
from .joins import check_names, key_of
from .lineage import Lineage
from .oracle import Oracle
from .results import step_names
from .steps import Benchmark, Final, Fork, Join, Phase, Phases


@dataclass(frozen=True, slots=True)
class StepForecast:
    """One step: `lineages` enter it and `survivors` leave it.

    `choices` is the number of choices that the file lists for one lineage, `candidates` the number that all lineages
    try together. `enqueues` is the number of cells to be timed: candidates times `sizes`, less the cells that are
    illegal or the same solution. `is_estimated`: the numbers are extrapolated from a sample, since there are too many
    combinations or cells to check. After rejections, `fresh` is the number of enqueues whose cell no earlier step has
    measured, and `programs` the number of their programs that no earlier step has compiled; `rejected` counts illegal
    configurations by reason, and `examples` has an example of each reason.
    """

    name: str
    phase: Phase
    lineages: int
    choices: int = 0
    candidates: int = 0
    sizes: int = 0
    enqueues: int = 0
    survivors: int = 0
    is_estimated: bool = False
    fresh: int = 0
    programs: int = 0
    rejected: Mapping[str, int] = field(default_factory=dict, hash=False)
    examples: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class StepsForecast:
    """All steps before and after rejections, and the number of enqueues to try everything.

    Before rejections the counts are bounds; they are exact except for a join over values that are still to be tuned.
    After rejections they are an estimate, since legality may depend on earlier winners: the forecast assumes that a
    step's incumbent wins, or without one the first legal candidate. `exhaustive` is the product of the lengths of all
    value lists and the number of final sizes.
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

    @property
    def is_possible(self) -> bool:
        """Whether the last step has anything to measure."""
        return not self.after or self.after[-1].enqueues > 0

    @property
    def rejected(self) -> Counter[str]:
        """The numbers of illegal configurations in all steps, by reason."""
        return sum((Counter(step.rejected) for step in self.after), Counter())

    @property
    def examples(self) -> dict[str, str]:
        """The first example of each reason."""
        return {reason: text for step in reversed(self.after) for reason, text in step.examples.items()}


MOST_CHECKED = 2_000
"""The most cells of a step whose legality is checked one by one. With more, some of the sizes stand for all."""

Program = Callable[[Configuration], str]
"""Gives a text that is equal for configurations that share a program. Called only for legal configurations."""


def forecast(phases: Phases, oracle: Oracle, program: Program | None = None) -> StepsForecast:
    """Walk through the steps without measuring. Without `program`, every solution counts as a program of its own.
    Raises UserError for a join over an unknown name."""
    check_names(phases, oracle)
    before, after = (_LineageWalk(phases, oracle, legal, program or oracle.identity).steps() for legal in (False, True))
    return StepsForecast(before, after, _exhaustive(phases))


class _LineageWalk:
    """A walk of lineages through the steps. It keeps the choices that were tuned so far, and whether the lineages were
    measured since the fork. With `only_legal`, configurations that the oracle rejects are left out."""

    def __init__(self, phases: Phases, oracle: Oracle, only_legal: bool, program: Program) -> None:
        self._phases, self._oracle, self._only_legal, self._program = phases, oracle, only_legal, program
        self._cells: set[tuple[str, Problem]] = set()
        self._programs: set[str] = set()
        self._lineages: tuple[Lineage, ...] = (Lineage(phases.start),)
        self._tuned: tuple[Combinations, ...] = ()
        self._is_measured = False

    def steps(self) -> tuple[StepForecast, ...]:
        return tuple(self._step(index, name) for index, name in enumerate(step_names(self._phases)))

    def _step(self, index: int, name: str) -> StepForecast:
        """The forecast of one step. Replaces the lineages by those that leave the step."""
        step = self._phases.steps[index]
        result = StepForecast(name, step.phase, len(self._lineages))
        match step:
            case Fork(choices):
                result = replace(result, choices=choices.count)
                self._lineages, self._is_measured = fork(self._lineages, choices), False
                self._tuned = tuple(earlier.without(choices.names) for earlier in self._tuned)
            case Benchmark(choices=choices):
                result = self._attempt(result, index, choices, step.problems)
                self._tuned = (*(earlier for earlier in self._tuned if earlier != choices), choices)
            case Join():
                if not self._is_measured:
                    result = self._attempt(result, index, AS_IT_IS, step.problems)
                result = replace(result, is_estimated=self._join(step.names))
            case Final(choices=choices):
                result = self._attempt(result, index, choices, step.problems)
                if choices.axes:
                    return replace(result, survivors=result.candidates)
        return replace(result, survivors=len(self._lineages))

    def _attempt(
        self, result: StepForecast, index: int, choices: Combinations, problems: Sequence[Problem]
    ) -> StepForecast:
        """The forecast with the counts of a step in which every lineage tries some of its choices. The lineages go on
        with the choices that are expected to win."""
        search, is_whole = self._phases.search, choices.count <= LARGEST_LISTED
        fresh = programs = 0
        if self._only_legal:
            proposed = proposals(self._phases, index, self._lineages, choices, problems, self._oracle)
            counts, cells, fresh, programs, is_whole = self._legal(proposed, choices, problems)
            rejections = [rejection for proposal in proposed for _, rejection in proposal.rejected]
            result = replace(
                result,
                rejected=Counter(rejection.reason for rejection in rejections),
                examples={rejection.reason: rejection.detail for rejection in reversed(rejections)},
            )
            self._lineages = tuple(
                proposal.lineage | dict(proposal.candidates)[proposal.incumbent or proposal.configurations[0]]
                for proposal in proposed
                if proposal.candidates
            )
        else:
            counts = [choices.count] * len(self._lineages)
            cells = sum(counts) * len(problems)
            self._lineages = tuple(lineage | choices[0] for lineage in self._lineages)
        self._is_measured = True
        legal = max(1, sum(counts))
        # The last step measures everything, whatever the search.
        if not isinstance(self._phases.steps[index], Final):
            counts = [STRATEGIES[search.strategy].count(count, search.trials) for count in counts]
        candidates = sum(counts)
        return replace(
            result,
            choices=choices.count,
            candidates=candidates,
            sizes=len(problems),
            enqueues=cells * candidates // legal,
            fresh=fresh * candidates // legal,
            programs=programs * candidates // legal,
            is_estimated=self._only_legal and not is_whole,
        )

    def _legal(
        self, proposals: Sequence[Proposal], choices: Combinations, problems: Sequence[Problem]
    ) -> tuple[list[int], int, int, int, bool]:
        """The number of each lineage's candidates, the number of legal cells of all lineages, the numbers of new cells
        and new programs among them, and whether these numbers are exact. If there are too many choices or cells, they
        are extrapolated from a sample of the choices or of the problems."""
        legal, scale = [proposal.configurations for proposal in proposals], 1
        is_sampled = choices.count > LARGEST_LISTED
        if is_sampled:
            spaces = [candidates_of(proposal, choices, problems, self._oracle) for proposal in proposals]
            sampled = [
                tuple(filter(space.legal, map(space.base.__or__, all_or_sample(space.choices)))) for space in spaces
            ]
            # If the sample has no legal configuration, the proposal's candidate stands for all.
            legal = [sample or found for sample, found in zip(sampled, legal, strict=True)]
            scale = choices.count // SAMPLE
        # A solution that several lineages have is measured once. A sample does not show which solutions these are.
        configs = list(chain(*legal))
        if not is_sampled:
            configs = list({self._oracle.identity(config): config for config in configs}.values())
        checked = _spread(problems, max(1, MOST_CHECKED // max(1, len(configs))))
        runnable = [(c, p) for c in configs for p in checked if not self._oracle.rejections_for(c, p)]
        counts = [len(candidates) * scale for candidates in legal]
        cells = len(runnable) * scale * len(problems) // max(1, len(checked))
        if is_sampled or len(checked) < len(problems):
            return counts, cells, cells, len({self._program(config) for config in configs}) * scale, False
        cells_before, programs_before = len(self._cells), len(self._programs)
        self._cells.update((self._oracle.identity(config), problem) for config, problem in runnable)
        self._programs.update(self._program(config) for config, _ in runnable)
        return counts, cells, len(self._cells) - cells_before, len(self._programs) - programs_before, True

    def _join(self, names: Sequence[str]) -> bool:
        """Keep as many lineages as a join can leave: at most one for each key that the lineages can reach. Lineages
        with a key of their own come first. Returns whether the number of keys is estimated."""
        keys: set[Configuration] = set()
        first: list[Lineage] = []
        others: list[Lineage] = []
        is_estimated = False
        for lineage in self._lineages:
            config = lineage.configuration
            key = key_of(config, names, self._oracle)
            # Choices that do not change the key by themselves are left out.
            changing = [
                choices
                for choices in self._tuned
                if any(key_of(config | choice, names, self._oracle) != key for choice in all_or_sample(choices))
            ]
            combined = Combinations(tuple(axis for choices in changing for axis in choices.axes))
            is_estimated |= combined.count > LARGEST_LISTED
            reached = (config | choice for choice in all_or_sample(combined))
            reachable = {key_of(each, names, self._oracle) for each in reached} if changing else {key}
            (others if reachable <= keys else first).append(lineage)
            keys |= reachable
        self._lineages = tuple((first + others)[: len(keys)])
        return is_estimated


def _spread(problems: Sequence[Problem], most: int) -> Sequence[Problem]:
    """At most `most` problems, evenly spread over all."""
    if len(problems) <= most:
        return problems
    return [problems[index * len(problems) // most] for index in range(most)]


def _exhaustive(phases: Phases) -> int:
    """The number of all combinations of the values that forks and steps vary, times the number of final sizes. A
    parameter that is varied twice counts once."""
    varied: dict[frozenset[str], dict[Combinations, None]] = {}
    sizes = 1
    for step in phases.steps:
        if not isinstance(step, Join) and step.choices.axes:
            varied.setdefault(frozenset(step.choices.names), {})[step.choices] = None
        if isinstance(step, Final):
            sizes = len(step.problems)
    # A parameter is varied by several steps only if a phase has several passes, and then with the same choices.
    counts = (next(iter(lists)).count if len(lists) == 1 else len(set(chain(*lists))) for lists in varied.values())
    return prod(counts) * sizes
