"""What judging comes to: the score of each entrant on a device and data type, by family, bucket and kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.models.intensity.judge import (
    RANKS,
    SelectionScore,
    TimeMatrix,
    best_of_first,
    geomean,
    scored,
    scored_by,
)
from tunesmith.models.intensity.policies.situation import Situation
from tunesmith.models.intensity.published import intensity_bucket
from tunesmith.records import Problem, Solution, Target

from .entrants import Entrant
from .matrices import JudgedSubject, RepeatSpread

Guesses = tuple[Solution, ...]


@dataclass(frozen=True)
class PolicyVerdict:
    """The score of an entrant; None where none of its choices ran. `kernels` are those that it chose, `top` the
    geometric mean of the best of its first guesses, by their number, empty where it does not rank. `common_geomean` is
    that of the products which all entrants answered, NaN without any: an entrant that leaves out products which are
    hard to choose for does not score better by it."""

    entrant: Entrant
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

    `is_measured` says that choices and the best known were measured side by side, and not looked up; `matrix` then has
    these times, `noise` theirs. `guesses` has each entrant's for each problem. `common` is the number of problems that
    every entrant answered; an entrant without any answer does not count here.
    """

    subject: JudgedSubject
    matrix: TimeMatrix
    noise: RepeatSpread
    is_measured: bool
    buckets: tuple[str, ...]
    verdicts: tuple[PolicyVerdict, ...]
    guesses: Mapping[Entrant, Sequence[Guesses]]
    common: int


def label(entrant: Entrant) -> str:
    """Tells an entrant from all others."""
    return f"{entrant.name} {entrant.kernel}".strip()


def judged(
    subject: JudgedSubject,
    matrix: TimeMatrix,
    noise: RepeatSpread,
    guesses: Mapping[Entrant, Sequence[Guesses]],
    is_measured: bool,
) -> Judgement:
    """`guesses` has each entrant's for every problem of `matrix`."""
    buckets = tuple(bucket_of(problem, subject.target) for problem in matrix.problems)
    verdicts = [
        _verdict(entrant, matrix, ranked, buckets, by_neighbour=not is_measured) for entrant, ranked in guesses.items()
    ]
    answered = [set(verdict.score.rows) for verdict in verdicts if verdict.score]
    common = set.intersection(*answered) if answered else set()
    compared = tuple(replace(verdict, common_geomean=_geomean_on(verdict.score, common)) for verdict in verdicts)
    return Judgement(subject, matrix, noise, is_measured, buckets, compared, guesses, len(common))


def _geomean_on(score: SelectionScore | None, rows: set[int]) -> float:
    """Of these rows alone."""
    return geomean(score.efficiencies[[row in rows for row in score.rows]]) if score else math.nan


def bucket_of(problem: Problem, target: Target) -> str:
    """By the published rule, with the chip's ridge where a data sheet gives it."""
    situation = Situation.of(problem, target)
    return intensity_bucket(situation.product, situation.ridge).value


def _verdict(
    entrant: Entrant, matrix: TimeMatrix, ranked: Sequence[Guesses], buckets: Sequence[str], by_neighbour: bool
) -> PolicyVerdict:
    choices = [guesses[0] if guesses else None for guesses in ranked]
    kernels = [choice.kernel if choice else "" for choice in choices]
    try:
        score = scored(matrix, choices, by_neighbour=by_neighbour)
    except ValueError:
        return PolicyVerdict(entrant, None, len(choices), (), {}, {}, {}, {}, None)
    top = {count: best_of_first(matrix, ranked, count, by_neighbour) for count in RANKS} if entrant.policy.ranks else {}
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
