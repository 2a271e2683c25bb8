"""What was chosen for the calls of an autotuned kernel: one small file for each key, beside the kernel's store.

A choice is read without a session or a store, so a later process has it at once. Several processes share the folder:
the one that holds `tuning` tunes, the others wait and read its choice.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunesmith.toolchains import user_cache

from .tuning_key import TuningKey

PlainConfig = Mapping[str, Any]
"""Everything that a `triton.Config` sets, as JSON can hold it."""

_CHOICES = "choices"


@dataclass(frozen=True)
class Machine:
    """Where a choice holds: the device's name and the toolchain's version. `selector` is this process's name of it."""

    device: str
    toolchain: str
    selector: str = field(default="", compare=False)


@dataclass(frozen=True)
class KeptChoice:
    """The configuration that won for a key, those that could not be told from it (`ties`), and a digest of all
    that it was chosen among: the kernel's text, the machine and the configurations."""

    key: TuningKey
    machine: Machine
    config: PlainConfig
    ties: tuple[PlainConfig, ...]
    among: str

    def to_json(self) -> str:
        document = {
            "values": self.key.values,
            "dtypes": self.key.dtypes,
            "device": self.machine.device,
            "toolchain": self.machine.toolchain,
            "config": self.config,
            "ties": self.ties,
            "among": self.among,
        }
        return json.dumps(document, indent=1)

    @staticmethod
    def from_json(text: str) -> KeptChoice:
        """Raises ValueError, KeyError or TypeError for a text that `to_json` did not make."""
        document = json.loads(text)
        key = TuningKey(tuple(document["values"]), tuple(document["dtypes"]))
        machine = Machine(document["device"], document["toolchain"])
        return KeptChoice(key, machine, dict(document["config"]), tuple(map(dict, document["ties"])), document["among"])


def plain_config(config: Any) -> PlainConfig:
    """What a `triton.Config` sets, as JSON can hold it; what JSON cannot hold is its text."""
    return {
        name: value if isinstance(value, bool | int | float | str | None) else str(value)
        for name, value in config.all_kwargs().items()
    }


def digest_among(text: str, machine: Machine, configs: list[Any]) -> str:
    """The digest of a kernel's text, a machine and the configurations to choose among."""
    listed = [plain_config(config) for config in configs]
    return _digest(json.dumps([text, machine.device, machine.toolchain, listed]))


@dataclass(frozen=True)
class KernelFolder:
    """The folder of one kernel text: its store, its choices and a lock."""

    path: Path

    @staticmethod
    def of(name: str, text: str) -> KernelFolder:
        """The folder in the user's cache; a temporary one if nothing can be kept there."""
        path = user_cache() / "autotuned" / f"{name}-{_digest(text)[:12]}"
        try:
            path.mkdir(parents=True, exist_ok=True)
            if os.access(path, os.W_OK):
                return KernelFolder(path)
        except OSError:
            pass
        return KernelFolder(Path(tempfile.mkdtemp(prefix=f"tunesmith-{name}-")))

    def choice(self, key: TuningKey, machine: Machine) -> KeptChoice | None:
        """The kept choice for a key on a machine; None without one, or if the file is damaged."""
        return _read(self._file(key, machine))

    def choices(self, machine: Machine) -> list[KeptChoice]:
        """All kept choices for a machine."""
        files = sorted((self.path / _CHOICES).glob("*.json"))
        return [choice for file in files if (choice := _read(file)) and choice.machine == machine]

    def keep(self, choice: KeptChoice) -> None:
        """Write a choice. Its file is whole as soon as it has its name."""
        path = self._file(choice.key, choice.machine)
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            file.write(choice.to_json())
        Path(file.name).replace(path)

    @contextmanager
    def tuning(self) -> Iterator[None]:
        """A context that one process at a time enters, as a run in the folder does; others wait. It ends when the
        process ends, too."""
        from tunesmith.session.frame.lock import held_folder  # only a call that tunes needs a session

        with held_folder(self.path, wait=True):
            yield

    def _file(self, key: TuningKey, machine: Machine) -> Path:
        parts = [key.values, key.dtypes, machine.device, machine.toolchain]
        return self.path / _CHOICES / f"{_digest(json.dumps(parts))[:24]}.json"


def _read(path: Path) -> KeptChoice | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return KeptChoice.from_json(path.read_text(encoding="utf-8"))
    return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
