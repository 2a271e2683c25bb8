"""The logic that ships with tunesmith: a file of the package for each device and data type.

A file has the logics, their choice model, and how they were made. It is compressed text of three lines of JSON: the
head, by which a program finds the file for its device, the logics, and the model. JSON is read ten times as fast as
YAML.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from tunesmith._collector import collector_paused
from tunesmith.records import Target, UserError

from .document import Document
from .read import document_of
from .select import Logic
from .write import plain_of

FORMAT = 2
FOLDER = Path(__file__).parents[1] / "logics"
SUFFIX = ".json.gz"
MOST_HEAD_BYTES, MOST_BYTES = 1 << 16, 1 << 26
LINES = 3
OTHERS = 6
"""Where a row of a logic has the times of the other solutions."""
_KEY = "tunesmith-shipped"
_REMEDY = "install tunesmith again"


@dataclass(frozen=True, slots=True)
class ShippedHead:
    """What a file is for, and how it was made.

    `api`, `device`, `architecture`, `driver` and `toolchain` are those of the logics' origin. `date` is that of the
    latest measurement. `lists` are the lists of problems, `commands` made the file from them, in this order.
    """

    name: str
    api: str
    device: str
    architecture: str
    driver: str
    toolchain: str
    date: str
    data_type: str
    types: tuple[str, ...]
    lists: tuple[str, ...]
    commands: tuple[str, ...]

    def is_of(self, target: Target) -> bool:
        """Whether it was made on this kind of device."""
        return target.is_called(self.api, self.device, self.architecture)

    def is_of_sibling(self, target: Target) -> bool:
        """Whether it was made on a device of the same architecture."""
        return (self.api, self.architecture) == (target.api, target.architecture)


_TEXTS = ("name", "api", "device", "architecture", "driver", "toolchain", "date", "data_type")
_LISTS = ("types", "lists", "commands")


@dataclass(frozen=True)
class ShippedLogic:
    """A file's head and logics."""

    head: ShippedHead
    logics: tuple[Logic, ...]


def is_shipped(path: Path) -> bool:
    """Whether a path has the name of such a file."""
    return path.name.endswith(SUFFIX)


def shipped_files(folder: Path | None = None) -> list[Path]:
    """All files of the package, or of another folder."""
    return sorted((folder or FOLDER).glob(f"*{SUFFIX}"))


def shipped_names() -> list[str]:
    """The names of all files of the package, such as `nvidia-h100-bf16`."""
    return [path.name.removesuffix(SUFFIX) for path in shipped_files()]


def shipped_file(name: str) -> Path | None:
    """The package's file with a name, such as `nvidia-h100-bf16`; None without such a file."""
    return next((file for file in shipped_files() if file.name == f"{name}{SUFFIX}"), None)


def shipped_for(target: Target, folder: Path | None = None) -> tuple[dict[Path, ShippedHead], list[UserError]]:
    """The files for a device with their heads: those made on it, then those made on another device of its architecture.
    And the errors of files that are damaged."""
    own: dict[Path, ShippedHead] = {}
    siblings: dict[Path, ShippedHead] = {}
    damaged: list[UserError] = []
    for path in shipped_files(folder):
        try:
            head = read_head(path)
        except UserError as error:
            damaged.append(error)
            continue
        if head.is_of_sibling(target):
            (own if head.is_of(target) else siblings)[path] = head
    return own | siblings, damaged


def read_head(path: Path) -> ShippedHead:
    """Raises UserError for a file that is damaged."""
    return _head(_lines(path, 1)[0], path)


def read_shipped(path: Path) -> ShippedLogic:
    """The head, and the logics of its types. Raises UserError for a file that is damaged.

    A logic's document is made, and its rows are checked, when it is first used, since a program needs few of the types.
    The checksum tells of damage at once.
    """
    head, logics, _ = _parts(path)
    with collector_paused():
        values = _parsed(logics, path)
    names = [value["problem-type"].get("name") for value in values] if _are_logics(values) else None
    if names != list(head.types):
        raise _damaged(path, f"it does not have the logics of {', '.join(head.types)}")
    return ShippedLogic(head, tuple(Logic(partial(_document, value, path)) for value in values))


def shipped_under(path: Path) -> tuple[Path, ShippedLogic] | None:
    """The file of the package under a name, such as `nvidia-h100-bf16`, with its logics; behind a slash, the name of a
    problem type leaves one of them. None if a file or folder has the name, and if the package has no such file.

    Raises UserError for a damaged file, and if it has no type of this name.
    """
    name, _, kind = path.as_posix().partition("/")
    file = None if path.exists() or Path(name).exists() else shipped_file(name)
    if file is None:
        return None
    shipped = read_shipped(file)
    kept = {
        found: logic for found, logic in zip(shipped.head.types, shipped.logics, strict=True) if kind in ("", found)
    }
    if not kept:
        raise UserError(str(path), "names no logic that ships with tunesmith", _one_of(shipped))
    return file, ShippedLogic(replace(shipped.head, types=tuple(kept)), tuple(kept.values()))


def only_logic(path: Path, shipped: ShippedLogic) -> Logic:
    """The only logic under a name. Raises UserError for several."""
    if len(shipped.logics) > 1:
        raise UserError(str(path), f"names {len(shipped.logics)} logics", _one_of(shipped))
    return shipped.logics[0]


def _one_of(shipped: ShippedLogic) -> str:
    return f"name one of {', '.join(f'{shipped.head.name}/{kind}' for kind in shipped.head.types)}"


def _are_logics(values: Any) -> bool:
    """Whether parsed text has a list of logics, each with a problem type."""
    are_mappings = isinstance(values, list) and all(isinstance(value, dict) for value in values)
    return are_mappings and all(isinstance(value.get("problem-type"), dict) for value in values)


def read_shipped_model(path: Path) -> Any:
    """The choice model as plain values, as `models.choice.model_file.plain_of_model` makes them; None without one.
    Raises UserError for a file that is damaged."""
    _, _, model = _parts(path)
    with collector_paused():
        return _parsed(model, path)


def write_shipped(
    path: Path, head: ShippedHead, documents: Sequence[Document], choice_model: Mapping[str, object] | None
) -> None:
    """Write a file. `choice_model` is as `read_shipped_model` gives it. The same contents give the same bytes."""
    parts: tuple[object, ...] = {_KEY: FORMAT, **asdict(head)}, list(map(_plain, documents)), choice_model
    lines = [json.dumps(part, separators=(",", ":")) for part in parts]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), 9, mtime=0))


def _parts(path: Path) -> tuple[ShippedHead, bytes, bytes]:
    """The head, and the lines of the logics and of the model, which are not parsed."""
    head = read_head(path)
    _, logics, model = _lines(path, LINES)
    return head, logics, model


def _lines(path: Path, count: int) -> list[bytes]:
    """The first lines. With all of them, the checksum of the file is checked."""
    try:
        with gzip.open(path) as file:
            lines = [file.readline(MOST_BYTES if number else MOST_HEAD_BYTES) for number in range(count)]
            if count == LINES and file.read(1):
                raise _damaged(path, f"it has more than {LINES} lines")
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path, str(error)) from error
    if not all(line.endswith(b"\n") for line in lines):
        raise _damaged(path, "it ends early")
    return lines


def _parsed(line: bytes, path: Path) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, str(error)) from error


def _head(line: bytes, path: Path) -> ShippedHead:
    value = _parsed(line, path)
    if not isinstance(value, dict) or value.pop(_KEY, None) != FORMAT:
        raise _damaged(path, f"it is not of format {FORMAT}")
    if set(value) != {*_TEXTS, *_LISTS} or not all(isinstance(value[name], list) for name in _LISTS):
        raise _damaged(path, "its head lacks something")
    texts = (value[name] for name in _TEXTS)
    if not all(isinstance(text, str) for text in chain(texts, *(value[name] for name in _LISTS))):
        raise _damaged(path, "its head has something else than texts")
    return ShippedHead(**{**value, **{name: tuple(value[name]) for name in _LISTS}})


def _plain(document: Document) -> dict[str, Any]:
    """As `plain_of`, but JSON has no numbers as keys. So the times of a row's other solutions are two lists: their
    numbers, and the times."""
    plain: dict[str, Any] = dict(plain_of(document))
    rows = (
        [*row[:OTHERS], [list(row[OTHERS]), list(row[OTHERS].values())], *row[OTHERS + 1 :]] for row in plain["exact"]
    )
    return {**plain, "exact": list(rows)}


def _document(value: Any, path: Path) -> Document:
    """The document of what `_plain` made. Raises UserError for one that is damaged."""
    with collector_paused():
        try:
            rows = [[*row[:OTHERS], _others(*row[OTHERS]), *row[OTHERS + 1 :]] for row in value["exact"]]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise _damaged(path, f"a row of a logic is wrong ({error})") from error
        return document_of({**value, "exact": rows}, str(path))


def _others(numbers: list[int], times: list[float]) -> dict[int, float]:
    others = dict(zip(numbers, times, strict=True))
    if len(others) < len(numbers):
        raise ValueError("a solution has two times")
    return others


def _damaged(path: Path, why: str) -> UserError:
    return UserError(str(path), f"is damaged ({why})", _REMEDY)
