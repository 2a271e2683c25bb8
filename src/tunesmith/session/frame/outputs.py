"""Names of the files and folders in a run's folder, and `Output`, a file that a plan has written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tunesmith.store import FILE_NAME

STORE, TABLES, LOGIC, CACHE = FILE_NAME, "tables", "logic", "cache"
"""Names within a run's folder."""


@dataclass(frozen=True)
class Output:
    """A file that a plan leaves: its path within the run's folder, and the function that writes all of it or nothing.

    `write` may return a tuple of paths if it wrote several files. If the file `is_logic`, it is library logic, and its
    solutions are launched when the run ends.
    """

    path: Path
    write: Callable[[Path], object]
    is_logic: bool = False
