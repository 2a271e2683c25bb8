"""A diverging colour scale for ratios, orange below 1 and blue above, that colour-blind people can read.

Stops are mixed in OKLab, where equal steps look equal (Björn Ottosson, "A perceptual color space for image
processing", 2020). Lightness falls equally to both sides. The sides differ along yellow and blue, which people with
the common (red-green) deficiencies see.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

Vector = tuple[float, float, float]

SLOWER = ("#f6f6f4", "#f3b56b", "#a8480a")
FASTER = ("#f6f6f4", "#7fb4dd", "#14508f")
"""Colours from a ratio of 1 outwards."""

DARK, LIGHT = "#1b1b1b", "#ffffff"
"""Colours of text on a cell."""

LIMITS = (1.1, 1.25, 1.5, 2.0)
"""Ratios at which a scale may end; a ratio beyond the end gets the last colour."""


@dataclass(frozen=True, slots=True)
class ColourScale:
    """Colours of the ratios from 1 / limit to limit, logarithmic."""

    limit: float

    @staticmethod
    def over(ratios: Collection[float]) -> ColourScale:
        """The narrowest scale that holds 19 of 20 faster ratios and half of the slower ones, or else the widest scale.

        Differences among fast shapes matter; how slow a slow shape is does not.
        """
        faster = sorted(math.log(ratio) for ratio in ratios if ratio >= 1)
        slower = sorted(-math.log(ratio) for ratio in ratios if ratio < 1)
        most = max(_quantile(faster, 0.95), _quantile(slower, 0.5))
        return ColourScale(next((limit for limit in LIMITS if math.log(limit) >= most), LIMITS[-1]))

    def colour(self, ratio: float) -> str:
        part = max(-1.0, min(1.0, math.log(ratio) / math.log(self.limit)))
        near, middle, far = FASTER if part > 0 else SLOWER
        part = abs(part) * 2
        return _mixed(near, middle, part) if part <= 1 else _mixed(middle, far, part - 1)


def _quantile(ordered: Sequence[float], part: float) -> float:
    return ordered[math.ceil(part * len(ordered)) - 1] if ordered else 0.0


def ink(colour: str) -> str:
    """The ink that reads better on a colour."""
    return DARK if _lab(colour)[0] > 0.62 else LIGHT


def lightness(colour: str) -> float:
    """The colour's lightness in OKLab, from 0 to 1."""
    return _lab(colour)[0]


def _mixed(near: str, far: str, part: float) -> str:
    a, b = _lab(near), _lab(far)
    lightness, green_red, blue_yellow = (x + (y - x) * part for x, y in zip(a, b, strict=True))
    return _hex((lightness, green_red, blue_yellow))


def _lab(colour: str) -> Vector:
    red, green, blue = (_linear(int(colour[index : index + 2], 16) / 255) for index in (1, 3, 5))
    long = math.cbrt(0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue)
    medium = math.cbrt(0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue)
    short = math.cbrt(0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _hex(lab: Vector) -> str:
    lightness, a, b = lab
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _encoded(channel)):02x}" for channel in linear)


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4


def _encoded(channel: float) -> float:
    channel = max(0.0, min(1.0, channel))
    return 12.92 * channel if channel <= 0.0031308 else 1.055 * channel ** (1 / 2.4) - 0.055
