"""Which products would teach a choice model most: those at which another choice may be much faster, of every family."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping
from operator import itemgetter

from tunesmith.problems.gemm import gemm_type_named
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Problem, ProblemType

from .design.design import designed, families_for
from .model import ChoiceModel, ExpectedTimes

CANDIDATES = 20
"""How many products are considered for each that is taken."""


def products_to_learn(
    model: ChoiceModel,
    count: int,
    seed: int,
    left_out: Collection[ListedGemm] = (),
    families: Collection[str] = (),
) -> tuple[ListedGemm, ...]:
    """`count` products of the design's families, each with its share, those that a measurement would settle most first.
    Without `families`, of all whose products the model's types compute.

    Fewer if the model's problem types compute fewer layouts than the design has.
    """
    families = families or families_for(filter(None, map(gemm_type_named, model.types)))
    shares = Counter(row.family for row in designed(count, seed, families=families))
    times = {kind: _times(model, kind) for kind in filter(None, map(gemm_type_named, model.types))}
    candidates = [(_at_stake(times, row), row) for row in designed(CANDIDATES * count, seed, left_out, families)]
    taken: list[ListedGemm] = []
    for stake, row in sorted(candidates, key=itemgetter(0), reverse=True):
        if stake > 0 and shares[row.family]:
            shares[row.family] -= 1
            taken.append(row)
    return tuple(taken)


def _times(model: ChoiceModel, kind: ProblemType) -> ExpectedTimes:
    """What the model expects of all solutions that it knows for a type."""
    return model.times_of(kind, model.solutions_of(kind))


def _at_stake(times: Mapping[ProblemType, ExpectedTimes], row: ListedGemm) -> float:
    """The largest expected gain of a solution over the one that would be chosen, in the logarithm of time, if the doubt
    is a normal distribution's. 0 for a product of none of the types."""
    kind = next((kind for kind in times if row.fits(kind)), None)
    ranked = times[kind].ranked(Problem(kind, row.sizes(kind))) if kind else ()
    if len(ranked) < 2:
        return 0.0
    first, *others = ranked
    return max(
        _expected_gain(math.log(first.seconds / other.seconds), max(first.doubt, other.doubt)) for other in others
    )


def _expected_gain(mean: float, deviation: float) -> float:
    """The mean of the positive part of a normal distribution."""
    ratio = mean / deviation
    density = math.exp(-(ratio**2) / 2) / math.sqrt(2 * math.pi)
    return mean * (1 + math.erf(ratio / math.sqrt(2))) / 2 + deviation * density
