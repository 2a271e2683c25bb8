"""The verdicts of judging: the score of each entrant on a device and data type, by family, bucket and kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.published import intensity_bucket
from tunesmith.models.intensity.scoring import (
    GUESS_COUNTS,
    SelectionScore,
    TimeMatrix,
    best_of_first,
    geomean,
    scored,
    scored_by,
)
from tunesmith.records import Problem, Target

from .choosers import Chooser, Guesses
from .entrants import Entrant
from .matrices import JudgedSubject, RepeatSpread

Contestant = Entrant | Chooser
AllGuesses = Mapping[Contestant, Sequence[Guesses]]


@dataclass(frozen=True)
class PolicyVerdict:
    """The score of an entrant; None if none of its choices ran.

    `kernels` are the kernels that it chose. `top` has the geometric mean of the best of its first n guesses, by n;
    empty if it does not rank. `common_geomean` is over the products that all entrants answered (NaN if there are none),
    so that an entrant does not gain by leaving out hard products.
    """

    entrant: Contestant
    score: SelectionScore | None
    problems: int
    kernels: tuple[str, ...]
    by_family: Mapping[str, SelectionScore]
    by_bucket: Mapping[str, SelectionScore]
    by_kernel: Mapping[str, SelectionScore]
    top: Mapping[int, float]
    worst_at: Problem | None
    common_geomean: float = math.nan


@dataclass(frozen=True)
class Judgement:
    """All verdicts on a device and data type.

    If `is_measured`, choices and the best known were measured interleaved, and `matrix` and `noise` are of these times;
    else choices were looked up. `guesses` has the guesses of each entrant for each problem. `common` is the number of
    problems that every entrant answered; entrants without any answer are left out of this number.
    """

    subject: JudgedSubject
    matrix: TimeMatrix
    noise: RepeatSpread
    is_measured: bool
    buckets: tuple[str, ...]
    verdicts: tuple[PolicyVerdict, ...]
    guesses: AllGuesses
    common: int


def label(entrant: Contestant) -> str:
    """The entrant's unique name: its policy's name and its kernel."""
    return f"{entrant.name} {entrant.kernel}".strip()


def judged(
    subject: JudgedSubject,
    matrix: TimeMatrix,
    noise: RepeatSpread,
    guesses: AllGuesses,
    is_measured: bool,
) -> Judgement:
    """The verdicts on all entrants. `guesses` has each entrant's guesses for every problem of `matrix`."""
    buckets = tuple(bucket_of(problem, subject.target) for problem in matrix.problems)
    verdicts = [
        _verdict(entrant, matrix, ranked, buckets, by_neighbour=not is_measured) for entrant, ranked in guesses.items()
    ]
    answered = [set(verdict.score.rows) for verdict in verdicts if verdict.score]
    common = set.intersection(*answered) if answered else set()
    compared = tuple(replace(verdict, common_geomean=_geomean_on(verdict.score, common)) for verdict in verdicts)
    return Judgement(subject, matrix, noise, is_measured, buckets, compared, guesses, len(common))


def _geomean_on(score: SelectionScore | None, rows: set[int]) -> float:
    """The geometric mean of a score's efficiencies on these rows; NaN without a score."""
    return geomean(score.efficiencies[[row in rows for row in score.rows]]) if score else math.nan


def bucket_of(problem: Problem, target: Target) -> str:
    """A problem's bucket by the published rule, with the chip's ridge if a data sheet has it."""
    situation = PolicyInput.of(problem, target)
    return intensity_bucket(situation.product, situation.ridge).value


def _verdict(
    entrant: Contestant, matrix: TimeMatrix, ranked: Sequence[Guesses], buckets: Sequence[str], by_neighbour: bool
) -> PolicyVerdict:
    choices = [guesses[0] if guesses else None for guesses in ranked]
    kernels = [choice.kernel if choice else "" for choice in choices]
    try:
        score = scored(matrix, choices, by_neighbour=by_neighbour)
    except ValueError:
        return PolicyVerdict(entrant, None, len(choices), (), {}, {}, {}, {}, None)
    top = {count: best_of_first(matrix, ranked, count, by_neighbour) for count in GUESS_COUNTS} if entrant.ranks else {}
    return PolicyVerdict(
        entrant,
        score,
        len(choices),
        tuple(sorted({name for name in kernels if name})),
        scored_by(matrix, score, matrix.families),
        scored_by(matrix, score, buckets),
        scored_by(matrix, score, kernels),
        top,
        matrix.problems[score.rows[int(score.efficiencies.argmin())]],
    )
