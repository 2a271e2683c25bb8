"""Compiled programs on disk, so that processes that use the same folder compile a program once."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from pathlib import Path

from tunesmith.records import Binary, CompiledFacts, Configuration, Module, Target, UserError

from .registry import TOOLCHAINS

FOLDER = "binaries"
"""The folder of binaries, in a cache folder."""

FOLDER_VARIABLE, SIZE_VARIABLE = "TUNESMITH_CACHE", "TUNESMITH_CACHE_BYTES"
DEFAULT_BYTES = 1 << 30

_FORMAT = 2
"""Version of the files' format: the SHA-256 of the rest, a line of JSON, the payload. Also raise it if a toolchain
makes a different binary of the same module while its `conditions` stay the same."""
_DIGEST_BYTES = hashlib.sha256().digest_size
_SHARE_BETWEEN_LOOKS = 16
"""A process checks the folder's size again after it has written this fraction of the limit."""


def user_cache() -> Path:
    """The user's cache folder: TUNESMITH_CACHE, else `tunesmith` under XDG_CACHE_HOME, else `~/.cache/tunesmith`.

    Without a home directory it is a folder in the temporary directory.
    """
    if folder := os.environ.get(FOLDER_VARIABLE):
        return Path(folder)
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "tunesmith"
    try:
        return Path.home() / ".cache" / "tunesmith"
    except RuntimeError:
        import tempfile

        return Path(tempfile.gettempdir(), f"tunesmith-{os.geteuid()}")


def compile_cached(module: Module, target: Target, cache: BinaryCache) -> Binary:
    """The module's binary, from the cache or else compiled now and kept in the cache. Raises CompileError.

    A binary that is not complete (`Toolchain.is_complete`, OpenCL) is not kept yet: `Device.completed` makes a complete
    binary after the first launch, for `BinaryCache.keep`.
    """
    binary = cache.find(module)
    if binary is None:
        binary = TOOLCHAINS[module.language].compile(module, target)
        cache.keep(module, binary)
    return binary


class BinaryCache:
    """Keeps complete binaries of a target in files, as far as their toolchain allows (`Toolchain.keeps`).

    A file's name is a hash of everything that the binary depends on: the file format, the toolchain's `conditions` (the
    compiler's version, its options, for OpenCL the driver), the architecture and the module's digest. So a binary for
    `sm_90` serves every device of that architecture, even if it was compiled without a device.

    No method raises an error of the disk: a file that cannot be read counts as missing, and a binary that cannot be
    written is not kept. A folder or file that belongs to another user, or that others may write to, is not used. Any
    number of processes may share the folder. If the files together exceed TUNESMITH_CACHE_BYTES (1 GiB), the least
    recently used are removed. With 0, nothing is kept.
    """

    def __init__(self, folder: Path, target: Target) -> None:
        self.folder, self._target = folder / FOLDER, target
        self._limit, self._bytes_until_check = size_limit(), 0
        self._conditions = cache(self._toolchain_conditions)

    def find(self, module: Module) -> Binary | None:
        """The module's binary; None if it is not kept."""
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
        """Whether `keep` would keep a complete binary of this module."""
        if not self._limit or self._path(module) is None:
            return False
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return is_private(self.folder) and os.access(self.folder, os.W_OK)

    def keep(self, module: Module, binary: Binary) -> None:
        """Keep a binary if it is complete. The file appears in one step."""
        path = self._path(module)
        if path and TOOLCHAINS[module.language].is_complete(binary) and self.keeps(module):
            with suppress(OSError):
                self._write(path, _content(binary))

    def _write(self, path: Path, content: bytes) -> None:
        import tempfile

        descriptor, unfinished = tempfile.mkstemp(dir=self.folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(unfinished).replace(path)
        except BaseException:
            Path(unfinished).unlink(missing_ok=True)
            raise
        self._bytes_until_check -= len(content)
        if self._bytes_until_check <= 0:
            self._make_room()

    def _make_room(self) -> None:
        """Remove the least recently used files. Another process may do the same at the same time."""
        files = []
        for path in self.folder.iterdir():
            with suppress(OSError):
                status = path.stat()
                files.append((status.st_mtime_ns, status.st_size, path))
        files.sort()
        excess = sum(size for _, size, _ in files) - self._limit
        for _, size, path in files:
            if excess <= 0:
                break
            path.unlink(missing_ok=True)
            excess -= size
        self._bytes_until_check = min(-excess, self._limit // _SHARE_BETWEEN_LOOKS)

    def _path(self, module: Module) -> Path | None:
        """The path of a module's binary; None if the module's binaries are not kept."""
        conditions = self._conditions(module.language) if TOOLCHAINS[module.language].keeps(module) else None
        if conditions is None:
            return None
        parts = [_FORMAT, module.language, conditions, self._target.architecture, module.digest()]
        return self.folder / hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _toolchain_conditions(self, language: str) -> tuple[str, ...] | None:
        toolchain = TOOLCHAINS[language]
        return None if toolchain.unavailable() else toolchain.conditions(self._target)


def size_limit() -> int:
    """Bytes that a cache folder may hold; 0 keeps nothing."""
    text = os.environ.get(SIZE_VARIABLE, "")
    if text and not text.isdecimal():
        raise UserError(SIZE_VARIABLE, f"{text!r} is no number of bytes", f"give a whole number, as {DEFAULT_BYTES}")
    return int(text or DEFAULT_BYTES)


def is_private(path: Path) -> bool:
    """Whether this is an existing file or folder that belongs to the user, and that nobody else may write to. A pipe or
    a device does not count, since reading it might never end."""
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
