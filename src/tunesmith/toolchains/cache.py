"""Compiled programs on disk: what was compiled once is not compiled again by a process that uses the same folder."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from tunesmith.records import Binary, CompiledFacts, Configuration, Module, Target, UserError

from .registry import TOOLCHAINS

FOLDER = "binaries"
"""In a cache folder."""

FOLDER_VARIABLE, SIZE_VARIABLE = "TUNESMITH_CACHE", "TUNESMITH_CACHE_BYTES"
DEFAULT_BYTES = 1 << 30

_FORMAT = 2
"""Of the files: the SHA-256 of all that follows it, a line of JSON, the payload. To be raised as well when a toolchain
makes something else of the same module, which its `conditions` do not tell."""
_DIGEST_BYTES = hashlib.sha256().digest_size
_SHARE_BETWEEN_LOOKS = 16
"""A process looks at the folder's size again when it has written this part of what the folder may hold."""


def user_cache() -> Path:
    """The user's cache folder: TUNESMITH_CACHE, else `tunesmith` under XDG_CACHE_HOME, else `~/.cache/tunesmith`.

    A user without a home has a folder among the temporary files.
    """
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named)
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "tunesmith"
    try:
        return Path.home() / ".cache" / "tunesmith"
    except RuntimeError:
        return Path(tempfile.gettempdir(), f"tunesmith-{os.geteuid()}")


def compiled(module: Module, target: Target, cache: BinaryCache) -> Binary:
    """The module's binary, from the cache or compiled now and kept there. Raises CompileError.

    Where `Toolchain.is_complete` denies it of the binary (OpenCL), nothing is kept yet: `Device.completed` makes a
    complete binary after the first launch, for `BinaryCache.keep`.
    """
    binary = cache.find(module)
    if binary is None:
        binary = TOOLCHAINS[module.language].compile(module, target)
        cache.keep(module, binary)
    return binary


class BinaryCache:
    """Keeps complete binaries of a target in files, as far as their toolchain allows (`Toolchain.keeps`).

    A file's name is a hash of all that the binary depends on: this format, what the toolchain
    names as `conditions` (the compiler's version, its options, for OpenCL the driver), the architecture, the module's
    digest. So a program for `sm_90` serves every device of that architecture, and one that was compiled without any.

    Nothing here raises for what the disk is like: what cannot be read counts as not there, what cannot be written is
    not kept. A folder or file that belongs to another user, or that others may write to, is not used. Any number of
    processes may share the folder. Files of more than TUNESMITH_CACHE_BYTES (1 GiB) together are too many: those that
    were not used for the longest time are removed. With 0, nothing is kept.
    """

    def __init__(self, folder: Path, target: Target) -> None:
        self.folder, self._target = folder / FOLDER, target
        self._limit, self._unseen = size_limit(), 0
        self._conditions = cache(self._asked)

    def find(self, module: Module) -> Binary | None:
        """The module's binary, if it is kept."""
        path = self._path(module)
        if path is None or not (is_private(self.folder) and is_private(path)):
            return None
        with suppress(OSError, ValueError, KeyError, TypeError):
            binary = _read(path.read_bytes(), module)
            with suppress(OSError):
                os.utime(path)
            return binary
        return None

    def keeps(self, module: Module) -> bool:
        """Whether a complete binary of this module would be put there."""
        if not self._limit or self._path(module) is None:
            return False
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return is_private(self.folder) and os.access(self.folder, os.W_OK)

    def keep(self, module: Module, binary: Binary) -> None:
        """Put a complete binary there, in one step."""
        path = self._path(module)
        if path and TOOLCHAINS[module.language].is_complete(binary) and self.keeps(module):
            with suppress(OSError):
                self._write(path, _content(binary))

    def _write(self, path: Path, content: bytes) -> None:
        descriptor, unfinished = tempfile.mkstemp(dir=self.folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
        self._unseen -= len(content)
        if self._unseen <= 0:
            self._make_room()

    def _make_room(self) -> None:
        """Remove what was not used for the longest time; another process may do the same just now."""
        found = []
        for path in self.folder.iterdir():
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, path))
        found.sort()
        excess = sum(size for _, size, _ in found) - self._limit
        for _, size, path in found:
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size
        self._unseen = min(-excess, self._limit // _SHARE_BETWEEN_LOOKS)

    def _path(self, module: Module) -> Path | None:
        """Where a module's binary lies, or would; None for what is not kept."""
        conditions = self._conditions(module.language) if TOOLCHAINS[module.language].keeps(module) else None
        if conditions is None:
            return None
        parts = [_FORMAT, module.language, conditions, self._target.architecture, module.digest()]
        return self.folder / hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _asked(self, language: str) -> tuple[str, ...] | None:
        toolchain = TOOLCHAINS[language]
        return None if toolchain.unavailable() else toolchain.conditions(self._target)


def size_limit() -> int:
    """Bytes that a cache folder may hold; 0 for none at all."""
    text = os.environ.get(SIZE_VARIABLE, "")
    if text and not text.isdecimal():
        raise UserError(SIZE_VARIABLE, f"{text!r} is no number of bytes", f"give a whole number, as {DEFAULT_BYTES}")
    return int(text or DEFAULT_BYTES)


def is_private(path: Path) -> bool:
    """Whether it is there, the user's own, and nobody else's to write to. A pipe or a device is not: reading it might
    never end."""
    try:
        status = path.stat()
    except OSError:
        return False
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _content(binary: Binary) -> bytes:
    header = {"facts": [asdict(fact) for fact in binary.facts], "metadata": binary.metadata.to_json()}
    rest = json.dumps(header).encode() + b"\n" + binary.payload
    return hashlib.sha256(rest).digest() + rest


def _read(content: bytes, module: Module) -> Binary:
    """Raises ValueError, KeyError or TypeError for a file that is damaged."""
    digest, rest = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    if digest != hashlib.sha256(rest).digest():
        raise ValueError("damaged")
    line, _, payload = rest.partition(b"\n")
    header = json.loads(line)
    facts = tuple(CompiledFacts(**fact) for fact in header["facts"])
    return Binary(module.digest(), module.language, payload, facts, Configuration.from_json(header["metadata"]))
