"""Files that a build step generates: written only if they would change, removed only if they were generated."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.problems import MOST_GENERATED_BYTES, beginning_of, bytes_of
from tunesmith.records import UserError


@dataclass
class MadeFiles:
    """Writes generated files and records what was done to each path. A generated file begins with a `mark`."""

    written: list[Path] = field(default_factory=list)
    unchanged: list[Path] = field(default_factory=list)
    removed: list[Path] = field(default_factory=list)

    def write(self, path: Path, text: str, mark: str) -> None:
        """Write the text, which begins with `mark`, unless the file has it already.

        The file is replaced at once, so that a reader sees the old text or the new one. Raises UserError if the file
        exists and was not generated, and if it cannot be written.
        """
        new = text.encode("utf-8", "backslashreplace")
        try:
            old = bytes_of(path, "generated", MOST_GENERATED_BYTES) if path.exists() else b""
            if old and not old.startswith(mark.encode()):
                what = "is there already and was not generated"
                raise UserError(str(path), what, "give another place, or move it away")
            if old == new:
                self.unchanged.append(path)
                return
            _replace(path, new)
        except OSError as error:
            raise UserError(str(path), f"cannot be written ({error.strerror})", "name another place") from error
        self.written.append(path)

    def remove_others(self, folder: Path, pattern: str, mark: str) -> None:
        """Remove generated files of a pattern that this run neither wrote nor left unchanged."""
        kept = {path.name for path in (*self.written, *self.unchanged) if path.parent == folder}
        for path in sorted(folder.glob(pattern)):
            if path.name not in kept and _begins_with(path, mark):
                path.unlink()
                self.removed.append(path)


def _replace(path: Path, text: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        temporary.write_bytes(text)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _begins_with(path: Path, mark: str) -> bool:
    return path.is_file() and beginning_of(path, "generated", len(mark.encode())) == mark.encode()
