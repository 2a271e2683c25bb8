"""One generator on one architecture, as rocRAND's script chooses, with what it does not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import isnan

from tunesmith.records import LaunchShape, RandomRow, UserError

from .compat import Ranking, rank
from .decide import decide, general_remarks, listed, told
from .decision import RandomDecision, RandomObjective, Remark, Scored
from .matrix import SpeedMatrix, SpeedRatio
from .shapes import NO_POWER_OF_TWO, rejections


def decide_compat(matrix: SpeedMatrix, rows: Sequence[RandomRow], no_regressions: bool) -> RandomDecision | UserError:
    """The script's winner, or under `no_regressions` the first of its ranking that it would not warn about."""
    left_out = [row for row in rows if _is_left_out(row)]
    rows = [row for row in rows if not _is_left_out(row)]
    ranking = rank(rows, matrix.default)
    if not ranking.shapes:
        location = f"{matrix.generator} on {matrix.architecture}"
        return UserError(location, "nothing can be compared with the default", f"measure {matrix.default}")
    chosen = ranking.shapes[0]
    if no_regressions:
        chosen = next((one for one in ranking.shapes if not ranking.regressing(one.shape)), chosen)
    safe, warnings = _alternative(ranking)
    known = [one for one in ranking.ratios[chosen.shape] if not isnan(one.ratio)]
    return RandomDecision(
        objective=RandomObjective.COMPAT,
        matrix=matrix,
        chosen=chosen.shape,
        score=chosen.score,
        ranking=ranking.shapes,
        ties=tuple(one.shape for one in ranking.shapes if one.score == chosen.score and one != chosen),
        # The script knows no interval, so none is given.
        ratios=tuple(next(same) for same in _by_pair(known)),
        regressions=_smallest(ranking.regressing(chosen.shape)),
        safe=safe,
        remarks=(*warnings, *_remarks(matrix, rows, chosen.shape, left_out)),
    )


def pairs_without_default(matrix: SpeedMatrix, rows: Sequence[RandomRow]) -> Iterator[tuple[str, RandomRow]]:
    """Where the script stops: distributions and types of which no row, not even a failed one or one of another size,
    has the default's shape. Each with its first row."""
    first: dict[tuple[str, str], RandomRow] = {}
    with_default = set()
    for row in rows:
        if not _is_left_out(row):
            first.setdefault(row.pair, row)
            with_default |= {row.pair} if row.shape == matrix.default else set()
    yield from (("/".join(pair), row) for pair, row in sorted(first.items()) if pair not in with_default)


def _is_left_out(row: RandomRow) -> bool:
    """The script of 2026, which reads primbench's files, drops launch shapes whose threads are no power of two, for
    generators whose kernels find their engine by masking the thread's number."""
    return row.by_primbench and any(why.reason == NO_POWER_OF_TWO for why in rejections(row.generator, row.shape))


def _alternative(ranking: Ranking) -> tuple[Scored | None, list[Remark]]:
    """Where the winner has ratios below 0.98: the best of the others with a mean above 1 (and unlike the winner's)
    whose every ratio is above 1, and the script's warnings."""
    best = ranking.shapes[0]
    slower = _smallest(ranking.regressing(best.shape))
    if not slower:
        return None, []
    others = [one for one in ranking.shapes if one.score > 1.0 and one.score != best.score]
    safe = next((one for one in others if all(ratio.ratio > 1.0 for ratio in ranking.ratios[one.shape])), None)
    text = f"{best.shape} is best on average ({best.score:.3f}) and slower for {told(slower)}"
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
    """A shape's ratios, those of a distribution and type together."""
    return (same for _, same in groupby(ratios, lambda one: one.case.pair))


def _smallest(ratios: Iterable[SpeedRatio]) -> tuple[SpeedRatio, ...]:
    """Of each distribution and type."""
    return tuple(min(same, key=lambda one: one.ratio) for same in _by_pair(ratios))


def _remarks(
    matrix: SpeedMatrix, rows: Sequence[RandomRow], chosen: LaunchShape, left_out: Sequence[RandomRow]
) -> Iterator[Remark]:
    if left_out:
        shapes = listed(sorted({row.shape for row in left_out}))
        yield Remark(NO_POWER_OF_TWO, f"{shapes} left out, as rocRAND's script of 2026 does: {NO_POWER_OF_TWO}", False)
    for why in rejections(matrix.generator, chosen):
        yield Remark(why.reason, f"{chosen}: {why.detail}; rocRAND's script chooses it all the same")
    counted = Counter(row.aside.reason for row in rows if row.aside and row.gigabytes_per_second > 0)
    for reason, count in counted.items():
        yield Remark(reason, f"{count} rows counted as measurements, as rocRAND's script does")
    ours = decide(matrix, RandomObjective.GEOMEAN, {}, no_regressions=False)
    if isinstance(ours, RandomDecision) and ours.chosen != chosen:
        yield Remark("geomean", f"geomean would choose {ours.chosen} ({ours.score:.3f})", look=False)
    yield from general_remarks(matrix, chosen)
