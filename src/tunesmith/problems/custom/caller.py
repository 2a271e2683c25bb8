"""What only the program that called `tunesmith.tune` has: a reference that is a Python function, and arrays' contents.

The program registers both under keys, which the description names (`Reference: caller:KEY`, `Contents: KEY`). The
program's own process calls the function. Worker processes get arrays, as files in a temporary folder, which they find
through an environment variable. The files are read without pickle.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.problems.base import Array
from tunesmith.records import UserError

VARIABLE = "TUNESMITH_CALLER_FOLDER"
PREFIX = "caller:"
"""Begins the name of a reference that is a function of the calling program."""


@dataclass(frozen=True)
class PromisedContents:
    """An array that `fill` will write when it is needed; it is given an array of zeros."""

    shape: tuple[int, ...]
    dtype: str
    fill: Callable[[Array], None]


Reference = Callable[[dict[str, Any], dict[str, Array]], Any]

_REFERENCES: dict[str, Reference] = {}
_PROMISED: dict[str, PromisedContents] = {}
"""By key: contents that were promised and not needed yet."""


def register_reference(key: str, function: Reference) -> None:
    """Make a function the reference of descriptions with `Reference: caller:KEY`, in this process."""
    _folder()
    _REFERENCES[key] = function


def registered_reference(key: str) -> Reference | None:
    """The function of a key; None in any other process than the one that registered it."""
    return _REFERENCES.get(key)


def register_contents(key: str, array: Array) -> None:
    """Make an array the contents of arguments with `Contents: KEY`, in this process and those that it starts."""
    path = _folder() / f"{key}.npy"
    if not path.exists():
        _write(path, lambda file: np.save(file, array, allow_pickle=False))


def promise_contents(key: str, contents: PromisedContents) -> None:
    """As `register_contents`. The array is filled when this process calls `deliver_contents` or `contents`."""
    _folder()
    _PROMISED[key] = contents


def deliver_contents(key: str) -> None:
    """Fill promised contents, if they were not filled yet, so that the processes that this one started have them."""
    if (promised := _PROMISED.get(key)) is None:
        return
    path = _folder() / f"{key}.npy"
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            # The array is the file, which saves a copy of what may be hundreds of megabytes.
            array = np.lib.format.open_memmap(file.name, "w+", np.dtype(promised.dtype), promised.shape)
            os.posix_fallocate(file.fileno(), 0, Path(file.name).stat().st_size)
            promised.fill(array)
            Path(file.name).replace(path)
        except OSError as error:
            what = f"has no room for an array of {array_bytes(promised)} bytes ({error.strerror})"
            raise UserError(str(path.parent), what, "free room there, or set TMPDIR to another folder") from error
        finally:
            Path(file.name).unlink(missing_ok=True)
    del _PROMISED[key]


def array_bytes(contents: PromisedContents) -> int:
    return prod(contents.shape) * np.dtype(contents.dtype).itemsize


def contents(key: str) -> Array | None:
    """The registered contents, which are not to be written; None if this process is not of the program that registered
    them."""
    deliver_contents(key)
    path = _file(f"{key}.npy")
    return np.load(path, mmap_mode="r", allow_pickle=False) if path else None


def forget(key: str) -> None:
    """Remove what is registered and shared under a key, and its files."""
    _REFERENCES.pop(key, None)
    _PROMISED.pop(key, None)
    for path in (*_folder().glob(f"{key}.npy"), *_folder().glob(f"{key}-*.npz")):
        path.unlink(missing_ok=True)


def digest_of(arrays: Mapping[str, Array]) -> str:
    """Hash of arrays' names, data types, shapes and contents."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()[:32]


def share_values(key: str, digest: str, values: Mapping[str, tuple[Array, Array]]) -> None:
    """Hand value and magnitude of each output to the processes that this one started, for inputs of this digest."""
    arrays = {f"{part} {name}": pair[part] for name, pair in values.items() for part in (0, 1)}
    _write(_folder() / f"{key}-{digest}.npz", lambda file: np.savez(file, **arrays))  # type: ignore[arg-type]


def are_shared(key: str, digest: str) -> bool:
    return _file(f"{key}-{digest}.npz") is not None


def shared_values(key: str, digest: str) -> dict[str, tuple[Array, Array]] | None:
    """What `share_values` handed over; None if it has not."""
    path = _file(f"{key}-{digest}.npz")
    if path is None:
        return None
    with np.load(path, allow_pickle=False) as arrays:
        names = [name.removeprefix("0 ") for name in arrays.files if name.startswith("0 ")]
        return {name: (arrays[f"0 {name}"], arrays[f"1 {name}"]) for name in names}


@cache
def _folder() -> Path:
    """The temporary folder of this process, which it removes at its end."""
    folder = tempfile.mkdtemp(prefix="tunesmith-caller-")
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    os.environ[VARIABLE] = folder
    return Path(folder)


def _file(name: str) -> Path | None:
    folder = os.environ.get(VARIABLE)
    path = Path(folder) / name if folder else None
    return path if path and path.is_file() else None


def _write(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file that is whole as soon as it has its name."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        write(file)
    Path(file.name).replace(path)
