"""One generator on one architecture, as rocRAND's script chooses, with what it does not say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tunesmith.records import LaunchShape, RandomRow, UserError

from ._random_compat import NEXT_BEST, NO_OTHER, NONE_SAFE, REGRESSES, CompatChoice, CompatRow, choose_compat
from ._random_decide import decide, general_remarks, told
from ._random_matrix import Case, Matrix, Ratio
from ._random_records import Decision, Objective, Remark, Scored
from ._random_shapes import rejections


def decide_compat(matrix: Matrix, rows: Sequence[RandomRow], no_regressions: bool) -> Decision | UserError:
    """The script's winner, or under `no_regressions` the first of its ranking that it would not warn about."""
    choice = choose_compat(rows, matrix.default)
    if choice is None:
        place = f"{matrix.generator} on {matrix.architecture}"
        return UserError(place, "nothing can be compared with the default", f"measure {matrix.default}")
    chosen, score = choice.ranking[0]
    if no_regressions:
        unwarned = ((shape, mean) for shape, mean in choice.ranking if not choice.regresses(shape))
        chosen, score = next(unwarned, (chosen, score))
    means = dict(choice.ranking)
    alternative = choice.alternative
    return Decision(
        objective=Objective.COMPAT,
        matrix=matrix,
        chosen=chosen,
        score=score,
        ranking=tuple(Scored(shape, mean) for shape, mean in choice.ranking),
        ties=tuple(shape for shape, mean in choice.ranking if mean == score and shape != chosen),
        ratios=_first_ratios(choice, chosen),
        regressions=_regressions(choice, chosen),
        safe=Scored(alternative, means[alternative]) if alternative else None,
        remarks=tuple(_remarks(matrix, rows, choice, chosen)),
    )


def _first_ratios(choice: CompatChoice, shape: LaunchShape) -> tuple[Ratio, ...]:
    """The first of each distribution and type; the script knows no interval, so none is given."""
    found: dict[tuple[str, str], Ratio] = {}
    for one in choice.of(shape):
        if one.row.pair not in found and one.ratio == one.ratio:
            found[one.row.pair] = _ratio(one)
    return tuple(found.values())


def _regressions(choice: CompatChoice, shape: LaunchShape) -> tuple[Ratio, ...]:
    """The smallest ratio of each distribution and type that the script warns about."""
    found: dict[tuple[str, str], Ratio] = {}
    for one in choice.regressing(shape):
        if one.row.pair not in found or one.ratio < found[one.row.pair].ratio:
            found[one.row.pair] = _ratio(one)
    return tuple(found.values())


def _ratio(one: CompatRow) -> Ratio:
    return Ratio(Case(*one.row.pair, one.row.bytes), one.ratio, one.ratio, one.ratio)


def _remarks(matrix: Matrix, rows: Sequence[RandomRow], choice: CompatChoice, chosen: LaunchShape) -> Iterator[Remark]:
    winner, mean = choice.ranking[0]
    means = dict(choice.ranking)
    texts = {
        REGRESSES: f"{winner} is best on average ({mean:.3f}) and slower for {told(_regressions(choice, winner))}",
        NO_OTHER: "no other shape is faster than the default on average",
        NONE_SAFE: "no other shape is faster than the default on average and everywhere",
    }
    if alternative := choice.alternative:
        texts[NEXT_BEST] = f"{alternative} is next, with {means[alternative]:.3f} and faster everywhere"
    yield from (Remark(message, texts[message], look=message == REGRESSES) for message in choice.messages)
    for why in rejections(matrix.generator, chosen):
        yield Remark(why.reason, f"{chosen}: {why.detail}; rocRAND's script chooses it all the same")
    counted = Counter(row.aside.reason for row in rows if row.aside and row.gigabytes_per_second > 0)
    for reason, count in counted.items():
        yield Remark(reason, f"{count} rows counted as measurements, as rocRAND's script does")
    ours = decide(matrix, Objective.GEOMEAN, {}, no_regressions=False)
    if isinstance(ours, Decision) and ours.chosen != chosen:
        yield Remark("geomean", f"geomean would choose {ours.chosen} ({ours.score:.3f})", look=False)
    yield from general_remarks(matrix, chosen)
