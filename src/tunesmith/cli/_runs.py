"""A command that works for minutes: how it is stopped, and how it ends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import RenderableType

from ._output import console, messages, print_json

INTERRUPTED = 130


@contextmanager
def stoppable(folder: Path, done: str = "measured") -> Iterator[None]:
    """Within it the command works. Ctrl-C and a termination end it, and say that everything `done` is in `folder`."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        messages.print(f"stopped; everything {done} is in {folder}, and the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None


def ended(
    as_json: bool,
    document: Callable[[], Mapping[str, Any]],
    tables: Callable[[], RenderableType],
    look_at: Sequence[str],
) -> None:
    """Print what came of it; the exit code is 1 where there is something to look at."""
    if as_json:
        print_json(document())
    else:
        console.print(tables())
    if look_at:
        raise typer.Exit(1)
