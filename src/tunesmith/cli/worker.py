"""`tunesmith worker --cluster ADDRESS`: this host's devices join a cluster."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cluster import require_dask
from tunesmith.records import printable
from tunesmith.toolchains.cache import user_cache

from .output import messages
from .runs import INTERRUPTED


def worker(
    cluster: Annotated[str, typer.Option("--cluster", help="A Dask scheduler's address, or its file.")],
    devices: Annotated[
        str, typer.Option("--devices", help="The devices that join: all, or selectors separated by commas.")
    ] = "all",
    name: Annotated[str, typer.Option("--name", help="The host's name in reports; the system's if absent.")] = "",
    cache: Annotated[
        Path | None, typer.Option("--cache", help="Folder for compiled programs; the user's cache if absent.")
    ] = None,
    compile_processes: Annotated[
        int, typer.Option("--compile-processes", min=0, help="Programs compiled at once; one for two cores if 0.")
    ] = 0,
) -> None:
    """Let the devices of this host measure for a cluster, until its scheduler ends. A process that dies is replaced.

    Each device has one process, and the devices share one that compiles. They may join and leave at any time. No folder
    is shared with other hosts.

    Example: `tunesmith worker --cluster tcp://head:8786 --devices all`
    """
    require_dask("tunesmith worker")
    from tunesmith.cluster import opened

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    host = name or opened.host_name()
    folder = cache or user_cache() / "cluster"
    try:
        with opened.joined(cluster, devices, host, folder, compile_processes, _say) as joined:
            while not joined.has_ended:
                time.sleep(0.2)
    except KeyboardInterrupt:
        messages.print("stopped; the cluster measures on its other devices")
        raise typer.Exit(INTERRUPTED) from None
    joined.raise_failures()
    messages.print("the scheduler has ended, and so do its workers here")


def _say(sentence: str) -> None:
    messages.print(printable(sentence))
