"""The options of commands that measure on several devices, and what a command does with them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tunesmith.records import UserError
from tunesmith.session.frame.many_devices import BenchFactory
from tunesmith.session.frame.outputs import CACHE

if TYPE_CHECKING:
    from tunesmith.records import Target

Devices = Annotated[
    str | None,
    typer.Option("--devices", help="All devices of one host (all), or selectors separated by commas."),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", help="A Dask scheduler whose workers measure: its address, or its file."),
]
WaitFor = Annotated[int, typer.Option("--wait-for", min=1, help="With --cluster: devices to wait for at the start.")]


Say = Callable[[str], None]


@dataclass(frozen=True)
class KindOfDevice:
    """What a run is handed to measure on devices of one kind, and the folder for its results."""

    device: Target
    benches: BenchFactory
    folder: Path


@dataclass(frozen=True)
class ManyDevicesOptions:
    """The options `--devices`, `--cluster` and `--wait-for`, of which the first two exclude each other and
    `--device`."""

    devices: str | None = None
    cluster: str | None = None
    wait_for: int = 1
    device: str | None = None

    @property
    def option(self) -> str:
        """The option that was given; empty if the command measures on one device."""
        return "--cluster" if self.cluster is not None else "--devices" if self.devices is not None else ""

    @contextmanager
    def kinds(self, folder: Path, say: Say, warn: Say) -> Iterator[list[KindOfDevice]]:
        """The kinds of device to run on, one after the other. Each of several kinds has a folder of its own.

        Raises UserError without Dask, and for options that exclude each other.
        """
        options = {"--device": self.device, "--devices": self.devices, "--cluster": self.cluster}
        if len(named := [name for name, value in options.items() if value is not None]) > 1:
            raise UserError(named[0], f"excludes {named[1]}", "give one of them")
        from tunesmith.cluster import require_dask

        require_dask(self.option)
        from tunesmith.cluster import opened

        if self.cluster is not None:
            context = opened.open_remote(self.cluster, self.wait_for, say, warn)
        else:
            context = opened.open_local(self.devices or "", folder / CACHE, say)
        with context as cluster:
            yield [
                KindOfDevice(kind, cluster.benches_for(kind), folder_of(kind.name, folder, len(cluster.kinds)))
                for kind in cluster.kinds
            ]


def folder_of(device: str, folder: Path, kinds: int) -> Path:
    """The folder of a kind of device: `folder` itself, or one in it if there are several kinds or if there were."""
    own = folder / re.sub(r"[^A-Za-z0-9]+", "_", device).strip("_")
    return own if kinds > 1 or own.is_dir() else folder
