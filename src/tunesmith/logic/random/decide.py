"""Decides for one generator on one architecture by our own objectives."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from tunesmith.records import UNKNOWN_ARCHITECTURE, LaunchShape, Rejection, UserError

from .decision import RandomDecision, RandomObjective, Remark, ShapeOverride, Weights
from .matrix import RandomCase, SpeedMatrix, SpeedRatio
from .score import ScoreScale, scale
from .shapes import is_free, rejections

NOT_COMPARABLE = "not measured everywhere"


def decide(
    matrix: SpeedMatrix, objective: RandomObjective, weights: Weights, no_regressions: bool
) -> RandomDecision | UserError:
    """The decision, or the error that says why there is none. The default stays if the best shape cannot be told from
    it."""
    location = f"{matrix.generator} on {matrix.architecture}"
    goal = scale(objective, matrix, weights)
    if not matrix.cases:
        return UserError(location, "nothing can be compared with the default", f"measure {matrix.default}")
    if goal is None:
        return UserError(location, "nothing that was measured has a weight", "give one of its pairs a weight")
    ineligible = dict(_ineligible(matrix, goal))
    if matrix.default in ineligible:
        return UserError(
            location, f"the default may not be chosen ({ineligible[matrix.default]})", "name another default"
        )
    eligible = [shape for shape in matrix.shapes if shape not in ineligible]
    safe = [shape for shape in eligible if not matrix.slower_cases(shape)]
    ranking = goal.rank(safe if no_regressions else eligible)
    equals = goal.equals(ranking)
    chosen = matrix.default if matrix.default in equals else equals[0]
    best_safe = goal.rank(safe)[0]
    decision = RandomDecision(
        objective=objective,
        matrix=matrix,
        chosen=chosen,
        score=next(scored.score for scored in ranking if scored.shape == chosen),
        ranking=ranking,
        ties=tuple(shape for shape in equals if shape != chosen),
        ratios=tuple(matrix.ratio(case, chosen) for case in matrix.cases),
        regressions=matrix.slower_cases(chosen),
        safe=None if best_safe.shape == matrix.default else best_safe,
        ineligible=tuple(sorted(ineligible.items(), key=lambda item: item[0])),
    )
    if is_free(matrix.generator):
        decision = _with_overrides(decision, goal, no_regressions)
    return replace(decision, remarks=tuple(_remarks(decision)))


def _ineligible(matrix: SpeedMatrix, goal: ScoreScale) -> Iterator[tuple[LaunchShape, Rejection]]:
    for shape in matrix.shapes:
        if missing := goal.missing(shape):
            yield shape, Rejection(NOT_COMPARABLE, f"not measured for {listed(missing)}")
        else:
            yield from ((shape, rejection) for rejection in rejections(matrix.generator, shape))


def _with_overrides(decision: RandomDecision, goal: ScoreScale, no_regressions: bool) -> RandomDecision:
    """Give a distribution and type its own shape if that is faster than the common shape beyond noise.

    Any shape that was measured in all cases of the distribution and type is eligible; other cases do not matter.
    """
    matrix, overrides, gain = decision.matrix, [], 0.0
    by_pair: dict[tuple[str, str], list[RandomCase]] = defaultdict(list)
    for case in matrix.cases:
        by_pair[case.pair].append(case)
    for pair, cases in by_pair.items():
        own = ScoreScale(matrix, {case: 1 / len(cases) for case in cases})
        shapes = [
            shape
            for shape in matrix.shapes
            if not own.missing(shape)
            and not any(rejections(matrix.generator, shape))
            and not (no_regressions and any(matrix.ratio(case, shape).slower for case in cases))
        ]
        best = own.settle(shapes, (decision.chosen, matrix.default))
        if best != decision.chosen:
            faster = own.score(best) - own.score(decision.chosen)
            overrides.append(ShapeOverride(*pair, best, math.exp(faster)))
            gain += faster * math.fsum(goal.weights[case] for case in cases)
    return replace(decision, overrides=tuple(overrides), gain=math.exp(gain))


def _remarks(decision: RandomDecision) -> Iterator[Remark]:
    matrix, chosen = decision.matrix, decision.chosen
    if decision.regressions:
        yield Remark("regressions", f"{chosen} is slower than the default for {with_ratios(decision.regressions)}")
        safe = decision.safe
        other = f"{safe.shape}, {safe.score:.3f} times the default" if safe else "the default, there is no other"
        yield Remark("without regressions", f"the best shape without regressions is {other}", look=False)
    by_rejection: dict[Rejection, list[LaunchShape]] = defaultdict(list)
    for shape, rejection in decision.ineligible:
        by_rejection[rejection].append(shape)
    for rejection, shapes in by_rejection.items():
        text = f"{listed(shapes)} may not be chosen: {rejection.detail}"
        yield Remark(rejection.reason, text, look=rejection.reason == NOT_COMPARABLE)
    yield from general_remarks(matrix, chosen)


def general_remarks(matrix: SpeedMatrix, chosen: LaunchShape) -> Iterator[Remark]:
    """The remarks that do not depend on the objective."""
    for name, value, sizes in (
        ("block", chosen.block, {shape.block for shape in matrix.shapes}),
        ("grid", chosen.grid, {shape.grid for shape in matrix.shapes}),
    ):
        if chosen != matrix.default and len(sizes) > 1 and value in (min(sizes), max(sizes)):
            end = "largest" if value == max(sizes) else "smallest"
            yield Remark("edge", f"{chosen} has the {end} {name} that was measured; try further ones", look=False)
    if matrix.architecture == UNKNOWN_ARCHITECTURE:
        yield Remark("architecture", "nobody said which architecture this is; no header can name it")


def listed(values: object) -> str:
    """The distinct values as text, such as `a, b, c and 5 more`."""
    words = list(dict.fromkeys(map(str, values)))  # type: ignore[call-overload]
    more = f" and {len(words) - 6} more" if len(words) > 6 else ""
    return ", ".join(words[:6]) + more


def with_ratios(ratios: tuple[SpeedRatio, ...]) -> str:
    """The cases with their ratios as text, slowest first, such as `poisson/unsigned_int 0.750, normal/float 0.930`."""
    slowest_first = sorted(ratios, key=lambda ratio: ratio.ratio)
    return ", ".join(f"{ratio.case} {ratio.ratio:.3f}" for ratio in slowest_first)
