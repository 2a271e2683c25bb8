"""The files of a run's folder: what they are called, and how they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tunesmith.store import FILE_NAME

STORE, TABLES, LOGIC, CACHE = FILE_NAME, "tables", "logic", "cache"
"""What lies in a run's folder."""


@dataclass(frozen=True)
class Output:
    """A file that a plan leaves: its path within the run's folder, and what puts it there, whole or not at all.

    `write` may give the paths of several files that it wrote. A file that `is_logic` is library logic, whose solutions
    are launched once the run is done.
    """

    path: Path
    write: Callable[[Path], object]
    is_logic: bool = False
