"""Which launch shape for a generator on an architecture: `choose`, a pure function of measured rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.records import LaunchShape, RandomRow, UserError

from .as_rocrand import decide_compat, pairs_without_default
from .decide import decide
from .decision import RandomDecision, RandomObjective, Weights
from .matrix import RandomCase, SpeedMatrix, matrices
from .shapes import DEFAULT_SHAPES


@dataclass(frozen=True)
class Selection:
    """A decision for each generator and architecture that has one, and why the others have none."""

    objective: RandomObjective
    decisions: tuple[RandomDecision, ...]
    complaints: tuple[UserError, ...]


def choose(
    rows: Sequence[RandomRow],
    objective: RandomObjective = RandomObjective.GEOMEAN,
    defaults: Mapping[str, LaunchShape] = DEFAULT_SHAPES,
    weights: Weights | None = None,
    no_regressions: bool = False,
) -> Selection:
    """Choose a launch shape for each generator on each architecture, as ratio to the default's speed.

    `geomean` is the geometric mean over distributions and types, `worst` the smallest ratio, `weighted` the geometric
    mean with `weights`; a shape must have been measured wherever the default was, and the default stays where the
    best cannot be told from it. `compat` is what rocRAND's script chooses (`_random_as_rocrand`).
    `no_regressions` admits only shapes that are nowhere slower than the default beyond noise.
    """
    complaints = [*_unknown(rows, defaults), *_idle_weights(rows, weights or {})]
    decisions = []
    for matrix, group in matrices(rows, defaults):
        if objective is RandomObjective.COMPAT:
            complaints += _not_measured(matrix, pairs_without_default(matrix, group))
            made = decide_compat(matrix, group, no_regressions)
        else:
            complaints += _not_measured(matrix, _without_default(matrix, group))
            made = decide(matrix, objective, weights or {}, no_regressions)
        if isinstance(made, RandomDecision):
            cautions = dict.fromkeys(one for row in group for one in row.cautions)
            decisions.append(replace(made, cautions=tuple(cautions)))
        else:
            complaints.append(made)
    return Selection(objective, tuple(decisions), tuple(complaints))


def _unknown(rows: Sequence[RandomRow], defaults: Mapping[str, LaunchShape]) -> Iterator[UserError]:
    first = {row.generator: row for row in reversed(rows) if row.generator not in defaults}
    for generator, row in sorted(first.items()):
        yield UserError(row.location, f"{generator} has no default shape", "give it one with --default-config")


def _idle_weights(rows: Sequence[RandomRow], weights: Weights) -> Iterator[UserError]:
    measured = {key for row in rows for key in (("", *row.pair), (row.generator, *row.pair))}
    for key in weights:
        if key not in measured:
            yield UserError("weights", f"{'/'.join(filter(None, key))} was not measured", "leave it out, or measure it")


def _without_default(matrix: SpeedMatrix, rows: Sequence[RandomRow]) -> Iterator[tuple[str, RandomRow]]:
    yield from ((str(case), next(row for row in rows if RandomCase.of(row) == case)) for case in matrix.without_default)


def _not_measured(matrix: SpeedMatrix, places: Iterable[tuple[str, RandomRow]]) -> Iterator[UserError]:
    """What the default was not measured for, with a row of it."""
    for name, row in places:
        what = f"{matrix.generator} on {matrix.architecture}: the default {matrix.default} was not measured for {name}"
        yield UserError(row.file, what, "measure it too, or name another default with --default-config")
