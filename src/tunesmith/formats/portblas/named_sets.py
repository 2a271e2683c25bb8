"""Parameter files by name: first in the user's folders, then among the shipped sets."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from tunesmith.records import UserError

ENVIRONMENT = "TUNESMITH_PORTBLAS_SETS"
"""Folders of the user's own sets, separated as in PATH."""
SHIPPED = Path(__file__).parent / "sets"
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True)
class PortBlasSet:
    """A parameter file; `name` is its file name without the suffix."""

    name: str
    path: Path
    shipped: bool


def find_set(name_or_path: str | Path, folders: Sequence[Path] = ()) -> Path:
    """The file at a path, or the set of a name: first in `folders`, then in the environment's folders, then shipped.

    Raises UserError, with the known names, if there is no such file or set.
    """
    path = Path(name_or_path)
    if path.is_file():
        return path
    sets = {named_set.name: named_set.path for named_set in list_sets(folders)}
    name = str(name_or_path).removesuffix(_SUFFIX)
    if name in sets:
        return sets[name]
    near = get_close_matches(name, sets, n=1)
    remedy = f"did you mean {near[0]}?" if near else f"give the path of a JSON file, or one of {', '.join(sets)}"
    raise UserError(str(path), "is neither a file nor the name of a set", remedy)


def list_sets(folders: Sequence[Path] = ()) -> tuple[PortBlasSet, ...]:
    """Every set, sorted by name. Of several sets with the same name, only the first that `find_set` would find."""
    found: dict[str, PortBlasSet] = {}
    for folder in _folders(folders):
        for path in sorted(folder.glob(f"*{_SUFFIX}")):
            found.setdefault(path.stem, PortBlasSet(path.stem, path, folder == SHIPPED))
    return tuple(found[name] for name in sorted(found))


def _folders(folders: Sequence[Path]) -> Iterator[Path]:
    listed = [Path(name) for name in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if name]
    for location, listed_folders in (("--folder", folders), (ENVIRONMENT, listed)):
        for folder in listed_folders:
            if not folder.is_dir():
                raise UserError(location, f"{folder} is no folder", "name one that holds JSON files")
            yield folder
    yield SHIPPED
