"""The floor under products on the host's CPU: the BLAS computes them unless a kernel is known to be faster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from tunesmith.kernels import KERNELS, VENDOR
from tunesmith.logic import Choice, Logic, Rule
from tunesmith.records import Configuration, Problem, ProblemType, Solution, Target

REACH = 2
"""A measured size says something about sizes that are at most this many times larger or smaller in every index. Further
away, a tile's edges and a launch's cost may outweigh everything that was measured."""

DOUBT_OF_CALLS, DOUBT_OF_DISTANCE = 0.05, 0.2
"""By how much the logarithm of a kernel's time over that of the BLAS may grow: from a few calls of both that are timed
here in turn to all later calls, and for each unit of distance from the measured size (`Choice.distance`), since caches
that are large enough for one product are too small for the next. The second was fitted on 152 pairs of products of
`benchmarks/recorded/cpu_vs_numpy/fitted.json`, 7 % of which grew by more. The first is an allowance, not a fit: on a
disturbed machine it does not decide all near ties rightly (`run.json` there, at 768^3 and 1024^3)."""

WORTH_TIMING = 0.25
"""A kernel is timed here only if it would be faster than the BLAS with a logarithm of its time so much smaller: the day
on which it was tuned may have been a slow one, but most kernels need no look."""


class Costs(Protocol):
    """What a call costs on this machine, in seconds. Measured once, when the value is first needed."""

    def launch(self) -> float:
        """The host's time for one launch of a kernel, beyond the kernel's own time on the device."""

    def blas(self, problem: Problem) -> float:
        """The time of NumPy's BLAS for a problem that it computes, by the host's clock."""

    def kernel(self, problem: Problem, choice: Choice) -> float:
        """The time that a choice's kernel takes in calls, by the host's clock and without the launch; infinite if it
        cannot run."""


class Floor:
    """Says for each problem whether the host's BLAS is the choice. Pure: `costs` has all that is measured.

    Times in logic are times of kernels on the device. A call also pays for the launch, which is more than the whole
    product of small matrices. So a kernel is the choice only if its time and the launch's cost together are less than
    the time of the BLAS. If the logic has the time of the BLAS, the kernel's time is the upper end of its interval
    there: both are of one day. If not, and the kernel may be faster, a call of each is timed here. Times of a measured
    size are scaled to other sizes, and lengthened by the doubt of the distance, since the kernel must be known to be
    faster.
    """

    def __init__(self, target: Target, logics: Mapping[ProblemType, Logic], costs: Costs) -> None:
        self._target, self._logics, self._costs = target, logics, costs
        self._solutions: dict[ProblemType, Solution | None] = {}
        self._at_rows: dict[tuple[Problem, Solution | None], float] = {}

    def choice(self, problem: Problem, first: Choice | None) -> Choice | None:
        """The BLAS as the choice for a problem; None if the BLAS does not compute it, if `first` is known to be faster,
        or if `first` is the BLAS. `first` is the choice without a floor."""
        solution = self._solution(problem.type)
        if solution is None or (first and first.solution.kernel == VENDOR):
            return None
        by_blas = Choice(solution, VENDOR, Rule.VENDOR)
        if first is None or first.expected_seconds is None or not self._is_known(problem, first):
            return by_blas
        row = replace(problem, sizes=first.neighbour[: len(problem.sizes)], leading=())
        scale, launch = math.prod(problem.sizes) / math.prod(row.sizes), self._costs.launch()
        kernel = first.expected_seconds / scale
        blas = self._tuned(problem, first.neighbour)
        doubt = math.exp(DOUBT_OF_DISTANCE * first.distance)
        if blas is not None:
            kernel *= self._upper_end(problem.type, first.neighbour)
        else:
            blas = self._timed(row, None)
            if math.exp(-WORTH_TIMING) * doubt * kernel * scale + launch < blas * scale:
                kernel = math.exp(DOUBT_OF_CALLS) * self._timed(row, first)
            else:
                kernel = math.inf
        if doubt * kernel * scale + launch < blas * scale:
            return None
        seconds = blas * scale
        return replace(by_blas, expected_seconds=seconds, neighbour=first.neighbour, distance=first.distance)

    def _solution(self, kind: ProblemType) -> Solution | None:
        """The solution by the BLAS; None if the BLAS does not compute the type here."""
        if kind not in self._solutions:
            family = KERNELS[VENDOR]
            config = family.space(kind, self._target).defaults if kind.operation == family.operation else None
            legal = config is not None and not any(family.rejections(config, kind, self._target))
            self._solutions[kind] = Solution(kind, VENDOR, config) if legal and config is not None else None
        return self._solutions[kind]

    def _is_known(self, problem: Problem, first: Choice) -> bool:
        """Whether the choice's time was measured on this kind of device, at a size that says something about this
        one."""
        logic = self._logics.get(problem.type)
        pairs = zip(problem.sizes, first.neighbour, strict=False)
        near = all(size <= REACH * other and other <= REACH * size for size, other in pairs)
        return near and logic is not None and logic.document.origin.is_of(self._target)

    def _timed(self, row: Problem, choice: Choice | None) -> float:
        """The time of the choice or of the BLAS at a measured size. Measured once."""
        scalars = {"alpha": row.scalars.get("alpha", 1.0) != 1, "beta": row.scalars.get("beta", 0.0) != 0}
        key = (replace(row, scalars=Configuration(scalars)), choice.solution if choice else None)
        if key not in self._at_rows:
            self._at_rows[key] = self._costs.kernel(row, choice) if choice else self._costs.blas(row)
        return self._at_rows[key]

    def _upper_end(self, kind: ProblemType, where: tuple[int, ...]) -> float:
        """The upper end of the interval at a measured size, over the time: that of the size's winner, since the logic
        keeps no other interval."""
        estimates = (row.estimate for row in self._logics[kind].document.rows if row.where == where)
        return next((estimate.high / estimate.seconds for estimate in estimates), 1.0)

    def _tuned(self, problem: Problem, where: tuple[int, ...]) -> float | None:
        """The time of the BLAS that the logic has for a measured size; None if the logic has none, or is not for the
        problem's scalars."""
        if problem.scalars.get("alpha", 1.0) != 1 or problem.scalars.get("beta", 0.0) != 0:
            return None
        document = self._logics[problem.type].document
        by_blas = [index for index, named in enumerate(document.solutions) if named.solution.kernel == VENDOR]
        for row in document.rows:
            times = {row.solution: row.estimate.seconds, **row.others}
            if row.where == where and (found := [times[index] for index in by_blas if index in times]):
                return min(found)
        return None
