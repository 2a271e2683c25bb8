"""Which configurations a lineage may try in a step, and what to do when there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from tunesmith.records import Configuration, Problem, Rejection, Value

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

    `candidates` are legal, distinct by identity, in the file's order, each with the choice that makes it.
    `substituted` are the provisional values that this step had to bring in, and `lineage` has them. `duplicates` pairs
    each choice that was left out with the candidate that stands for it. Without candidates, `refusal` says why.
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
        return next((stands for config, stands in self._all() if config == held), None)

    def _all(self) -> Iterator[tuple[Configuration, Configuration]]:
        yield from ((config, config) for config in self.configurations)
        yield from self.duplicates


def propose(
    lineage: Lineage,
    choices: Sequence[Configuration],
    problems: Sequence[Problem],
    later: Sequence[Values],
    judge: Judge,
) -> Proposal:
    """The legal ones of a lineage's choices; where there is none, with parameters of `later` steps replaced.

    Substitutes are tried in the order of `substitutions`, and the first with which any choice is legal is taken.
    """
    asked, first = 0, None
    for substituted in substitutions(lineage, later):
        proposal = _legal(lineage.substitute(substituted), choices, problems, judge)
        if proposal.candidates:
            return Proposal(proposal.lineage, proposal.candidates, substituted, proposal.rejected, proposal.duplicates)
        first = first or proposal
        asked += len(choices)
        if asked >= PATIENCE:
            break
    assert first is not None, "the empty substitution always comes first"
    return Proposal(lineage, rejected=first.rejected, refusal=_refusal(first, asked))


def substitutions(lineage: Lineage, later: Sequence[Values]) -> Iterator[Configuration]:
    """None, then every other value of one later parameter, then of two, and so on.

    Parameters in the order of `later`; within a combination the first parameter's value changes fastest.
    """
    held = lineage.configuration
    others = [
        (name, [value for value in values if Configuration({name: value}) != held.only([name])])
        for name, values in later
    ]
    for count in range(len(others) + 1):
        for chosen in combinations(others, count):
            names = [name for name, _ in chosen]
            for values in product(*(values for _, values in reversed(chosen))):
                yield Configuration(zip(names, reversed(values), strict=True))


def later_values(steps: Sequence[Step], tuned: Sequence[Values], lineage: Lineage) -> list[Values]:
    """Those parameters that `steps` (what comes after a step) still vary and that the lineage has not settled."""
    varied = {
        name for step in steps if isinstance(step, Fork | Benchmark) for choice in step.choices for name in choice
    }
    return [(name, values) for name, values in tuned if name in varied and name not in lineage.fixed]


def _legal(lineage: Lineage, choices: Sequence[Configuration], problems: Sequence[Problem], judge: Judge) -> Proposal:
    candidates: list[tuple[Configuration, Configuration]] = []
    rejected: list[tuple[Configuration, Rejection]] = []
    duplicates: list[tuple[Configuration, Configuration]] = []
    standing: dict[str, Configuration] = {}
    for choice in choices:
        config = (lineage | choice).configuration
        if rejection := first_rejection(judge, config, problems):
            rejected.append((config, rejection))
        elif (stands := standing.setdefault(judge.identity(config), config)) is config:
            candidates.append((config, choice))
        else:
            duplicates.append((config, stands))
    return Proposal(lineage, tuple(candidates), rejected=tuple(rejected), duplicates=tuple(duplicates))


def _refusal(proposal: Proposal, asked: int) -> Rejection:
    """The reason most candidates share, in the words of the first that has it."""
    counts = Counter(rejection.reason for _, rejection in proposal.rejected)
    reason = max(counts, key=lambda known: counts[known])
    detail = next(rejection.detail for _, rejection in proposal.rejected if rejection.reason == reason)
    gave_up = f" (no substitute found in {asked} tries)" if asked >= PATIENCE else ""
    return Rejection(reason, detail + gave_up)
