"""What a run will cost, before it starts: every step's lineages, candidates, sizes and enqueues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod

from tunesmith.records import Configuration, Problem
from tunesmith.search import MOST_WHOLE, SAMPLE, STRATEGIES, some
from tunesmith.spaces import Combinations

from .benchmark_protocol import AS_IT_IS, fork
from .candidates import Proposal, candidates_of, proposals
from .joins import check_names, key_of
from .lineage import Lineage
from .oracle import Oracle
from .results import step_names
from .steps import EXHAUSTIVE, Benchmark, Final, Fork, Join, Phase, Phases


@dataclass(frozen=True, slots=True)
class StepForecast:
    """One step: `lineages` enter it and `survivors` leave it.

    `choices` is what the file lists for one lineage, `candidates` what all lineages try of it together, `enqueues` the
    cells to be timed: candidates times `sizes`, less the cells that are illegal or the same solution. `is_estimated`
    where a sample stands for more combinations than can be looked at. After rejections, `fresh` of the enqueues are of
    cells that no earlier step has measured, and take `programs` that no earlier step has compiled; `rejected` counts
    by reason what is illegal, with an `example` of each reason.
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

    @property
    def is_possible(self) -> bool:
        """Whether anything is left to be measured in the last step."""
        return not self.after or self.after[-1].enqueues > 0

    @property
    def rejected(self) -> Counter[str]:
        """What is illegal in all steps, by reason."""
        return sum((Counter(step.rejected) for step in self.after), Counter())

    @property
    def examples(self) -> dict[str, str]:
        """An example of each reason: the first."""
        return {reason: text for step in reversed(self.after) for reason, text in step.examples.items()}


Program = Callable[[Configuration], str]
"""Equal for configurations of which one program is compiled; asked only of legal ones."""


def forecast(phases: Phases, oracle: Oracle, program: Program | None = None) -> StepsForecast:
    """Walk through the steps without measuring; without `program`, every solution is a program of its own. Raises
    UserError for a join over an unknown name."""
    check_names(phases, oracle)
    before, after = (_LineageWalk(phases, oracle, legal, program or oracle.identity).steps() for legal in (False, True))
    return StepsForecast(before, after, _exhaustive(phases))


class _LineageWalk:
    """Lineages on their way through the steps, what was tuned in them so far, and whether they were measured since the
    fork. With `only_legal`, what the oracle rejects is left out."""

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
        """What a step costs; afterwards the lineages are those that it leaves."""
        step = self._phases.steps[index]
        made = StepForecast(name, step.phase, len(self._lineages))
        match step:
            case Fork(choices):
                made = replace(made, choices=choices.count)
                self._lineages, self._is_measured = fork(self._lineages, choices), False
                self._tuned = tuple(earlier.without(choices.names) for earlier in self._tuned)
            case Benchmark(choices=choices):
                made = self._attempt(made, index, choices, step.problems)
                self._tuned = (*(earlier for earlier in self._tuned if earlier != choices), choices)
            case Join():
                if not self._is_measured:
                    made = self._attempt(made, index, AS_IT_IS, step.problems)
                made = replace(made, is_estimated=self._join(step.names))
            case Final(choices=choices):
                made = self._attempt(made, index, choices, step.problems)
                if choices.axes:
                    return replace(made, survivors=made.candidates)
        return replace(made, survivors=len(self._lineages))

    def _attempt(
        self, made: StepForecast, index: int, choices: Combinations, problems: Sequence[Problem]
    ) -> StepForecast:
        """Every lineage tries some of its choices, and goes on with the one that is expected to win."""
        search, is_whole = self._phases.search, choices.count <= MOST_WHOLE
        fresh = programs = 0
        if self._only_legal:
            proposed = proposals(self._phases, index, self._lineages, choices, problems, self._oracle)
            counts, cells, fresh, programs = self._legal(proposed, choices, problems)
            rejections = [rejection for each in proposed for _, rejection in each.rejected]
            made = replace(
                made,
                rejected=Counter(rejection.reason for rejection in rejections),
                examples={rejection.reason: rejection.detail for rejection in reversed(rejections)},
            )
            self._lineages = tuple(
                each.lineage | dict(each.candidates)[each.incumbent or each.configurations[0]]
                for each in proposed
                if each.candidates
            )
        else:
            counts = [choices.count] * len(self._lineages)
            cells = sum(counts) * len(problems)
            self._lineages = tuple(lineage | choices[0] for lineage in self._lineages)
        self._is_measured = True
        # The last step measures everything, whatever the strategy.
        strategy = EXHAUSTIVE if isinstance(self._phases.steps[index], Final) else search.strategy
        candidates = sum(STRATEGIES[strategy].count(count, search.trials) for count in counts)
        legal = max(1, sum(counts))
        return replace(
            made,
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
    ) -> tuple[list[int], int, int, int]:
        """Each lineage's candidates, and the legal cells of all, those of them that are new, and the programs that are;
        of too many choices, what a sample speaks for."""
        legal, scale = [proposal.configurations for proposal in proposals], 1
        if choices.count > MOST_WHOLE:
            spaces = [candidates_of(proposal, choices, problems, self._oracle) for proposal in proposals]
            sampled = [tuple(filter(space.legal, map(space.base.__or__, some(space.choices)))) for space in spaces]
            # Where the sample has none, the one that was found speaks for all.
            legal, scale = [seen or known for seen, known in zip(sampled, legal, strict=True)], choices.count // SAMPLE
        # Solutions that several lineages have are measured once; which these are, a sample does not show.
        configs = list(chain(*legal))
        if scale == 1:
            configs = list({self._oracle.identity(config): config for config in configs}.values())
        runnable = [(c, p) for c in configs for p in problems if not self._oracle.rejections_for(c, p)]
        counts, cells = [len(each) * scale for each in legal], len(runnable) * scale
        if scale > 1:
            return counts, cells, cells, len({self._program(config) for config in configs}) * scale
        met, compiled = len(self._cells), len(self._programs)
        self._cells.update((self._oracle.identity(config), problem) for config, problem in runnable)
        self._programs.update(self._program(config) for config, _ in runnable)
        return counts, cells, len(self._cells) - met, len(self._programs) - compiled

    def _join(self, names: Sequence[str]) -> bool:
        """Keep as many lineages as a join can leave: no more than there are, and no more than there are keys within
        reach. Those with a key of their own come first. Returns whether the keys are estimated."""
        keys: set[Configuration] = set()
        first: list[Lineage] = []
        others: list[Lineage] = []
        is_estimated = False
        for lineage in self._lineages:
            config = lineage.configuration
            held = key_of(config, names, self._oracle)
            # A step that never moves the key alone is left out.
            moving = [
                each for each in self._tuned if any(key_of(config | c, names, self._oracle) != held for c in some(each))
            ]
            within = Combinations(tuple(axis for each in moving for axis in each.axes))
            is_estimated |= within.count > MOST_WHOLE
            reach = {key_of(config | choice, names, self._oracle) for choice in some(within)}
            (others if reach <= keys else first).append(lineage)
            keys |= reach
        self._lineages = tuple((first + others)[: len(keys)])
        return is_estimated


def _exhaustive(phases: Phases) -> int:
    """Every combination of what forks and steps vary, on every final size; a parameter varied twice counts once."""
    varied: dict[frozenset[str], dict[Combinations, None]] = {}
    sizes = 1
    for step in phases.steps:
        if not isinstance(step, Join) and step.choices.axes:
            varied.setdefault(frozenset(step.choices.names), {})[step.choices] = None
        if isinstance(step, Final):
            sizes = len(step.problems)
    # Only a step that is passed again names its parameters twice in a file, with the same choices.
    counts = (next(iter(each)).count if len(each) == 1 else len(set(chain(*each))) for each in varied.values())
    return prod(counts) * sizes
