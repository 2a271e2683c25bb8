"""Finds library logic files, and writes files atomically."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tunesmith.problems import MOST_GENERATED_BYTES, beginning_of
from tunesmith.records import UserError

MARK = b"tunesmith-logic:"
"""The beginning of a line that every library logic has."""


def logic_files(location: Path) -> list[Path]:
    """A file itself; for a folder, all library logic in YAML files in the folder and below."""
    if not location.is_dir():
        return [location]
    return sorted(file for file in (*location.rglob("*.yaml"), *location.rglob("*.yml")) if _is_logic(file))


def _is_logic(file: Path) -> bool:
    """Whether a file is marked as library logic. Only regular files are opened: opening another might wait for ever."""
    return file.is_file() and any(
        line.startswith(MARK) for line in beginning_of(file, "YAML", MOST_GENERATED_BYTES).split(b"\n")
    )


def write_atomically(path: Path, text: str) -> None:
    """Write text as UTF-8 so that readers see either the old file or the new one, also after a kill or power failure.

    Makes the folder if need be, and removes what killed writers of the file left. Raises UserError if the file cannot
    be written.
    """
    mark = f".{path.name}.{os.uname().nodename}."
    temporary = path.with_name(f"{mark}{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _remove_left_over(path.parent, mark)
            _flush_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            str(path), f"cannot be written ({error.strerror})", "make room there, or name another"
        ) from error


def _remove_left_over(folder: Path, mark: str) -> None:
    """Remove the temporary files with this mark whose writers, on this host, do not live any more."""
    for path in folder.iterdir():
        writer = path.name.removeprefix(mark).removesuffix(".tmp")
        if path.name == f"{mark}{writer}.tmp" and writer.isdecimal() and not Path("/proc", writer).exists():
            path.unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    """Write the folder to disk, so that a rename in it survives a power failure. Not possible on Windows, and not
    needed there."""
    with suppress(PermissionError, IsADirectoryError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
