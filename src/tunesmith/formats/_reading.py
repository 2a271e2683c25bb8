"""What the readers of benchmark files share: rows with what was wrong, and numbers that may be anything."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tunesmith.records import UNKNOWN_ARCHITECTURE, RandomRow, Rejection, UserError, architecture_name

AGGREGATE, FAILED, NO_SPEED, FOREIGN, REPEATED = (
    "aggregate",
    "failed",
    "no speed",
    "foreign name",
    "file given twice",
)
"""Why a row is put aside: reasons that reports count by."""


@dataclass(frozen=True)
class Reading:
    """The rows of some files in their order, and what is wrong in which file and row."""

    rows: tuple[RandomRow, ...] = ()
    complaints: tuple[UserError, ...] = ()

    def __add__(self, other: Reading) -> Reading:
        return Reading(self.rows + other.rows, self.complaints + other.complaints)


def architecture(said: object, file: str) -> str:
    """A gfx name in what the context says, else in the file's name; else what the context says; else unknown.

    In the order of rocRAND's script, which knows gfx names only.
    """
    text = said if isinstance(said, str) else ""
    found = architecture_name(text)
    if not found.startswith("gfx") and "gfx" in (name := PurePath(file).name):
        by_file = architecture_name(name)
        found = by_file if by_file.startswith("gfx") else found
    return found or UNKNOWN_ARCHITECTURE


def nothing_said(file: str, key: str) -> UserError:
    """The complaint about a file that tells no architecture."""
    remedy = f"write one there, or name the file after it (gfx90a.json); until then it is called {UNKNOWN_ARCHITECTURE}"
    return UserError(file, f"{key} names no architecture", remedy)


def number(value: object) -> float:
    """A JSON value as a float; NaN for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def whole(value: object) -> int:
    """A count that may be written as text, as google-benchmark's context does; 0 for anything else."""
    try:
        return max(0, int(value)) if isinstance(value, (int, float, str)) else 0
    except (ValueError, OverflowError):
        return 0


def gigabytes(bytes_per_second: float) -> float:
    """In 10^9 bytes a second, divided in the three steps of rocRAND's script so that not even rounding differs."""
    return bytes_per_second / 1000 / 1000 / 1000


def no_speed(value: object) -> Rejection | None:
    """Why a row's bytes_per_second cannot be compared, if it cannot."""
    if value is None:
        return Rejection(NO_SPEED, "it has no bytes_per_second")
    if not 0 < number(value) < math.inf:
        return Rejection(NO_SPEED, f"bytes_per_second is {reprlib.repr(value)}, not a number above zero")
    return None


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
