"""`choose_shapes`: launch shapes for generators on architectures, a pure function of measured rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tunesmith.records import LaunchShape, RandomRow, UserError

from .decide import decide
from .decision import RandomDecision, RandomObjective, Weights
from .matrix import RandomCase, SpeedMatrix, matrices
from .rocrand_decision import decide_compat, pairs_without_default
from .shapes import DEFAULT_SHAPES


@dataclass(frozen=True)
class Selection:
    """A decision for each generator and architecture with one, and for the others the errors that say why not."""

    objective: RandomObjective
    decisions: tuple[RandomDecision, ...]
    complaints: tuple[UserError, ...]


def choose_shapes(
    rows: Sequence[RandomRow],
    objective: RandomObjective = RandomObjective.GEOMEAN,
    defaults: Mapping[str, LaunchShape] = DEFAULT_SHAPES,
    weights: Weights | None = None,
    no_regressions: bool = False,
) -> Selection:
    """Choose a launch shape for each generator on each architecture, by ratios to the default's speed.

    `geomean` maximizes the geometric mean over distributions and types, `worst` the smallest ratio, `weighted` the
    geometric mean with `weights`. A shape must have been measured in all cases of the default, and the default stays if
    the best shape cannot be told from it. `compat` chooses as rocRAND's script does (`rocrand_decision`).
    `no_regressions` admits only shapes that are nowhere slower than the default beyond noise.
    """
    complaints = [*_unknown(rows, defaults), *_idle_weights(rows, weights or {})]
    decisions = []
    for matrix, group in matrices(rows, defaults):
        if objective is RandomObjective.COMPAT:
            complaints += _not_measured(matrix, pairs_without_default(matrix, group))
            decision = decide_compat(matrix, group, no_regressions)
        else:
            complaints += _not_measured(matrix, _without_default(matrix, group))
            decision = decide(matrix, objective, weights or {}, no_regressions)
        if isinstance(decision, RandomDecision):
            cautions = dict.fromkeys(caution for row in group for caution in row.cautions)
            decisions.append(replace(decision, cautions=tuple(cautions)))
        else:
            complaints.append(decision)
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


def _not_measured(matrix: SpeedMatrix, cases: Iterable[tuple[str, RandomRow]]) -> Iterator[UserError]:
    """The errors for cases, each with a row of it, in which the default was not measured."""
    for name, row in cases:
        what = f"{matrix.generator} on {matrix.architecture}: the default {matrix.default} was not measured for {name}"
        yield UserError(row.file, what, "measure it too, or name another default with --default-config")
