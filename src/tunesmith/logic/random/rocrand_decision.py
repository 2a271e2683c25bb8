"""Decides for one generator on one architecture as rocRAND's script does, with remarks beyond the script's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import isnan

from tunesmith.records import LaunchShape, RandomRow, UserError

from .decide import decide, general_remarks, listed, with_ratios
from .decision import RandomDecision, RandomObjective, Remark, Scored
from .matrix import SpeedMatrix, SpeedRatio
from .rocrand_ranking import Ranking, rank
from .shapes import NO_POWER_OF_TWO, rejections


def decide_compat(matrix: SpeedMatrix, rows: Sequence[RandomRow], no_regressions: bool) -> RandomDecision | UserError:
    """The script's winner; with `no_regressions`, the first of its ranking that the script would not warn about."""
    left_out = [row for row in rows if _is_left_out(row)]
    rows = [row for row in rows if not _is_left_out(row)]
    ranking = rank(rows, matrix.default)
    if not ranking.shapes:
        location = f"{matrix.generator} on {matrix.architecture}"
        return UserError(location, "nothing can be compared with the default", f"measure {matrix.default}")
    chosen = ranking.shapes[0]
    if no_regressions:
        chosen = next((scored for scored in ranking.shapes if not ranking.regressing(scored.shape)), chosen)
    safe, warnings = _alternative(ranking)
    ratios = [ratio for ratio in ranking.ratios[chosen.shape] if not isnan(ratio.ratio)]
    return RandomDecision(
        objective=RandomObjective.COMPAT,
        matrix=matrix,
        chosen=chosen.shape,
        score=chosen.score,
        ranking=ranking.shapes,
        ties=tuple(tied.shape for tied in ranking.shapes if tied.score == chosen.score and tied != chosen),
        # The script has no intervals, so the ratios have none.
        ratios=tuple(next(of_pair) for of_pair in _by_pair(ratios)),
        regressions=_smallest(ranking.regressing(chosen.shape)),
        safe=safe,
        remarks=(*warnings, *_remarks(matrix, rows, chosen.shape, left_out)),
    )


def pairs_without_default(matrix: SpeedMatrix, rows: Sequence[RandomRow]) -> Iterator[tuple[str, RandomRow]]:
    """The distributions and types at which the script stops, since no row of theirs has the default's shape, not even a
    failed row or a row of another size. Each by name, with its first row."""
    first: dict[tuple[str, str], RandomRow] = {}
    with_default = set()
    for row in rows:
        if not _is_left_out(row):
            first.setdefault(row.pair, row)
            with_default |= {row.pair} if row.shape == matrix.default else set()
    yield from (("/".join(pair), row) for pair, row in sorted(first.items()) if pair not in with_default)


def _is_left_out(row: RandomRow) -> bool:
    """Whether the script leaves the row out. The script of 2026, which reads primbench's files, drops launch shapes
    whose number of threads is no power of two, for generators whose kernels find their engine by masking the thread's
    number."""
    reasons = (rejection.reason for rejection in rejections(row.generator, row.shape))
    return row.by_primbench and NO_POWER_OF_TWO in reasons


def _alternative(ranking: Ranking) -> tuple[Scored | None, list[Remark]]:
    """If the winner has ratios below 0.98: the best other shape with a mean above 1 (and unlike the winner's mean) and
    all ratios above 1, and the script's warnings. Else nothing."""
    best = ranking.shapes[0]
    slower = _smallest(ranking.regressing(best.shape))
    if not slower:
        return None, []
    others = [scored for scored in ranking.shapes if scored.score > 1.0 and scored.score != best.score]
    faster_everywhere = (other for other in others if all(x.ratio > 1.0 for x in ranking.ratios[other.shape]))
    safe = next(faster_everywhere, None)
    text = f"{best.shape} is best on average ({best.score:.3f}) and slower for {with_ratios(slower)}"
    warnings = [Remark("best_has_regressions", text)]
    if not others:
        text = "no other shape is faster than the default on average"
        warnings.append(Remark("no_other_config_with_average_speedup", text, look=False))
    if safe:
        text = f"{safe.shape} is next, with {safe.score:.3f} and faster everywhere"
        warnings.append(Remark("next_best_without_regressions", text, look=False))
    else:
        text = "no other shape is faster than the default on average and everywhere"
        warnings.append(Remark("no_config_without_regressions", text, look=False))
    return safe, warnings


def _by_pair(ratios: Iterable[SpeedRatio]) -> Iterator[Iterator[SpeedRatio]]:
    """A shape's ratios, grouped by distribution and type."""
    return (of_pair for _, of_pair in groupby(ratios, lambda ratio: ratio.case.pair))


def _smallest(ratios: Iterable[SpeedRatio]) -> tuple[SpeedRatio, ...]:
    """The smallest ratio of each distribution and type."""
    return tuple(min(of_pair, key=lambda ratio: ratio.ratio) for of_pair in _by_pair(ratios))


def _remarks(
    matrix: SpeedMatrix, rows: Sequence[RandomRow], chosen: LaunchShape, left_out: Sequence[RandomRow]
) -> Iterator[Remark]:
    if left_out:
        shapes = listed(sorted({row.shape for row in left_out}))
        yield Remark(NO_POWER_OF_TWO, f"{shapes} left out, as rocRAND's script of 2026 does: {NO_POWER_OF_TWO}", False)
    for rejection in rejections(matrix.generator, chosen):
        yield Remark(rejection.reason, f"{chosen}: {rejection.detail}; rocRAND's script chooses it all the same")
    counted = Counter(row.aside.reason for row in rows if row.aside and row.gigabytes_per_second > 0)
    for reason, count in counted.items():
        yield Remark(reason, f"{count} rows counted as measurements, as rocRAND's script does")
    ours = decide(matrix, RandomObjective.GEOMEAN, {}, no_regressions=False)
    if isinstance(ours, RandomDecision) and ours.chosen != chosen:
        yield Remark("geomean", f"geomean would choose {ours.chosen} ({ours.score:.3f})", look=False)
    yield from general_remarks(matrix, chosen)
