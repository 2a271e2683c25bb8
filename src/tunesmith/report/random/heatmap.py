"""Heat maps of launch shapes as SVG: a facet for each distribution and type, with blocks as rows and grids as columns.

A cell's colour and number are the shape's speed relative to the default's. All facets and files of a selection share
one colour scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tunesmith.logic.random.decision import RandomDecision
from tunesmith.logic.random.matrix import RandomCase
from tunesmith.records import LaunchShape

from .. import numbers
from ..colours import ColourScale, ink
from ..drawing import LARGE, MARGIN, MEASURES, NORMAL, PADDING, SMALL, width
from ..templating import template

CELL_HEIGHT, GAP = 22.0, 26.0
PAGE = 1500.0
"""Width in pixels up to which facets stand beside each other."""


@dataclass(frozen=True, slots=True)
class HeatmapCell:
    """A cell of a facet. `text` is empty if the shape has no value; a pointer over the cell shows `tip`.

    `marks` say whether the cell's shape is the chosen shape, the default, or the facet's own override.
    """

    x: float
    y: float
    text: str
    tip: str
    marks: tuple[str, ...]
    fill: str = ""
    ink: str = ""


@dataclass(frozen=True)
class HeatmapPanel:
    """One facet: its position in the picture, its titles, and its cells relative to the facet's corner."""

    x: float
    y: float
    title: str
    subtitle: str
    cells: tuple[HeatmapCell, ...]


@dataclass(frozen=True, slots=True)
class Grid:
    """The rows and columns that all facets of a picture share, and the width of a cell."""

    blocks: tuple[int, ...]
    grids: tuple[int, ...]
    cell: float

    @staticmethod
    def of(shapes: Sequence[LaunchShape], widest: str) -> Grid:
        grids = tuple(sorted({shape.grid for shape in shapes}))
        texts = [widest, *map(str, grids)]
        return Grid(
            tuple(sorted({shape.block for shape in shapes})),
            grids,
            max(38.0, max(width(text) for text in texts) + PADDING),
        )

    @property
    def margin(self) -> float:
        """Width of the row labels."""
        return max(width(str(block)) for block in self.blocks) + PADDING

    @property
    def size(self) -> tuple[float, float]:
        return self.cell * len(self.grids), CELL_HEIGHT * len(self.blocks)

    def position(self, shape: LaunchShape) -> tuple[float, float]:
        return self.cell * self.grids.index(shape.grid), CELL_HEIGHT * self.blocks.index(shape.block)


def heatmaps(decisions: Sequence[RandomDecision]) -> Iterator[tuple[RandomDecision, str]]:
    """An SVG for each decision; all share one colour scale."""
    scale = common_scale(decisions)
    for decision in decisions:
        yield decision, heatmap(decision, scale)


def common_scale(decisions: Sequence[RandomDecision]) -> ColourScale:
    return ColourScale.over(
        [
            decision.matrix.ratio(case, shape).ratio
            for decision in decisions
            for case in decision.matrix.cases
            for shape in decision.matrix.speeds[case]
        ]
    )


def heatmap(decision: RandomDecision, scale: ColourScale) -> str:
    """The picture of one decision: a facet of the objective's scores, then a facet for each distribution and type."""
    matrix = decision.matrix
    scores = {scored.shape: scored.score for scored in decision.ranking if 0 < scored.score < math.inf}
    ratios = {case: {shape: matrix.ratio(case, shape).ratio for shape in matrix.speeds[case]} for case in matrix.cases}
    texts = [_number(value) for row in [scores, *ratios.values()] for value in row.values()]
    shapes = [matrix.default, *matrix.shapes, *(scored.shape for scored in decision.ranking)]
    grid = Grid.of(shapes, max(texts, key=len, default=""))
    several = len({case.bytes for case in matrix.cases}) > 1
    overall = f"{decision.objective}: {_number(decision.score)} times the default"
    cells = _cells(decision, grid, scale, scores, _reason_of_no_score(decision))
    facets = [("all distributions and types", overall, cells)]
    for case, row in ratios.items():
        cells = _cells(decision, grid, scale, row, _reason_of_no_speed(decision, case), case)
        facets.append((_title(case, several), _speeds(decision, case), cells))
    return _render(decision, scale, grid, facets)


def _cells(
    decision: RandomDecision,
    grid: Grid,
    scale: ColourScale,
    values: dict[LaunchShape, float],
    reason_of_gap: Callable[[LaunchShape], str],
    case: RandomCase | None = None,
) -> tuple[HeatmapCell, ...]:
    own = (
        {(override.distribution, override.value_type): override.shape for override in decision.overrides}.get(case.pair)
        if case
        else None
    )
    marked = (("chosen", decision.chosen), ("default", decision.matrix.default), ("own", own))
    cells = []
    for shape in (LaunchShape(block, size) for block in grid.blocks for size in grid.grids):
        x, y = grid.position(shape)
        marks = tuple(name for name, marked_shape in marked if marked_shape == shape)
        if shape in values:
            fill = scale.colour(values[shape])
            tip = f"{shape}: {values[shape]:.3f} times the default" + _speed(decision, case, shape)
            cells.append(HeatmapCell(x, y, _number(values[shape]), tip, marks, fill, ink(fill)))
        else:
            cells.append(HeatmapCell(x, y, "", f"{shape}: {reason_of_gap(shape)}", marks))
    return tuple(cells)


def _speed(decision: RandomDecision, case: RandomCase | None, shape: LaunchShape) -> str:
    if case is None:
        return ""
    speed = decision.matrix.speeds[case][shape]
    doubt = f" ±{100 * speed.half_width:.1f} %" if speed.half_width is not None else ""
    rows = f", {speed.count} rows" if speed.count > 1 else ""
    return f", {speed.gigabytes_per_second:.4g} GB/s{doubt}{rows}"


def _reason_of_no_score(decision: RandomDecision) -> Callable[[LaunchShape], str]:
    reasons = {shape: str(why) for shape, why in decision.ineligible}
    measured = set(decision.matrix.shapes)
    slower = {shape: "slower than the default somewhere" for shape in measured if decision.matrix.slower_cases(shape)}
    return lambda shape: reasons.get(shape) or (slower.get(shape, "no score") if shape in measured else "not measured")


def _reason_of_no_speed(decision: RandomDecision, case: RandomCase) -> Callable[[LaunchShape], str]:
    failed = decision.matrix.failed
    return lambda shape: "failed" if (case, shape) in failed else "not measured"


def _title(case: RandomCase, several: bool) -> str:
    size = f", {numbers.size(case.bytes)}" if several and case.bytes else ""
    return f"{case.distribution} {case.value_type}{size}"


def _speeds(decision: RandomDecision, case: RandomCase) -> str:
    """`default 812 GB/s, chosen 958, own 1021`."""
    row = decision.matrix.speeds[case]
    own = [
        override.shape for override in decision.overrides if (override.distribution, override.value_type) == case.pair
    ]
    named = [("chosen", shape) for shape in [decision.chosen] if shape in row] + [("own", shape) for shape in own]
    default = f"default {row[decision.matrix.default].gigabytes_per_second:.4g} GB/s"
    return ", ".join([default, *(f"{name} {row[shape].gigabytes_per_second:.4g}" for name, shape in named)])


def _number(ratio: float) -> str:
    """About three digits: `0.98`, `1.25`, `12.5`, `125`."""
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}" if ratio < 100 else f"{ratio:.0f}"


def _render(
    decision: RandomDecision,
    scale: ColourScale,
    grid: Grid,
    facets_drawn: Sequence[tuple[str, str, tuple[HeatmapCell, ...]]],
) -> str:
    heading = f"{decision.generator} on {decision.architecture}"
    default, chosen = decision.matrix.default, decision.chosen
    summary = f"speed relative to the default shape {default}; {decision.objective} chose {chosen}"
    has_gaps = any(not cell.text for _, _, cells in facets_drawn for cell in cells)
    legend = Legend(default, chosen, bool(decision.overrides), has_gaps)
    inner = max(grid.size[0], *(max(width(title, NORMAL, bold=True), width(below)) for title, below, _ in facets_drawn))
    pitch = grid.margin + inner + GAP
    columns = max(1, min(len(facets_drawn), int((PAGE + GAP) // pitch)))
    columns = math.ceil(len(facets_drawn) / math.ceil(len(facets_drawn) / columns))
    top = MARGIN + LARGE + NORMAL + 2 * PADDING + legend.height + GAP
    title_height, axis_height = NORMAL + SMALL + 2 * PADDING, 2 * (SMALL + PADDING / 2) + PADDING
    row_pitch = title_height + grid.size[1] + axis_height + GAP / 2
    left = MARGIN + SMALL + PADDING
    facets = []
    for index, (title, subtitle, cells) in enumerate(facets_drawn):
        row, column = divmod(index, columns)
        x, y = left + grid.margin + column * pitch, top + row * row_pitch + title_height
        facets.append(HeatmapPanel(x, y, title, subtitle, cells))
    rows = math.ceil(len(facets_drawn) / columns)
    texts = (width(heading, LARGE, bold=True), width(summary, NORMAL), legend.width)
    return template("random_heatmap.svg.jinja").render(
        width=math.ceil(max(left + columns * pitch - GAP, MARGIN + max(texts)) + MARGIN),
        height=math.ceil(top + rows * row_pitch - GAP / 2 + MARGIN),
        heading=heading,
        summary=summary,
        legend=legend,
        legend_y=MARGIN + LARGE + NORMAL + 2 * PADDING,
        bar=_bar(scale),
        facets=facets,
        grid=grid,
        cell_height=CELL_HEIGHT,
        **MEASURES,
        left_facets=range(0, len(facets), columns),
    )


@dataclass(frozen=True)
class Legend:
    """The legend of a picture: a line of the marks that it uses, and the colour bar below."""

    default: LaunchShape
    chosen: LaunchShape
    own: bool
    gaps: bool

    SWATCH = 26.0
    BAR = 240.0

    @property
    def items(self) -> list[tuple[float, str, str]]:
        """The x position, mark and text of each item."""
        words = [("default", f"default {self.default}"), ("chosen", f"chosen {self.chosen}")]
        words += [("own", "chosen for this distribution and type")] if self.own else []
        words += [("gap", "no value")] if self.gaps else []
        placed, x = [], 0.0
        for mark, text in words:
            placed.append((x, mark, text))
            x += self.SWATCH + PADDING + width(text) + 2 * PADDING
        return placed

    @property
    def width(self) -> float:
        x, _, text = self.items[-1]
        return max(x + self.SWATCH + PADDING + width(text), self.bar_x + self.BAR + PADDING + width("faster"))

    @property
    def bar_x(self) -> float:
        return max(width("slower") + PADDING, width("≤ 0.50") / 2)

    @property
    def height(self) -> float:
        """Height of the marks, the bar, and the bar's ticks."""
        return 18 + PADDING + 12 + SMALL + PADDING


def _bar(scale: ColourScale) -> dict[str, object]:
    """The colour bar: the stops of its gradient, and its ticks; each end stands for all ratios beyond it."""
    steps = 16
    parts = [index / steps for index in range(steps + 1)]
    ratios = [scale.limit ** (2 * part - 1) for part in parts]
    ticks = [(Legend.BAR * part, f"{scale.limit ** (2 * part - 1):.2f}") for part in (0.25, 0.5, 0.75)]
    ticks = [(0, f"≤ {1 / scale.limit:.2f}"), *ticks, (Legend.BAR, f"≥ {scale.limit:.2f}")]
    stops = [(part, scale.colour(ratio)) for part, ratio in zip(parts, ratios, strict=True)]
    return {"stops": stops, "ticks": ticks, "width": Legend.BAR}
