"""Merges rows of benchmarks into matrices: for one generator on one architecture, speeds by case and launch shape."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.records import LaunchShape, RandomRow, student_quantile

STATED_NOISE = 0.02
"""The relative noise of a ratio if neither intervals nor repeats give it: rocRAND's script warns below 0.98."""

STATED = -math.log(1 - STATED_NOISE)


@dataclass(frozen=True, slots=True, order=True)
class RandomCase:
    """A distribution, a value type and a buffer size; `bytes` is 0 if the file does not give the size."""

    distribution: str
    value_type: str
    bytes: int = 0

    @property
    def pair(self) -> tuple[str, str]:
        return self.distribution, self.value_type

    @staticmethod
    def of(row: RandomRow) -> RandomCase:
        return RandomCase(row.distribution, row.value_type, row.bytes)

    def __str__(self) -> str:
        return f"{self.distribution}/{self.value_type}"


@dataclass(frozen=True, slots=True)
class Speed:
    """A speed in 10^9 bytes per second, the geometric mean over `count` rows. `half_width` is half the 95 % interval of
    its logarithm (None: not known)."""

    gigabytes_per_second: float
    half_width: float | None
    count: int

    @property
    def log(self) -> float:
        return math.log(self.gigabytes_per_second)


@dataclass(frozen=True, slots=True)
class SpeedRatio:
    """A shape's speed over the default's, with its 95 % interval: above 1 is faster."""

    case: RandomCase
    ratio: float
    low: float
    high: float

    @property
    def slower(self) -> bool:
        """Whether the shape is slower than the default beyond noise."""
        return self.high < 1


@dataclass(frozen=True)
class SpeedMatrix:
    """All speeds that were measured of a generator on an architecture. Other shapes are compared with `default`.

    `failed` are the cells that were tried without a speed as a result.
    """

    generator: str
    architecture: str
    default: LaunchShape
    speeds: Mapping[RandomCase, Mapping[LaunchShape, Speed]]
    failed: frozenset[tuple[RandomCase, LaunchShape]] = frozenset()

    @property
    def cases(self) -> tuple[RandomCase, ...]:
        """The cases in which the default was measured. In other cases no shape can be compared with it."""
        return tuple(sorted(case for case, row in self.speeds.items() if self.default in row))

    @property
    def without_default(self) -> tuple[RandomCase, ...]:
        return tuple(sorted(case for case, row in self.speeds.items() if self.default not in row))

    @property
    def shapes(self) -> tuple[LaunchShape, ...]:
        return tuple(sorted({shape for row in self.speeds.values() for shape in row}))

    def doubt(self, case: RandomCase, shape: LaunchShape, other: LaunchShape) -> float | None:
        """Half the 95 % interval of the logarithm of the ratio of two shapes' speeds; None if it is not known."""
        if shape == other:
            return 0.0
        halves = [self.speeds[case][compared].half_width for compared in (shape, other)]
        return None if None in halves else math.hypot(*(half for half in halves if half is not None))

    def ratio(self, case: RandomCase, shape: LaunchShape) -> SpeedRatio:
        """The shape's ratio to the default; KeyError if either was not measured."""
        row = self.speeds[case]
        ratio = row[shape].gigabytes_per_second / row[self.default].gigabytes_per_second
        doubt = self.doubt(case, shape, self.default)
        if doubt is None:
            return SpeedRatio(case, ratio, ratio * (1 - STATED_NOISE), ratio / (1 - STATED_NOISE))
        return SpeedRatio(case, ratio, ratio * math.exp(-doubt), ratio * math.exp(doubt))

    def slower_cases(self, shape: LaunchShape) -> tuple[SpeedRatio, ...]:
        """The ratios of the cases in which this shape is slower than the default beyond noise."""
        ratios = (self.ratio(case, shape) for case in self.cases if shape in self.speeds[case])
        return tuple(ratio for ratio in ratios if ratio.slower)


def matrices(
    rows: Iterable[RandomRow], defaults: Mapping[str, LaunchShape]
) -> list[tuple[SpeedMatrix, tuple[RandomRow, ...]]]:
    """The matrix of each generator and architecture, with the rows that it was made of; sorted by both.

    Rows that were put aside do not count for a speed. Generators without a default are left out.
    """
    groups: dict[tuple[str, str], list[RandomRow]] = defaultdict(list)
    for row in rows:
        if row.generator in defaults:
            groups[row.generator, row.architecture].append(row)
    return [(_matrix(key, group, defaults[key[0]]), tuple(group)) for key, group in sorted(groups.items())]


def _matrix(key: tuple[str, str], rows: Sequence[RandomRow], default: LaunchShape) -> SpeedMatrix:
    cells: dict[tuple[RandomCase, LaunchShape], list[RandomRow]] = defaultdict(list)
    failed = set()
    for row in rows:
        cell = RandomCase.of(row), row.shape
        if row.aside is None:
            cells[cell].append(row)
        elif not row.gigabytes_per_second > 0:
            failed.add(cell)
    scatter = _scatter(list(cells.values()))
    speeds: dict[RandomCase, dict[LaunchShape, Speed]] = defaultdict(dict)
    for (case, shape), measured in sorted(cells.items(), key=lambda item: item[0]):
        speed = statistics.geometric_mean(row.gigabytes_per_second for row in measured)
        speeds[case][shape] = Speed(speed, _half_width(measured, scatter), len(measured))
    return SpeedMatrix(*key, default, dict(speeds), frozenset(failed - set(cells)))


def _scatter(cells: Sequence[Sequence[RandomRow]]) -> float | None:
    """How far repeats of one cell lie apart, pooled over all cells of a matrix, since a cell has only a few repeats.

    Student's 95 % quantile times the pooled standard deviation of the logarithm; None without repeats.
    """
    freedom = sum(len(cell) - 1 for cell in cells)
    if not freedom:
        return None
    logs = ([math.log(row.gigabytes_per_second) for row in cell] for cell in cells)
    squares = math.fsum(statistics.pvariance(cell) * len(cell) for cell in logs)
    return student_quantile(freedom, 0.975) * math.sqrt(squares / freedom)


def _half_width(cell: Sequence[RandomRow], scatter: float | None) -> float | None:
    """The half-width from repeats or from intervals, whichever is larger: an interval does not contain the drift
    between runs."""
    half_widths = [] if scatter is None else [scatter / math.sqrt(len(cell))]
    intervals = [row.interval for row in cell if row.interval is not None]
    if len(intervals) == len(cell):
        half_widths.append(math.hypot(*(math.log(high / low) / 2 for low, high in intervals)) / len(cell))
    return max(half_widths, default=None)
