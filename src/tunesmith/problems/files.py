"""Reading a file whose name a person gave: only regular files, of bounded length; errors say what to do."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tunesmith.records import UserError

MOST_BYTES = 1 << 22
"""The longest file that a person writes."""
MOST_GENERATED_BYTES = 1 << 28
"""The longest file that a program wrote: library logic, a benchmark's results, a table."""


def bytes_of(path: Path, kind: str, most: int = MOST_BYTES, remedy: str = "") -> bytes:
    """A file's bytes. `kind` (YAML, JSON) names the kind of file in the usual remedy; `remedy` replaces that remedy.

    Raises UserError if the file cannot be read, is longer than `most` bytes or is no regular file: a pipe might keep
    its reader waiting for ever, and a device might never end.
    """
    raw = beginning_of(path, kind, most + 1, remedy)
    if len(raw) > most:
        raise UserError(str(path), f"longer than {most} bytes", remedy or "split it into several files")
    return raw


def beginning_of(path: Path, kind: str, most: int, remedy: str = "") -> bytes:
    """At most `most` bytes from a file's beginning; otherwise as `bytes_of`."""
    try:
        return read_regular(path, most)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(str(path), f"cannot be read ({reason})", remedy or f"give the path of a {kind} file") from error


def read_regular(path: Path, most: int) -> bytes:
    """At most `most` bytes from a regular file's beginning. It does not wait for the writer of a pipe.

    Raises OSError if the file cannot be read or is no regular file, and ValueError if `path` is no path.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is no regular file")
        # A non-blocking read gives None if no data is at hand.
        return file.read(most) or b""


def text_of(path: Path, kind: str, most: int = MOST_BYTES, remedy: str = "") -> str:
    """A file's text in UTF-8; otherwise as `bytes_of`."""
    raw = bytes_of(path, kind, most, remedy)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}:{line}", f"no UTF-8 at byte {error.start}", remedy or "save it as UTF-8 text"
        ) from error
