"""A sweep as SVG: time against the tiles beyond whole waves.

A facet for each K and number of whole waves, a line for each way to launch, and a ring at each choice of the library.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tunesmith.models.stream_k.decision_models import SharingMode, StreamKChoice, StreamKDecision, TiledProduct
from tunesmith.session.stream_k.sweep import SweepPlan
from tunesmith.session.stream_k.swept import Swept

from .. import numbers
from ..drawing import LARGE, MARGIN, MEASURES, NORMAL, PADDING, SMALL, AxisTick, width
from ..templating import template

FACETS, COLUMNS = 9, 3
"""Facets drawn at most, those with the most products, and facets in a row."""
PLOT = (300.0, 190.0)
"""Pixels of a facet without its labels."""
LEFT, ABOVE, BELOW = 58.0, 34.0, 40.0
"""Room for the labels of a facet."""
SWATCH = 22.0
STEPS = (1, 2, 5)
"""Ticks of a logarithmic axis, times powers of ten."""


@dataclass(frozen=True, slots=True)
class LaunchSeries:
    """A way to launch: its name, its colour (Okabe and Ito's, for colour-blind people), and which choices it takes."""

    name: str
    colour: str
    takes: Callable[[TiledProduct, StreamKChoice], bool]


LINES = (
    LaunchSeries("data-parallel", "#1b1b1b", lambda work, choice: choice.mode is SharingMode.DATA_PARALLEL),
    LaunchSeries("remainder split", "#0072b2", lambda work, choice: _waves(work, choice) == 0),
    LaunchSeries("remainder and waves split", "#e69f00", lambda work, choice: _waves(work, choice) > 0),
    LaunchSeries("split-K", "#009e73", lambda work, choice: choice.mode is SharingMode.SPLIT_K),
)
CHOSEN = "#d55e00"


@dataclass(frozen=True)
class PlotPanel:
    """A facet. `x` and `y` are its position in the picture; ticks, lines and rings are in pixels from its corner.

    `rings` are the library's choices, each with a tip.
    """

    x: float
    y: float
    title: str
    subtitle: str
    x_ticks: tuple[AxisTick, ...]
    y_ticks: tuple[AxisTick, ...]
    lines: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    rings: tuple[tuple[float, float, str], ...]


def plot(plan: SweepPlan) -> str:
    """The picture of a sweep that has at least one product."""
    groups = plan.room.groups
    by_facet: dict[tuple[int, int], list[Swept]] = defaultdict(list)
    for product in plan.swept:
        by_facet[product.work.iterations, product.work.tiles // groups].append(product)
    most = sorted(by_facet, key=lambda key: -len({product.work.tiles for product in by_facet[key]}))[:FACETS]
    heading = str(plan.subject)
    summary = f"time against the tiles beyond whole waves of {groups} work-groups; lines are the best of their kind"
    legend = _legend([*((line.name, line.colour) for line in LINES), (f"chosen ({plan.judged} model)", CHOSEN)])
    top = 2 * MARGIN + LARGE + NORMAL + SMALL + 3 * PADDING
    facets = []
    for index, key in enumerate(sorted(most)):
        row, column = divmod(index, COLUMNS)
        x, y = MARGIN + LEFT + column * (PLOT[0] + LEFT + MARGIN), top + ABOVE + row * (PLOT[1] + ABOVE + BELOW)
        facets.append(_facet(x, y, by_facet[key], plan))
    columns, rows = min(len(facets), COLUMNS), math.ceil(len(facets) / COLUMNS)
    texts = max(width(heading, LARGE, bold=True), width(summary, NORMAL), legend[-1][0] + width(legend[-1][1]) + SWATCH)
    return template("stream_k_sweep.svg.jinja").render(
        width=math.ceil(max(MARGIN + columns * (PLOT[0] + LEFT + MARGIN), texts + 2 * MARGIN)),
        height=math.ceil(top + rows * (PLOT[1] + ABOVE + BELOW)),
        heading=heading,
        summary=summary,
        legend=legend,
        legend_y=MARGIN + LARGE + NORMAL + 2 * PADDING,
        facets=facets,
        plot=PLOT,
        **MEASURES,
        swatch=SWATCH,
        chosen=CHOSEN,
    )


def _facet(x: float, y: float, swept: Sequence[Swept], plan: SweepPlan) -> PlotPanel:
    groups, work = plan.room.groups, swept[0].work
    lines = [(line.colour, _points(swept, line, groups)) for line in LINES]
    rings = [(product, estimate) for product in swept if (estimate := product.finals.get(product.choices[plan.judged]))]
    times = [seconds for _, points in lines for _, seconds in points] + [estimate.seconds for _, estimate in rings]
    low, high = min(times) * 0.9, max(times) * 1.1

    def placed(remainder: float, seconds: float) -> tuple[float, float]:
        part = math.log(seconds / low) / math.log(high / low)
        return PLOT[0] * remainder / groups, PLOT[1] * (1 - part)

    waves = work.tiles // groups
    ticks = dict.fromkeys([0, groups // 4, groups // 2, 3 * groups // 4, groups])
    return PlotPanel(
        x,
        y,
        f"K = {work.k}",
        f"{waves or 'no'} whole {'wave' if waves == 1 else 'waves'}, {work.iterations} iterations",
        tuple(AxisTick(placed(at, low)[0], str(at)) for at in ticks),
        tuple(AxisTick(placed(0, at)[1], numbers.time(at)) for at in _log_ticks(low, high)),
        tuple((colour, tuple(placed(*point) for point in points)) for colour, points in lines if points),
        tuple(
            (
                *placed(product.work.tiles % groups, estimate.seconds),
                f"{product.problem}: {numbers.time(estimate.seconds)}",
            )
            for product, estimate in rings
        ),
    )


def _points(swept: Iterable[Swept], line: LaunchSeries, groups: int) -> list[tuple[int, float]]:
    """The remainder in tiles and the seconds of the fastest choice of a series, for each product that has one."""
    points = []
    for product in swept:
        times = {**product.screened, **product.finals}
        taken = [estimate.seconds for choice, estimate in times.items() if line.takes(product.work, choice)]
        points += [(product.work.tiles % groups, min(taken))] if taken else []
    return sorted(points)


def _waves(work: TiledProduct, choice: StreamKChoice) -> int:
    """Whole waves among the split tiles; -1 for a choice that is not stream-K."""
    return StreamKDecision(work, choice).full_tiles if choice.mode is SharingMode.STREAM_K else -1


def _log_ticks(low: float, high: float) -> list[float]:
    """Round numbers between two ends; the ends themselves if fewer than two lie between them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [tick for power in powers for step in STEPS if low <= (tick := step * 10.0**power) <= high]
    return ticks if len(ticks) > 1 else [low, high]


def _legend(items: Sequence[tuple[str, str]]) -> list[tuple[float, str, str]]:
    """The x position, words and colour of each item."""
    lefts = [0.0]
    for words, _ in items:
        lefts.append(lefts[-1] + SWATCH + PADDING + width(words) + 2 * PADDING)
    return [(left, words, colour) for (left, _), (words, colour) in zip(pairwise(lefts), items, strict=True)]
