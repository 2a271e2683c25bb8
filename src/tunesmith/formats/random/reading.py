"""What the readers of benchmark files share: rows with what was wrong, and numbers that may be anything."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tunesmith.records import UNKNOWN_ARCHITECTURE, RandomRow, Rejection, UserError, architecture_name

AGGREGATE = "aggregate"
"""Why a row is put aside that is no measurement, and nothing is wrong with it."""
NO_SPEED = "no speed"
SLOWEST, FASTEST = 1.0, 1e18
"""Bytes a second: what lies outside was not measured, and arithmetic on it would leave the range of a float."""
MOST_DOUBT = 100.0
"""An interval with a larger ratio of its ends says nothing."""


class DoubtError(UserError):
    """A complaint about what is read all the same: rocRAND's script reads it too, and ends well."""


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


def listed_rows(
    document: Mapping[str, Any],
    key: str,
    file: str,
    arch: tuple[str, str],
    row_of: Callable[[dict[str, Any], str], RandomRow | UserError],
    doubt_of: Callable[[dict[str, Any]], str] = lambda raw: "",
) -> Reading:
    """What `row_of` makes of each element of the list under `key`, the element's place with it.

    Complained about are rows put aside that are no aggregates, and others of which `doubt_of` says something. `arch`
    is the architecture, and the key that should tell it.
    """
    listed = document[key]
    if not isinstance(listed, list) or not listed:
        return Reading(complaints=(UserError(file, f"{key} lists nothing", "let the benchmark run to its end"),))
    complaints: list[UserError] = []
    if arch[0] == UNKNOWN_ARCHITECTURE:
        remedy = f"write one there, or name the file after it (gfx90a.json); until then it is called {arch[0]}"
        complaints.append(DoubtError(file, f"{arch[1]} names no architecture", remedy))
    found = []
    for index, raw in enumerate(map(mapping, listed)):
        row = row_of(raw, f"{key}[{index}]")
        if isinstance(row, UserError):
            complaints.append(row)
            continue
        found.append(row)
        if row.aside and row.aside.reason != AGGREGATE:
            complaints.append(DoubtError(row.location, f"{row.aside.reason}: {row.aside.detail}", "measure it again"))
        elif doubt := doubt_of(raw):
            complaints.append(DoubtError(row.location, doubt, "measure it again on an idle device"))
    return Reading(tuple(found), tuple(complaints))


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
    if not SLOWEST <= number(value) <= FASTEST:
        what = f"bytes_per_second is {reprlib.repr(value)}, not a number from {SLOWEST:g} to {FASTEST:g}"
        return Rejection(NO_SPEED, what)
    return None


def interval(low: float, speed: float, high: float) -> tuple[float, float] | None:
    """The interval of a speed, where it is one."""
    return (low, high) if 0 < low <= speed <= high <= MOST_DOUBT * low else None


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
