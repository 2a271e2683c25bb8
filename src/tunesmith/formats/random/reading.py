"""What the readers of benchmark files share: rows with complaints, and reading of unchecked JSON values."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tunesmith.records import UNKNOWN_ARCHITECTURE, RandomRow, Rejection, UserError, architecture_name

AGGREGATE = "aggregate"
"""The reason why an aggregate is put aside: it is no measurement, but nothing is wrong with it."""
NO_SPEED = "no speed"
SLOWEST, FASTEST = 1.0, 1e18
"""Limits of a speed in bytes a second. Values outside were not measured; arithmetic on them could overflow a float."""
MOST_DOUBT = 100.0
"""An interval whose ends have a larger ratio is dropped."""


class DoubtError(UserError):
    """A complaint about input that is read nevertheless. rocRAND's script accepts such input too."""


@dataclass(frozen=True)
class Reading:
    """The rows of some files in their order, and complaints that name file and row."""

    rows: tuple[RandomRow, ...] = ()
    complaints: tuple[UserError, ...] = ()

    def __add__(self, other: Reading) -> Reading:
        return Reading(self.rows + other.rows, self.complaints + other.complaints)


def architecture(context_value: object, file: str) -> str:
    """A gfx name from the context's value, else one from the file's name; else the context's value; else unknown.

    rocRAND's script, which knows only gfx names, has the same order.
    """
    text = context_value if isinstance(context_value, str) else ""
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
    """The rows that `row_of` makes of the elements of the list under `key`, given each element and its location.

    A row that is put aside, unless it is an aggregate, causes a complaint; so does a row for which `doubt_of` returns
    a text. `arch` is the architecture, and the key that should name it.
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
    """A JSON value as a float; NaN if it is not a number."""
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
    """The speed in 10^9 bytes a second, divided in three steps as in rocRAND's script, for the same rounding."""
    return bytes_per_second / 1000 / 1000 / 1000


def no_speed(value: object) -> Rejection | None:
    """Why a row's bytes_per_second cannot be compared; None if it can."""
    if value is None:
        return Rejection(NO_SPEED, "it has no bytes_per_second")
    if not SLOWEST <= number(value) <= FASTEST:
        what = f"bytes_per_second is {reprlib.repr(value)}, not a number from {SLOWEST:g} to {FASTEST:g}"
        return Rejection(NO_SPEED, what)
    return None


def interval(low: float, speed: float, high: float) -> tuple[float, float] | None:
    """The interval of a speed; None if the ends are not in order or too far apart."""
    return (low, high) if 0 < low <= speed <= high <= MOST_DOUBT * low else None


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
