"""Which configurations a lineage may try in a step, and what to do when there is none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

import numpy as np

from tunesmith.records import Configuration, Problem, Rejection, Value
from tunesmith.search import MOST_WHOLE, Candidates, sample
from tunesmith.spaces import Combinations

from .lineage import Lineage
from .oracle import Oracle, first_rejection
from .steps import Join, Phases

Values = tuple[str, tuple[Value, ...]]
"""A parameter's name with its values, in the order of the tuning file."""

PATIENCE = 20_000
"""Legality questions asked for one lineage before the search for a substitute gives up: about a second. Of choices that
are too many to be looked at, a tenth of it is spent on each substitute."""


@dataclass(frozen=True)
class Proposal:
    """What a lineage tries in a step.

    `candidates` are legal, distinct by identity, in the file's order (where a search takes some of them, in its own),
    each with the choice that makes it. `substituted` are the provisional values that this step had to bring in, and
    `lineage` has them. `duplicates` pairs each choice that was left out with the candidate that stands for it. Without
    candidates, `refusal` says why. Of more choices than `MOST_WHOLE`, `rejected` has those before a legal one.
    """

    lineage: Lineage
    candidates: tuple[tuple[Configuration, Configuration], ...] = ()
    substituted: Configuration = Configuration()
    rejected: tuple[tuple[Configuration, Rejection], ...] = ()
    duplicates: tuple[tuple[Configuration, Configuration], ...] = ()
    refusal: Rejection | None = None

    @property
    def configurations(self) -> tuple[Configuration, ...]:
        return tuple(config for config, _ in self.candidates)

    @property
    def incumbent(self) -> Configuration | None:
        """The candidate that is what the lineage held before the step, if there is one."""
        held = self.lineage.configuration
        return held if held in self.configurations else dict(self.duplicates).get(held)

    def only(self, asked: Collection[Configuration], oracle: Oracle) -> Proposal:
        """What is left of it where a search asked for no more than these, in their order."""
        if self.refusal:
            return self
        names = tuple(self.candidates[0][1])
        distinct: dict[str, Configuration] = {}
        for config in asked:
            distinct.setdefault(oracle.identity(config), config)
        candidates = {config: config.only(names) for config in distinct.values()}
        duplicates = tuple((config, stands) for config, stands in self.duplicates if stands in candidates)
        return replace(self, candidates=tuple(candidates.items()), duplicates=duplicates)


def propose(
    lineage: Lineage, later: Sequence[Values], choices: Combinations, problems: Sequence[Problem], oracle: Oracle
) -> Proposal:
    """The legal ones of a lineage's choices; where there is none, with parameters of `later` steps replaced.

    Substitutes are tried in the order of `substitutions`, and the first with which any choice is legal is taken. Of
    more choices than `MOST_WHOLE` no more than a legal one is looked for, at random.
    """
    asked, first = 0, None
    for substituted in substitutions(lineage, later):
        proposal = _legal(lineage.substitute(substituted), choices, problems, oracle)
        if proposal.candidates:
            return replace(proposal, substituted=substituted)
        first = first or proposal
        asked += len(proposal.rejected)
        if asked >= PATIENCE:
            break
    assert first is not None, "the empty substitution always comes first"
    return Proposal(lineage, rejected=first.rejected, refusal=_refusal(first, asked))


def candidates_of(proposal: Proposal, choices: Combinations, problems: Sequence[Problem], oracle: Oracle) -> Candidates:
    """What a search chooses from in a lineage's step, beginning with what the lineage holds."""

    def legal(config: Configuration) -> bool:
        return first_rejection(oracle, config, problems) is None

    def describe(config: Configuration) -> Mapping[str, Value]:
        guess = math.fsum(oracle.guess(config, p) for p in problems if not oracle.rejections_for(config, p))
        return {**oracle.derived(config), **({"guess": guess} if math.isfinite(guess) else {})}

    first = () if proposal.incumbent is None else (proposal.incumbent,)
    if choices.count <= MOST_WHOLE or proposal.refusal:
        return Candidates(Combinations.of_list(proposal.configurations), first=first, describe=describe)
    return Candidates(choices, proposal.lineage.configuration, legal, first, describe=describe)


def substitutions(lineage: Lineage, later: Sequence[Values]) -> Iterator[Configuration]:
    """None, then every other value of one later parameter, then of two, and so on.

    Parameters in the order of `later`; within a combination the first parameter's value changes fastest.
    """
    held = lineage.configuration
    others = [
        Combinations.of_list(
            Configuration({name: value}) for value in values if Configuration({name: value}) != held.only([name])
        )
        for name, values in later
    ]
    for count in range(len(others) + 1):
        for chosen in combinations(others, count):
            yield from Combinations(tuple(axis for listed in chosen for axis in listed.axes))


def proposals(
    phases: Phases,
    index: int,
    lineages: Sequence[Lineage],
    choices: Combinations,
    problems: Sequence[Problem],
    oracle: Oracle,
) -> list[Proposal]:
    """What each lineage may try in the step of that index; substitutes are of parameters that steps after it still vary
    and that the lineage has not settled."""
    after = (step for step in phases.steps[index + 1 :] if not isinstance(step, Join))
    varied = {name for step in after for name in step.choices.names}
    tuned = [(name, values) for name, values in phases.tuned if name in varied]
    later = ([each for each in tuned if each[0] not in lineage.fixed] for lineage in lineages)
    return [propose(*each, choices, problems, oracle) for each in zip(lineages, later, strict=True)]


def _legal(lineage: Lineage, choices: Combinations, problems: Sequence[Problem], oracle: Oracle) -> Proposal:
    candidates: list[tuple[Configuration, Configuration]] = []
    rejected: list[tuple[Configuration, Rejection]] = []
    duplicates: list[tuple[Configuration, Configuration]] = []
    standing: dict[str, Configuration] = {}
    held, names = lineage.configuration, choices.names
    looked: Iterable[Configuration] = Candidates(choices, held)
    if is_large := choices.count > MOST_WHOLE:
        first = (held,) if held.only(names) in choices else ()
        looked = islice(sample(Candidates(choices, held, first=first), np.random.default_rng(0)), PATIENCE // 10)
    for config in looked:
        if rejection := first_rejection(oracle, config, problems):
            rejected.append((config, rejection))
        elif (stands := standing.setdefault(oracle.identity(config), config)) is config:
            candidates.append((config, config.only(names)))
            if is_large:
                break
        else:
            duplicates.append((config, stands))
    return Proposal(lineage, tuple(candidates), rejected=tuple(rejected), duplicates=tuple(duplicates))


def _refusal(proposal: Proposal, asked: int) -> Rejection:
    """The reason most candidates share, in the words of the first that has it."""
    counts = Counter(rejection.reason for _, rejection in proposal.rejected)
    reason = max(counts, key=lambda known: counts[known])
    first = next(rejection for _, rejection in proposal.rejected if rejection.reason == reason)
    gave_up = f" (no substitute found in {asked} tries)" if asked >= PATIENCE else ""
    return replace(first, detail=first.detail + gave_up)
