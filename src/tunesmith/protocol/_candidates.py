"""Which configurations a lineage may try in a step, and what to do when there is none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations, islice

import numpy as np

from tunesmith.records import Configuration, Problem, Rejection, Value
from tunesmith.search import MOST_WHOLE, Candidates, sample
from tunesmith.spaces import Combinations

from ._judge import Judge, first_rejection
from ._lineage import Lineage
from ._steps import Benchmark, Fork, Step

Values = tuple[str, tuple[Value, ...]]
"""A parameter's name with its values, in the order of the tuning file."""

PATIENCE = 20_000
"""Legality questions asked for one lineage before the search for a substitute gives up: about a second."""


@dataclass(frozen=True)
class Proposal:
    """What a lineage tries in a step.

    `candidates` are legal, distinct by identity, in the order in which they were asked for (the file's, where all are),
    each with the choice that makes it. `substituted` are the provisional values that this step had to bring in, and
    `lineage` has them. `duplicates` pairs each choice that was left out with the candidate that stands for it. Without
    candidates, `refusal` says why.
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


@dataclass
class Prospect:
    """A lineage before a step's choices; those that were looked at are remembered, with what forbids them.

    Choices that are few enough are all looked at once; of more, those that a search asks to see.
    """

    lineage: Lineage
    choices: Combinations
    problems: Sequence[Problem]
    judge: Judge
    substituted: Configuration = Configuration()
    refusal: Rejection | None = None
    seen: dict[Configuration, Rejection | None] = field(default_factory=dict)
    distinct: dict[str, Configuration] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """All choices are looked at, and `distinct` has the first legal one of each identity."""
        return self.choices.count <= MOST_WHOLE

    def is_legal(self, config: Configuration) -> bool:
        if config not in self.seen:
            self.seen[config] = first_rejection(self.judge, config, self.problems)
        return self.seen[config] is None

    def candidates(self) -> Candidates:
        """What a search chooses from, beginning with what the lineage holds."""
        held = self.lineage.configuration
        is_choice = held.only(self.choices.names) in self.choices and self.is_legal(held)
        if self.is_whole or self.refusal:
            first = (self.distinct[self.judge.identity(held)],) if is_choice else ()
            return Candidates(Combinations.of_list(self.distinct.values()), first=first, describe=self._describe)
        first = (held,) if is_choice else ()
        return Candidates(self.choices, held, self.is_legal, first, describe=self._describe)

    def look(self) -> bool:
        """Whether there is a legal choice; of many, among as many as patience lasts for."""
        if not self.is_whole:
            seen = sample(self.candidates(), np.random.default_rng(0))
            return any(map(self.is_legal, islice(seen, PATIENCE)))
        for choice in self.choices:
            config = self.lineage.configuration | choice
            if self.is_legal(config):
                self.distinct.setdefault(self.judge.identity(config), config)
        return bool(self.distinct)

    @property
    def expected(self) -> Configuration:
        """The choice that is taken to win: what the lineage holds, else the first legal one that was looked at."""
        legal = (config for config, rejection in self.seen.items() if not rejection)
        return next(chain(self.candidates().first, legal)).only(self.choices.names)

    def proposal(self, asked: Collection[Configuration]) -> Proposal:
        """What became of it, when a search has asked for these."""
        rejected = tuple((config, rejection) for config, rejection in self.seen.items() if rejection)
        if self.refusal:
            return Proposal(self.lineage, rejected=rejected, refusal=self.refusal)
        first: dict[str, Configuration] = {}
        for config in asked:
            first.setdefault(self.judge.identity(config), config)
        legal = [config for config, rejection in self.seen.items() if not rejection] if self.is_whole else asked
        stands = {config: first.get(self.judge.identity(config)) for config in legal}
        names = self.choices.names
        return Proposal(
            self.lineage,
            tuple((config, config.only(names)) for config in first.values()),
            self.substituted,
            rejected,
            tuple((config, stand) for config, stand in stands.items() if stand not in (None, config)),
        )

    def _describe(self, config: Configuration) -> Mapping[str, Value]:
        """Derived values, and the seconds that the family expects for all problems together, if any."""
        runs = [problem for problem in self.problems if not self.judge.rejections_for(config, problem)]
        guess = math.fsum(self.judge.guess(config, problem) for problem in runs)
        return {**self.judge.derived(config), **({"guess": guess} if math.isfinite(guess) else {})}


def propose(
    lineage: Lineage,
    choices: Combinations,
    problems: Sequence[Problem],
    later: Sequence[Values],
    judge: Judge,
) -> Prospect:
    """The legal ones of a lineage's choices; where there is none, with parameters of `later` steps replaced.

    Substitutes are tried in the order of `substitutions`, and the first with which any choice is legal is taken.
    """
    asked, first = 0, None
    for substituted in substitutions(lineage, later):
        prospect = Prospect(lineage.substitute(substituted), choices, problems, judge, substituted)
        if prospect.look():
            return prospect
        first = first or prospect
        asked += len(prospect.seen)
        if asked >= PATIENCE:
            break
    assert first is not None, "the empty substitution always comes first"
    first.refusal = _refusal([rejection for rejection in first.seen.values() if rejection], asked)
    return first


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


def later_values(steps: Sequence[Step], tuned: Sequence[Values], lineage: Lineage) -> list[Values]:
    """Those parameters that `steps` (what comes after a step) still vary and that the lineage has not settled."""
    varied = {name for step in steps if isinstance(step, Fork | Benchmark) for name in step.choices.names}
    return [(name, values) for name, values in tuned if name in varied and name not in lineage.fixed]


def _refusal(rejections: Sequence[Rejection], asked: int) -> Rejection:
    """The reason most candidates share, in the words of the first that has it."""
    counts = Counter(rejection.reason for rejection in rejections)
    reason = max(counts, key=lambda known: counts[known])
    detail = next(rejection.detail for rejection in rejections if rejection.reason == reason)
    gave_up = f" (no substitute found in {asked} tries)" if asked >= PATIENCE else ""
    return Rejection(reason, detail + gave_up)
