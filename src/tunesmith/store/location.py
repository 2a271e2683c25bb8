"""Where a store is: a file's path, or the URL of a database (`StoreLocation`). Passwords are never shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.records import UserError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/{1,3}(?=[^/]|$|/)")
_SQLITE = re.compile(r"sqlite:///?", re.IGNORECASE)
_POSTGRESQL = re.compile(r"postgres(ql)?(\+psycopg)?://", re.IGNORECASE)
_SCHEMES = "give a path, sqlite:///PATH or postgresql://USER@HOST/DATABASE"

_PASSWORD = re.compile(r"(postgres(?:ql)?(?:\+\w+)?:/{1,3}[^:/?#\s@]*):[^@]*@", re.IGNORECASE)
_OTHER_PASSWORD = re.compile(r"(\w[\w+.-]*://[^:/?#\s@]*):[^@/\s]*@")
_PASSWORD_OPTION = re.compile(r"(?<=[?&])(?:ssl)?password=[^&#\s]*&?", re.IGNORECASE)


def without_password(text: str) -> str:
    """A text without the passwords of URLs in it, both `user:password@` and `?password=`."""
    bare = _OTHER_PASSWORD.sub(r"\1@", _PASSWORD.sub(r"\1@", text))
    shorter = _PASSWORD_OPTION.sub("", bare)
    return shorter if shorter == bare else re.sub(r"[?&]+$", "", shorter)


@dataclass(frozen=True)
class StoreLocation:
    """A file (`path`) or a PostgreSQL database (`url`, which may hold a password). As a text it has no password."""

    path: Path | None = None
    url: str = field(default="", repr=False)

    @staticmethod
    def of(named: StoreLocation | Path | str) -> StoreLocation:
        """From a path, `sqlite:///PATH` (a fourth slash begins an absolute path), or `postgresql://USER@HOST/DATABASE`.

        Raises UserError for another kind of URL.
        """
        if isinstance(named, StoreLocation):
            return named
        if isinstance(named, Path):
            return StoreLocation(named)
        if _POSTGRESQL.match(named):
            return StoreLocation(url=_POSTGRESQL.sub("postgresql://", named, count=1))
        if found := _SQLITE.match(named):
            if not named[found.end() :]:
                raise UserError(named, "names no file", _SCHEMES)
            return StoreLocation(Path(named[found.end() :]))
        if (found := _SCHEME.match(named)) and "//" in named:
            raise UserError(without_password(named), f"tunesmith keeps no measurements in {found[1]}", _SCHEMES)
        if not named:
            raise UserError("the store", "has no name", _SCHEMES)
        return StoreLocation(Path(named))

    def __str__(self) -> str:
        return without_password(self.url) if self.url else str(self.path)

    def is_same(self, other: StoreLocation) -> bool:
        """Whether both name the same store, whatever their passwords are."""
        if self.path and other.path:
            return self.path.absolute() == other.path.absolute()
        return str(self) == str(other)
