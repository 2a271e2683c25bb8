"""Files that are there whole or not at all, and which of them are library logic."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tunesmith.problems import MOST_MADE_BYTES, beginning_of
from tunesmith.records import UserError

MARK = b"tunesmith-logic:"
"""How a line of every library logic begins."""


def logic_files(location: Path) -> list[Path]:
    """A file as it is named; of a folder and those below it, the YAML files that say they are library logic."""
    if not location.is_dir():
        return [location]
    return sorted(file for file in (*location.rglob("*.yaml"), *location.rglob("*.yml")) if _says_so(file))


def _says_so(file: Path) -> bool:
    """Not what is no regular file: in a folder it is nobody's mistake, and opening it might wait for ever."""
    return file.is_file() and any(
        line.startswith(MARK) for line in beginning_of(file, "YAML", MOST_MADE_BYTES).split(b"\n")
    )


def write_atomically(path: Path, text: str) -> None:
    """Write text as UTF-8 so that whoever looks sees the old file or the new one, also after a kill or power failure.

    Makes the folder. Raises UserError when the place cannot be written.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with beside.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
            _flush_folder(path.parent)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            str(path), f"cannot be written ({error.strerror})", "make room there, or name another"
        ) from error


def _flush_folder(folder: Path) -> None:
    """A rename is safe from a power failure once its folder is; Windows cannot open folders, and need not."""
    with suppress(PermissionError, IsADirectoryError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
