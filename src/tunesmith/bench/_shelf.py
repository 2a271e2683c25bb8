"""Binaries on disk: what was compiled once, on whatever machine, is compiled by no later run with the same folder."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from tunesmith.records import Binary, CompiledFacts, Configuration, Module, Target
from tunesmith.toolchains import TOOLCHAINS

FOLDER = "binaries"
"""In a cache folder."""


class Shelf:
    """Keeps binaries of one target whose toolchain allows it; of the others it never has any.

    A file is named by compiler and version, architecture and the module's digest, and by nothing else of the target:
    a program for `sm_90` serves every device of that architecture, and one that was compiled without any. It holds a
    line of JSON, then the payload. One that is damaged counts as not there. Processes may share the folder.
    """

    def __init__(self, folder: Path, target: Target) -> None:
        self.folder, self._target = folder / FOLDER, target
        self._version = cache(self._asked)

    def find(self, module: Module) -> Binary | None:
        path = self.path(module)
        if path is None:
            return None
        try:
            header, _, payload = path.read_bytes().partition(b"\n")
            return _binary(json.loads(header), payload, module)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, module: Module, binary: Binary) -> None:
        """Put it there in one step; raises OSError where there is no room."""
        path = self.path(module)
        if path is None:
            return
        header = {
            "facts": [asdict(fact) for fact in binary.facts],
            "metadata": binary.metadata.to_json(),
            "sha256": _digest(binary.payload),
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_bytes(json.dumps(header).encode() + b"\n" + binary.payload)
        unfinished.replace(path)

    def path(self, module: Module) -> Path | None:
        """Where a module's binary lies, or would; None for what is not kept."""
        if not TOOLCHAINS[module.language].keeps(module) or (version := self._version(module.language)) is None:
            return None
        parts = [version, self._target.architecture, module.digest()]
        return self.folder / _digest(json.dumps(parts).encode())

    def _asked(self, language: str) -> str | None:
        compiler = TOOLCHAINS[language]
        return None if compiler.unavailable() else compiler.version(self._target)


def _binary(header: Mapping[str, Any], payload: bytes, module: Module) -> Binary | None:
    if header["sha256"] != _digest(payload):
        return None
    facts = tuple(CompiledFacts(**fact) for fact in header["facts"])
    return Binary(module.digest(), module.language, payload, facts, Configuration.from_json(header["metadata"]))


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
