"""What all drawings share: fonts and the widths of texts, margins, and labels of axes. Lengths are in pixels."""

from __future__ import annotations

from dataclasses import dataclass

NARROW, USUAL, CAPITAL, WIDE, BOLD = 0.42, 0.645, 0.8, 1.0, 1.15
"""Upper limits of glyph widths, relative to the font's size; a bold font is wider by the last factor.

DejaVu Sans and Verdana, the widest of the fonts that the drawings ask for, have 0.636 for digits and most letters.
"""

SMALL, NORMAL, LARGE = 10.5, 12.0, 18.0
"""Font sizes."""

MARGIN, PADDING = 24.0, 8.0
MEASURES = {"margin": MARGIN, "padding": PADDING, "small": SMALL, "normal": NORMAL, "large": LARGE}
"""The lengths that every template gets."""


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A label on an axis; `at` counts from the panel's corner."""

    at: float
    text: str


def width(text: str, size: float = SMALL, bold: bool = False) -> float:
    """An upper limit of a text's width."""
    glyphs = (
        NARROW if glyph in " ijlftr.,:;-" else WIDE if glyph in "mwMW%≤≥±" else CAPITAL if glyph.isupper() else USUAL
        for glyph in text
    )
    return sum(glyphs) * size * (BOLD if bold else 1.0)
