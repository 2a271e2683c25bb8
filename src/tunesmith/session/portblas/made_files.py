"""Files that a build step makes: remade only when they would change, removed only when they are ours."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.problems import MOST_MADE_BYTES, beginning_of, bytes_of
from tunesmith.records import UserError


@dataclass
class MadeFiles:
    """Writes texts and remembers paths by what was done to them. A file's first line says that it is made (`mark`)."""

    written: list[Path] = field(default_factory=list)
    unchanged: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)

    def write(self, path: Path, text: str, mark: str) -> None:
        """Write the text, which begins with `mark`, unless it stands there already.

        UserError where something else stands, and where nothing can be written. Whoever looks sees the old text or the
        new one.
        """
        wanted = text.encode("utf-8", "backslashreplace")
        try:
            there = bytes_of(path, "generated", MOST_MADE_BYTES) if path.exists() else b""
            if there and not there.startswith(mark.encode()):
                what = "is there already and was not generated"
                raise UserError(str(path), what, "give another place, or move it away")
            if there == wanted:
                self.unchanged.append(path)
                return
            _replace(path, wanted)
        except OSError as error:
            raise UserError(str(path), f"cannot be written ({error.strerror})", "name another place") from error
        self.written.append(path)

    def remove_others(self, folder: Path, pattern: str, mark: str) -> None:
        """Remove files of that pattern that were made and are not among those of this run."""
        kept = {path.name for path in (*self.written, *self.unchanged) if path.parent == folder}
        for path in sorted(folder.glob(pattern)):
            if path.name not in kept and _begins_with(path, mark):
                path.unlink()
                self.removed.append(path)


def _replace(path: Path, text: bytes) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        beside.write_bytes(text)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _begins_with(path: Path, mark: str) -> bool:
    return path.is_file() and beginning_of(path, "generated", len(mark.encode())) == mark.encode()
