"""What a command sends to the cluster's workers (records, pickled by Dask), and what a worker says of itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import tunesmith
from tunesmith.bench import Batch, Policy
from tunesmith.devices import APIS
from tunesmith.records import Target
from tunesmith.session.frame.many_devices import Confirmation
from tunesmith.toolchains import TOOLCHAINS

STARTUP = "tunesmith"
"""The key in a Dask worker's startup information under which it says what it is."""

COMPILES = "tunesmith-compiles"
"""The Dask resource of workers that compile."""


class Role(StrEnum):
    """What a worker process does: a device has one process, and a host has one that compiles for its devices."""

    DEVICE = "device"
    COMPILER = "compiler"


@dataclass(frozen=True, slots=True)
class Portion:
    """Work for one device, done at a stretch: jobs, or confirmations by name. The device sends results to `topic`, with
    the portion's `number`.

    `charged` are digests of the modules that were compiled for this portion first.
    """

    number: int
    topic: str
    policy: Policy
    work: Batch | Mapping[str, Confirmation]
    charged: frozenset[str] = frozenset()


class MessageKind(StrEnum):
    """What a device sends: it has begun a portion; one result; the results of a confirmation; the portion is done; a
    process was lost; the bench gave up, with a UserError's texts."""

    BEGAN = "began"
    MEASURED = "measured"
    INTERLEAVED = "interleaved"
    ENDED = "ended"
    LOST = "lost"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """What a worker says of itself when it joins. `device` is unique in a cluster; `target` is None for a compiler.

    `toolchains` has the version of each compiler of the device, by language.
    """

    role: Role
    host: str
    device: str = ""
    target: Target | None = None
    processes: int = 0
    version: str = tunesmith.__version__
    toolchains: Mapping[str, str] | None = None

    def to_plain(self) -> dict[str, Any]:
        return {**asdict(self), "role": self.role.value}

    @staticmethod
    def of(plain: Any) -> WorkerIdentity | None:
        """The identity of a worker by its startup information; None if the worker is not tunesmith's."""
        try:
            target = Target(**plain["target"]) if plain["target"] else None
            return WorkerIdentity(**{**plain, "role": Role(plain["role"]), "target": target})
        except (KeyError, TypeError, ValueError):
            return None


def compiler_versions(target: Target) -> dict[str, str]:
    """The version of each compiler for a target's API, by language, as measurements' keys hold it."""
    return {language: TOOLCHAINS[language].version(target) for language in APIS[target.api].languages}
