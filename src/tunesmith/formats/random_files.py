"""Benchmarks of generators from whatever file: which reader, and what cannot be read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tunesmith.records import RandomRow, Rejection, UserError

from . import google_benchmark, primbench
from ._reading import REPEATED, Reading
from .random_store import is_store, store_rows

READERS: dict[str, Callable[[Mapping[str, Any], str], Reading]] = {
    "benchmarks": google_benchmark.rows,
    "specializations": primbench.rows,
}
"""By the key that tells the format."""

_REMEDY = "give JSON of google-benchmark or of primbench, a store of ours, or the folder of a run"


def read_random(paths: Sequence[Path]) -> Reading:
    """The rows of all files in their order. What is wrong in one is said, and the rest is read.

    Shards add up, copies do not: a file that was given before, under whatever name, is put aside row by row, and so is
    each row of a store that another file has too, or the other way round (a run writes its measurements as JSON also).
    """
    found, copies = Reading(), _Copies()
    for path in paths:
        try:
            from_store = is_store(path)
            content = b"" if from_store else path.read_bytes()
            reading = store_rows(path) if from_store else _read(content, str(path))
        except OSError as error:
            what = f"cannot be read ({error.strerror})"
            reading, content, from_store = Reading(complaints=(UserError(str(path), what, _REMEDY),)), b"", False
        except UserError as error:
            reading = Reading(complaints=(error,))
        found += copies.marked(reading, path, content, from_store)
    return found


@dataclass(frozen=True, slots=True)
class _Part:
    """One of the files that were given: its place among them tells it from the same one given again."""

    place: int
    path: Path
    from_store: bool


class _Copies:
    """Knows what was read before: contents of files, and measurements with the file they were in first."""

    def __init__(self) -> None:
        self._contents: dict[bytes, Path] = {}
        self._rows: dict[RandomRow, _Part] = {}
        self._parts = 0

    def marked(self, reading: Reading, path: Path, content: bytes, from_store: bool) -> Reading:
        """The reading, with what was read before put aside."""
        if content and content in self._contents:
            return _repeated(reading, path, self._contents[content])
        if content:
            self._contents[content] = path
        self._parts += 1
        part = _Part(self._parts, path, from_store)
        rows, copied = [], Counter[Path]()
        for row in reading.rows:
            first = self._rows.setdefault(_anonymous(row), part)
            if row.aside is None and first != part and (from_store or first.from_store):
                copied[first.path] += 1
                rows.append(replace(row, aside=_as_in(first.path)))
            else:
                rows.append(row)
        complaints = (
            UserError(str(path), f"{count} of its measurements are in {first} too", "give one; they are counted once")
            for first, count in copied.items()
        )
        return Reading(tuple(rows), (*reading.complaints, *complaints))


def _anonymous(row: RandomRow) -> RandomRow:
    """The row without its place: equal for the same measurement, to the last bit of its speed and interval."""
    return replace(row, file="", name="")


def _as_in(first: Path) -> Rejection:
    return Rejection(REPEATED, f"as {first}")


def _read(content: bytes, file: str) -> Reading:
    if not content.strip():
        raise UserError(file, "is empty", "let the benchmark write it again")
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        place = f"{file}:{error.lineno}"
        raise UserError(place, f"is no JSON ({error.msg}, column {error.colno})", _REMEDY) from error
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise UserError(file, f"is no JSON ({error})", _REMEDY) from error
    if isinstance(document, dict):
        for key, rows in READERS.items():
            if key in document:
                return rows(document, file)
    raise UserError(file, f"has none of the keys {', '.join(READERS)}", _REMEDY)


def _repeated(reading: Reading, path: Path, first: Path) -> Reading:
    complaint = UserError(str(path), f"says the same as {first}", "give it once; it is counted once")
    rows = (row if row.aside else replace(row, aside=_as_in(first)) for row in reading.rows)
    return Reading(tuple(rows), (complaint,))
