"""Where a run's folder keeps its measurements: in a file of its own, or in a store that other folders share.

In the second case a small file in the folder (`POINTER`) names the store's URL, without a password, and has the
folder's id, by which the store tells the folder's runs from others. The id stays when the folder is moved.
"""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass
from pathlib import Path

from tunesmith.records import UserError

from .location import StoreLocation

FILE_NAME = "measurements.sqlite"
"""The name of a store's file in the folder of a run."""

POINTER = "store.json"
"""The name of the file that says where else the folder keeps its measurements."""

VARIABLE = "TUNESMITH_STORE"
"""The environment variable that names the store of new folders, and may hold its password."""


@dataclass(frozen=True)
class FolderStore:
    """The store of a folder. `folder` is the folder's id, empty if the store is the folder's own file."""

    location: StoreLocation
    folder: str = ""

    @staticmethod
    def of(path: Path) -> FolderStore | None:
        """The store of a folder; None if it has none. Raises UserError if its pointer cannot be read."""
        if (pointer := path / POINTER).is_file():
            found = _read(pointer)
            return FolderStore(_with_password(found.location), found.folder)
        own = path / FILE_NAME
        return FolderStore(StoreLocation(own)) if own.is_file() else None

    @staticmethod
    def here(path: Path, remedy: str) -> FolderStore:
        """The store of a folder, which must have one. Raises UserError with the `remedy` otherwise."""
        if found := FolderStore.of(path):
            return found
        raise UserError(str(path), f"no {FILE_NAME} in it", remedy)


def store_named(named: str) -> FolderStore:
    """The store that a person names: a run's folder, a file or a URL. A folder without a store means a file in it."""
    location = StoreLocation.of(named)
    if location.path and location.path.is_dir():
        return FolderStore.of(location.path) or FolderStore(StoreLocation(location.path / FILE_NAME))
    return FolderStore(_with_password(location))


def store_for(path: Path, asked: str | None, default: str | None = None) -> FolderStore:
    """The store of a folder that is about to be tuned.

    A folder keeps the store that it has. A new folder gets the store that is `asked` for, else the `default`, else a
    file of its own. Raises UserError if the folder has another store than the one that is asked for.
    """
    known = FolderStore.of(path)
    other = StoreLocation.of(asked) if asked else None
    if known and other and not known.location.is_same(other):
        remedy = f"leave out --store, or name another folder; `tunesmith store copy {path} {other}` copies them"
        raise UserError(str(path), f"keeps its measurements in {known.location}", remedy)
    if known:
        return FolderStore(other or known.location, known.folder)
    other = other or (StoreLocation.of(default) if default else None)
    own = StoreLocation(path / FILE_NAME)
    if other is None or other.is_same(own):
        return FolderStore(own)
    return FolderStore(other if other.url else StoreLocation(other.path and other.path.absolute()), uuid.uuid4().hex)


def remember(path: Path, store: FolderStore) -> None:
    """Write the pointer of a folder whose store is shared, unless it is there. Raises UserError if that fails."""
    pointer = path / POINTER
    if not store.folder or pointer.is_file():
        return
    text = json.dumps({"store": _plain(store.location), "folder": store.folder}, indent=1) + "\n"
    made = pointer.with_name(f"{POINTER}.{os.getpid()}")
    try:
        path.mkdir(parents=True, exist_ok=True)
        made.write_text(text, encoding="utf-8")
        made.replace(pointer)
    except OSError as error:
        raise UserError(str(pointer), f"cannot be written ({error.strerror})", "name another folder") from None


def _plain(location: StoreLocation) -> str:
    return str(location) if location.url else f"sqlite:///{location}"


def _read(pointer: Path) -> FolderStore:
    try:
        raw = json.loads(pointer.read_text(encoding="utf-8"))
        store, folder = raw["store"], raw["folder"]
        if not (isinstance(store, str) and isinstance(folder, str) and folder):
            raise ValueError("it has no store and folder")
    except (OSError, ValueError, KeyError, TypeError) as error:
        remedy = "restore the file, or move it away and tune into another folder"
        raise UserError(str(pointer), f"does not say where the measurements are ({error})", remedy) from None
    return FolderStore(StoreLocation.of(store), folder)


def _with_password(location: StoreLocation) -> StoreLocation:
    """The location; as `VARIABLE` has it, if that names the same store and so may have the password."""
    named = os.environ.get(VARIABLE, "")
    known = StoreLocation.of(named) if named else location
    return known if location.url and known.is_same(location) else location
