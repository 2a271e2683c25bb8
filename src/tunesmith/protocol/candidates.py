"""The configurations that a lineage may try in a step, with substitutes for other parameters if none is legal."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice

import numpy as np

from tunesmith.records import Configuration, Problem, Rejection, Value
from tunesmith.search import LARGEST_LISTED, Candidates, sample
from tunesmith.spaces import Combinations

from .lineage import Lineage
from .oracle import Oracle, first_rejection
from .steps import Join, Phases

Values = tuple[str, tuple[Value, ...]]
"""A parameter's name with its values, in the order of the tuning file."""

PATIENCE = 20_000
"""The number of legality questions for one lineage after which the search for a substitute gives up: about a second. If
there are too many choices to check, a tenth of this number is spent on each substitute."""


@dataclass(frozen=True)
class Proposal:
    """What a lineage tries in a step.

    `candidates` are legal configurations, distinct by identity, each with the choice that makes it. They are in the
    file's order, or in a search's order if a search takes only some. `substituted` are the provisional values that this
    step needed; `lineage` includes them. `duplicates` pairs each left-out configuration with the candidate that is the
    same solution. Without candidates, `refusal` says why. With more choices than `LARGEST_LISTED`, `rejected` has only
    the choices that were tried before a legal one.
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
        """The candidate that is the lineage's configuration before the step; None if that is no candidate."""
        incumbent = self.lineage.configuration
        return incumbent if incumbent in self.configurations else dict(self.duplicates).get(incumbent)

    def only(self, requested: Collection[Configuration], oracle: Oracle) -> Proposal:
        """The proposal with only the configurations that a search requested, in their order."""
        if self.refusal:
            return self
        names = tuple(self.candidates[0][1])
        distinct: dict[str, Configuration] = {}
        for config in requested:
            distinct.setdefault(oracle.identity(config), config)
        candidates = {config: config.only(names) for config in distinct.values()}
        duplicates = tuple((config, original) for config, original in self.duplicates if original in candidates)
        return replace(self, candidates=tuple(candidates.items()), duplicates=duplicates)


def propose(
    lineage: Lineage, later: Sequence[Values], choices: Combinations, problems: Sequence[Problem], oracle: Oracle
) -> Proposal:
    """The legal ones among a lineage's choices. If none is legal, parameters of `later` steps are substituted.

    Substitutes are tried in the order of `substitutions`, until a choice is legal. With more choices than
    `LARGEST_LISTED`, choices are tried at random, and only until one is legal.
    """
    tries, first = 0, None
    for substituted in substitutions(lineage, later):
        proposal = _legal(lineage.substitute(substituted), choices, problems, oracle)
        if proposal.candidates:
            return replace(proposal, substituted=substituted)
        first = first or proposal
        tries += len(proposal.rejected)
        if tries >= PATIENCE:
            break
    assert first is not None, "the empty substitution always comes first"
    return Proposal(lineage, rejected=first.rejected, refusal=_refusal(first, tries))


def candidates_of(proposal: Proposal, choices: Combinations, problems: Sequence[Problem], oracle: Oracle) -> Candidates:
    """The candidates for a search in a lineage's step, beginning with the incumbent."""

    def legal(config: Configuration) -> bool:
        return first_rejection(oracle, config, problems) is None

    def describe(config: Configuration) -> Mapping[str, Value]:
        guess = math.fsum(oracle.guess(config, p) for p in problems if not oracle.rejections_for(config, p))
        return {**oracle.derived(config), **({"guess": guess} if math.isfinite(guess) else {})}

    first = () if proposal.incumbent is None else (proposal.incumbent,)
    if choices.count <= LARGEST_LISTED or proposal.refusal:
        return Candidates(Combinations.of_list(proposal.configurations), first=first, describe=describe)
    return Candidates(choices, proposal.lineage.configuration, legal, first, describe=describe)


def substitutions(lineage: Lineage, later: Sequence[Values]) -> Iterator[Configuration]:
    """The empty substitution, then every other value of one later parameter, then of two parameters, and so on.

    Parameters come in the order of `later`. Within a combination the first parameter's value changes fastest.
    """
    incumbent = lineage.configuration
    others = [
        Combinations.of_list(
            Configuration({name: value}) for value in values if Configuration({name: value}) != incumbent.only([name])
        )
        for name, values in later
    ]
    for count in range(len(others) + 1):
        for chosen in combinations(others, count):
            yield from Combinations(tuple(axis for values in chosen for axis in values.axes))


def proposals(
    phases: Phases,
    index: int,
    lineages: Sequence[Lineage],
    choices: Combinations,
    problems: Sequence[Problem],
    oracle: Oracle,
) -> list[Proposal]:
    """Each lineage's proposal for the step of that index. Substitutes are for parameters that later steps vary and that
    the lineage has not settled."""
    after = (step for step in phases.steps[index + 1 :] if not isinstance(step, Join))
    varied = {name for step in after for name in step.choices.names}
    tuned = [(name, values) for name, values in phases.tuned if name in varied]
    later = ([(name, values) for name, values in tuned if name not in lineage.fixed] for lineage in lineages)
    return [
        propose(lineage, unsettled, choices, problems, oracle)
        for lineage, unsettled in zip(lineages, later, strict=True)
    ]


def _legal(lineage: Lineage, choices: Combinations, problems: Sequence[Problem], oracle: Oracle) -> Proposal:
    candidates: list[tuple[Configuration, Configuration]] = []
    rejected: list[tuple[Configuration, Rejection]] = []
    duplicates: list[tuple[Configuration, Configuration]] = []
    originals: dict[str, Configuration] = {}
    incumbent, names = lineage.configuration, choices.names
    tried: Iterable[Configuration] = Candidates(choices, incumbent)
    if is_large := choices.count > LARGEST_LISTED:
        first = (incumbent,) if incumbent.only(names) in choices else ()
        tried = islice(sample(Candidates(choices, incumbent, first=first), np.random.default_rng(0)), PATIENCE // 10)
    for config in tried:
        if rejection := first_rejection(oracle, config, problems):
            rejected.append((config, rejection))
        elif (original := originals.setdefault(oracle.identity(config), config)) is config:
            candidates.append((config, config.only(names)))
            if is_large:
                break
        else:
            duplicates.append((config, original))
    return Proposal(lineage, tuple(candidates), rejected=tuple(rejected), duplicates=tuple(duplicates))


def _refusal(proposal: Proposal, tries: int) -> Rejection:
    """The most frequent reason, with the detail of the first candidate rejected for it."""
    counts = Counter(rejection.reason for _, rejection in proposal.rejected)
    reason = max(counts, key=lambda counted: counts[counted])
    first = next(rejection for _, rejection in proposal.rejected if rejection.reason == reason)
    gave_up = f" (no substitute found in {tries} tries)" if tries >= PATIENCE else ""
    return replace(first, detail=first.detail + gave_up)
