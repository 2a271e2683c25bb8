"""Reading a file that people write."""

from __future__ import annotations

from pathlib import Path

from tunesmith.records import UserError

MOST_BYTES = 1 << 22


def text_of(path: Path, kind: str) -> str:
    """A file's text; `kind` (YAML, JSON) is for the remedy. Raises UserError where it cannot be read or is too long."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(str(path), f"no UTF-8 at byte {error.start}", "save it as UTF-8 text") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(str(path), f"cannot be read ({reason})", f"give the path of a {kind} file") from error
    if len(raw) > MOST_BYTES:
        raise UserError(str(path), f"longer than {MOST_BYTES} bytes", "split it into several files")
    return text
