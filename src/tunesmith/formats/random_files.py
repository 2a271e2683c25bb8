"""Benchmarks of generators from whatever file: which reader, and what cannot be read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tunesmith.records import Rejection, UserError

from . import google_benchmark, primbench
from ._reading import REPEATED, Reading

READERS: dict[str, Callable[[Mapping[str, Any], str], Reading]] = {
    "benchmarks": google_benchmark.rows,
    "specializations": primbench.rows,
}
"""By the key that tells the format."""

_REMEDY = "give JSON of google-benchmark or of primbench"


def read_random(paths: Sequence[Path]) -> Reading:
    """The rows of all files in their order. What is wrong in one is said, and the rest is read.

    A file that was given before, under whatever name, is put aside row by row: shards add up, copies do not.
    """
    found, seen = Reading(), dict[bytes, Path]()
    for path in paths:
        try:
            content = path.read_bytes()
            reading = _read(content, str(path))
        except OSError as error:
            what = f"cannot be read ({error.strerror})"
            reading, content = Reading(complaints=(UserError(str(path), what, _REMEDY),)), b""
        except UserError as error:
            reading = Reading(complaints=(error,))
        if content and content in seen:
            reading = _repeated(reading, path, seen[content])
        seen.setdefault(content, path)
        found += reading
    return found


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
    aside = Rejection(REPEATED, f"as {first}")
    rows = (row if row.aside else dataclasses.replace(row, aside=aside) for row in reading.rows)
    return Reading(tuple(rows), (complaint,))
