"""A roofline as SVG: a roof with its ridge for each data type, and each problem at its intensity under its roof.

A problem's colour is its bucket by the intensity rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from tunesmith.models.intensity.published import Bucket
from tunesmith.models.roofline.figures import Roofline, rate_text
from tunesmith.records import UserError
from tunesmith.session.intensity.characterize import Characterization

from ..drawing import LARGE, MARGIN, MEASURES, NORMAL, PADDING, SMALL, AxisTick, width
from ..templating import template

PLOT = (760.0, 420.0)
"""Pixels of the plot without its labels."""
LEFT, RIGHT, BELOW = 92.0, 24.0, 56.0
DECADES_BELOW = 1.5
"""Powers of ten that the vertical axis spans at least."""
COLOURS = {
    Bucket.SMALL: "#0072b2",
    Bucket.MEDIUM: "#009e73",
    Bucket.LARGE: "#e69f00",
    Bucket.VERY_LARGE: "#d55e00",
}
"""Okabe and Ito's colours, which colour-blind people can tell apart."""

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Roof:
    """The roof's corners and its ridge, in pixels from the plot's corner, and its label."""

    corners: tuple[tuple[float, float], ...]
    ridge_x: float
    ridge_y: float
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A problem; a pointer over the dot shows `tip`."""

    x: float
    y: float
    colour: str
    tip: str


def plot(found: Characterization) -> str:
    """The picture. Raises UserError if no roofline is known for any problem's data type."""
    drawn = [problem for problem in found.problems if problem.listed.data_type in found.rooflines]
    if not drawn:
        what = "there is no roof to draw: nobody knows this device's peak and bandwidth"
        raise UserError("--svg", what, "give --chip, or --roofline with what `tunesmith calibrate roofline` wrote")
    roofs = _merged(found.rooflines.values())
    intensities = [problem.listed.intensity_of_arrays for problem in drawn]
    low, high = _ends([*intensities, *(roof.ridge for roof in roofs)])
    top = max(roof.flops_per_second for roof in roofs) * 1.6
    attained = [
        found.rooflines[problem.listed.data_type].attainable(x) for problem, x in zip(drawn, intensities, strict=True)
    ]
    bottom = min([*(roof.attainable(low) for roof in roofs), top / 10**DECADES_BELOW])
    across, down = _logarithmic(low, high, PLOT[0]), _logarithmic(bottom, top, PLOT[1])
    dots = [
        Dot(across(x), PLOT[1] - down(y), COLOURS[problem.by_intensity], f"{problem.listed.problem}: {x:.4g} FLOP/byte")
        for problem, x, y in zip(drawn, intensities, attained, strict=True)
    ]
    heading = f"{found.path.name} on {found.device}"
    summary = "most FLOP/s at the problem's FLOP per byte of its arrays; colour: bucket of the intensity rule"
    above = 2 * MARGIN + LARGE + NORMAL + SMALL + 3 * PADDING
    return template("roofline.svg.jinja").render(
        width=math.ceil(max(LEFT + PLOT[0] + RIGHT, MARGIN * 2 + width(summary, NORMAL))),
        height=math.ceil(above + PLOT[1] + BELOW),
        heading=heading,
        summary=summary,
        legend=_legend(found),
        legend_y=MARGIN + LARGE + NORMAL + 2 * PADDING,
        left=LEFT,
        above=above,
        plot=PLOT,
        x_label="FLOP/byte",
        x_ticks=[AxisTick(across(value), f"{value:g}") for value in _powers(low, high)],
        y_ticks=[AxisTick(PLOT[1] - down(value), rate_text(value)) for value in _powers(bottom, top)],
        roofs=[_roof(roof, low, high, across, lambda y: PLOT[1] - down(y)) for roof in roofs],
        dots=dots,
        **MEASURES,
    )


def _roof(roofline: Roofline, low: float, high: float, across: Scale, up: Scale) -> Roof:
    corners = (low, roofline.ridge, high)
    label = f"{roofline.data_type}: {roofline.peak}, ridge {roofline.ridge:.4g} FLOP/byte"
    return Roof(
        tuple((across(x), up(roofline.attainable(x))) for x in corners),
        across(roofline.ridge),
        up(roofline.flops_per_second),
        f"{label} ({roofline.provenance})",
    )


def _merged(rooflines: Iterable[Roofline]) -> list[Roofline]:
    """A roofline for each pair of rates; its `data_type` lists all data types with these rates."""
    by_rates: dict[tuple[float, float], list[Roofline]] = {}
    for roofline in rooflines:
        by_rates.setdefault((roofline.flops_per_second, roofline.bytes_per_second), []).append(roofline)
    return [
        replace(alike[0], data_type=", ".join(roofline.data_type for roofline in alike)) for alike in by_rates.values()
    ]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The ends of a logarithmic axis on which all values lie well inside."""
    return min(values) / 2, max(values) * 2


def _logarithmic(low: float, high: float, pixels: float) -> Scale:
    return lambda value: pixels * math.log(value / low) / math.log(high / low)


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten between two ends; also 2 and 5 times each power if there are fewer than three."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    tens = [10.0**power for power in powers if low <= 10.0**power <= high]
    finer = [step * 10.0**power for power in powers for step in (1, 2, 5) if low <= step * 10.0**power <= high]
    return tens if len(tens) > 2 else finer


def _legend(found: Characterization) -> list[tuple[float, str, str]]:
    """Position, words and colour of each bucket that has problems."""
    items, x = [], 0.0
    for bucket, count in found.census()["intensity"].items():
        if count:
            words = f"{bucket} ({count})"
            items.append((x, words, COLOURS[bucket]))
            x += 12 + PADDING + width(words) + 2 * PADDING
    return items
