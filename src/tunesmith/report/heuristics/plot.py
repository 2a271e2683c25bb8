"""An audit as SVG, a row for each family.

Left: the two lines of IREE's study over intensity. Right: the tiles of the winners over the chosen metric, with the
steps of the fitted buckets and their cut points.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tunesmith.models.intensity.fit.percentile_fit import PercentileFit
from tunesmith.session.heuristics.audit import FamilyAudit, HeuristicAudit

from ..drawing import LARGE, MARGIN, MEASURES, PADDING, AxisTick
from ..templating import template

PANEL = (380.0, 250.0)
"""Pixels of a panel without its labels."""
LEFT, ABOVE, BELOW = 66.0, 40.0, 48.0
"""Room for the labels of a panel."""
MOST_POINTS = 3000
"""Points of a panel at most; of more products, every n-th is drawn."""
HEAD = "Tiles by size"

Point = tuple[float, float]


@dataclass(frozen=True)
class AuditPanel:
    """Points, lines and vertical cut points of a panel, in pixels from its corner; `x` and `y` are the corner's."""

    x: float
    y: float
    title: str
    subtitle: str
    x_label: str
    x_ticks: tuple[AxisTick, ...]
    y_ticks: tuple[AxisTick, ...]
    points: tuple[Point, ...]
    lines: tuple[tuple[Point, ...], ...]
    cuts: tuple[float, ...]


def audit_plot(audit: HeuristicAudit) -> str:
    """The picture of the families whose winners' tiles are known; empty text if there is no such family."""
    drawn = [family for family in audit.families if family.percentiles and family.works is not None]
    if not drawn:
        return ""
    top = MARGIN + LARGE + 2 * PADDING
    height = ABOVE + PANEL[1] + BELOW
    panels = []
    for row, family in enumerate(drawn):
        y = top + row * height + ABOVE
        panels += [_lines_panel(family, MARGIN + LEFT, y), _steps_panel(family, MARGIN + 2 * LEFT + PANEL[0], y)]
    return template("heuristics_audit.svg.jinja").render(
        width=math.ceil(2 * (MARGIN + LEFT + PANEL[0])),
        height=math.ceil(top + len(drawn) * height + MARGIN),
        heading=HEAD,
        summary="winners of tuning, with the lines of IREE's study and with fitted buckets",
        panels=panels,
        panel=PANEL,
        **MEASURES,
    )


def _lines_panel(family: FamilyAudit, x: float, y: float) -> AuditPanel:
    lines = family.percentiles
    assert lines is not None
    assert family.works is not None
    axes = _Axes(family.intensities, family.works)
    low, high = lines.low, lines.high
    drawn = [_drawn_line(lines, axes, is_low) for is_low in (True, False)]
    return AuditPanel(
        x,
        y,
        f"{family.family}, {family.read.device}, {family.read.data_type}",
        f"low: R2 {low.r2:.2f}, Q2 {low.q2:.2f}; high: R2 {high.r2:.2f}, Q2 {high.q2:.2f}",
        "FLOP per element; upwards: elements of D a work-group computes",
        axes.ticks(0),
        axes.ticks(1),
        axes.points(),
        tuple(line for line in drawn if len(line) > 1),
        (axes.x(lines.low_cut), axes.x(lines.high_cut)),
    )


def _drawn_line(lines: PercentileFit, axes: _Axes, is_low: bool) -> tuple[Point, ...]:
    """Points of one of the two lines where it is above the axis's lower end.

    On logarithmic axes a straight line is a curve, so two points do not draw it.
    """
    line, count = (lines.low, 40) if is_low else (lines.high, 40)
    first, last = (axes.ends[0][0], lines.low_cut) if is_low else (lines.high_cut, axes.ends[0][1])
    values = [first * (last / first) ** (step / count) for step in range(count + 1)]
    heights = [(value, line.intercept + line.slope * value) for value in values]
    return tuple((axes.x(value), axes.y(height)) for value, height in heights if height >= axes.ends[1][0])


def _steps_panel(family: FamilyAudit, x: float, y: float) -> AuditPanel:
    chosen, steps = family.comparison.chosen, family.steps
    assert family.read.sample.areas is not None
    axes = _Axes(family.read.sample.values(chosen.rule).tolist(), family.read.sample.areas.tolist())
    ends = (axes.ends[0][0], *steps.cuts, axes.ends[0][1])
    return AuditPanel(
        x,
        y,
        f"{chosen.rule}, {chosen.buckets} buckets",
        f"R2 held out {chosen.explained:.2f} [{chosen.interval[0]:.2f}, {chosen.interval[1]:.2f}]",
        f"{chosen.rule}; upwards: elements of the winner's tile",
        axes.ticks(0),
        axes.ticks(1),
        axes.points(),
        tuple(
            ((axes.x(first), axes.y(math.exp(level))), (axes.x(last), axes.y(math.exp(level))))
            for (first, last), level in zip(pairwise(ends), steps.decisions, strict=True)
        ),
        tuple(axes.x(cut) for cut in steps.cuts),
    )


class _Axes:
    """Two logarithmic axes over positive numbers."""

    def __init__(self, horizontal: Sequence[float], vertical: Sequence[float]) -> None:
        self._values = (horizontal, vertical)
        self.ends = tuple((min(values) / 1.15, max(values) * 1.15) for values in self._values)
        self.x: Callable[[float], float] = lambda value: PANEL[0] * self._part(0, value)
        self.y: Callable[[float], float] = lambda value: PANEL[1] * (1 - self._part(1, value))

    def points(self) -> tuple[Point, ...]:
        step = math.ceil(len(self._values[0]) / MOST_POINTS)
        pairs = zip(self._values[0][::step], self._values[1][::step], strict=True)
        return tuple(dict.fromkeys((round(self.x(x), 1), round(self.y(y), 1)) for x, y in pairs))

    def ticks(self, axis: int) -> tuple[AxisTick, ...]:
        """At most seven powers of ten; the axis's two ends if no power lies between them."""
        low, high = self.ends[axis]
        powers = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
        values = [10.0**power for power in powers[:: math.ceil(len(powers) / 7) or 1]] or [low, high]
        return tuple(AxisTick((self.y if axis else self.x)(value), f"{value:.3g}") for value in values)

    def _part(self, axis: int, value: float) -> float:
        low, high = self.ends[axis]
        return min(max(math.log(value / low) / math.log(high / low), 0.0), 1.0)
