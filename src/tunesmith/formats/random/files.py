"""Benchmarks of generators from a file of any known format: choosing the reader, and putting copies aside."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tunesmith.problems import MOST_GENERATED_BYTES, bytes_of
from tunesmith.records import RandomRow, Rejection, UserError

from . import google_benchmark, primbench
from .reading import DoubtError, Reading
from .store import is_store, store_rows

READERS: dict[str, Callable[[Mapping[str, Any], str], Reading]] = {
    "benchmarks": google_benchmark.read_rows,
    "specializations": primbench.rows,
}
"""Readers by the top-level key that identifies the format."""

_REMEDY = "give JSON of google-benchmark or of primbench, a store of ours, or the folder of a run"


def read_random(paths: Sequence[Path]) -> Reading:
    """The rows of all files in their order. A complaint says what is wrong in a file; all other rows are read.

    Shards add up, copies do not. All rows of a file with the same content as an earlier file are put aside. So is a
    row that both a store and another file have, since a run also writes its measurements as JSON.
    """
    found = Reading()
    contents: dict[bytes, Path] = {}
    measured: dict[RandomRow, _Part] = {}
    for path in paths:
        content, from_store = b"", False
        try:
            from_store = is_store(path)
            content = b"" if from_store else bytes_of(path, "JSON", MOST_GENERATED_BYTES, _REMEDY)
            reading = store_rows(path) if from_store else _read(content, str(path))
        except UserError as error:
            reading = Reading(complaints=(error,))
        if content in contents:
            found += _repeated(reading, path, contents[content])
            continue
        if content:
            contents[content] = path
        found += _without_copies(reading, _Part(path, from_store), measured)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """One of the given paths; the same path given twice makes two parts."""

    path: Path
    from_store: bool


def _without_copies(reading: Reading, part: _Part, measured: dict[RandomRow, _Part]) -> Reading:
    """The reading with copied rows put aside: rows that an earlier part has, if one of the two parts is a store.

    `measured` maps each row, without its file and name, to the first part with this row. Such rows are equal for the
    same measurement, to the last bit of its speed and interval.
    """
    rows, copied = [], Counter[Path]()
    for row in reading.rows:
        first = measured.setdefault(replace(row, file="", name=""), part)
        if row.aside is None and first is not part and (part.from_store or first.from_store):
            copied[first.path] += 1
            rows.append(_put_aside(row, first.path))
        else:
            rows.append(row)
    complaints = (
        DoubtError(str(part.path), f"{count} of its measurements are in {first} too", "give one; they are counted once")
        for first, count in copied.items()
    )
    return Reading(tuple(rows), (*reading.complaints, *complaints))


def _repeated(reading: Reading, path: Path, first: Path) -> Reading:
    complaint = DoubtError(str(path), f"says the same as {first}", "give it once; it is counted once")
    return Reading(tuple(row if row.aside else _put_aside(row, first) for row in reading.rows), (complaint,))


def _put_aside(row: RandomRow, first: Path) -> RandomRow:
    return replace(row, aside=Rejection("file given twice", f"as {first}"))


def _read(content: bytes, file: str) -> Reading:
    if not content.strip():
        raise UserError(file, "is empty", "let the benchmark write it again")
    try:
        document = json.loads(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        location = f"{file}:{error.lineno}"
        raise UserError(location, f"is no JSON ({error.msg}, column {error.colno})", _REMEDY) from error
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise UserError(file, f"is no JSON ({error})", _REMEDY) from error
    if isinstance(document, dict):
        for key, rows in READERS.items():
            if key in document:
                return rows(document, file)
    raise UserError(file, f"has none of the keys {', '.join(READERS)}", _REMEDY)
