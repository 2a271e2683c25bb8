"""Shared by the commands: options, the consoles for standard output and error, and printing as text or JSON."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tunesmith.records import LINE_CHARACTERS, printable

P = ParamSpec("P")

WIDE = 10_000
"""The width without a terminal and without the variable COLUMNS: a file or a pipe gets whole lines."""


class PlainConsole(Console):
    """A console that prints control characters in text as escapes, so that a name from outside cannot control the
    terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text, LINE_CHARACTERS))


def _console(stderr: bool) -> Console:
    """A console without markup, since printed text comes from outside (names, paths, messages of compilers)."""
    has_width = (sys.stderr if stderr else sys.stdout).isatty() or "COLUMNS" in os.environ
    return PlainConsole(stderr=stderr, highlight=False, markup=False, emoji=False, width=None if has_width else WIDE)


console, messages = _console(stderr=False), _console(stderr=True)
"""Results go to standard output and progress to standard error, so that a pipe gets the results only."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text (keys: docs/json.md).")]
Device = Annotated[
    str | None,
    typer.Option("--device", help="A device: its selector, CPU or GPU, or part of its name."),
]
Family = Annotated[str, typer.Option(help="A kernel family, where several can.")]
ComputeUnits = Annotated[int | None, typer.Option(min=1, help="Keep every grid to so many of the device's.")]
Occupancy = Annotated[int, typer.Option(min=1, max=64, help="Work-groups that a compute unit holds at once.")]
Order = Annotated[
    str | None,
    typer.Option(help="The policy whose best guesses are measured first, such as latency (if absent); file asks none."),
]
MaxSize = Annotated[
    int | None,
    typer.Option("--max-size", min=1, help="Clamp every size to this, then drop the repeats."),
]

Sizes = Annotated[
    Path | None,
    typer.Option("--sizes", help="The sizes file of a file in Tensile's split form (docs/from-tensile.md)."),
]


def print_facts(
    as_json: bool,
    document: Callable[P, Mapping[str, Any]],
    text: Callable[P, RenderableType],
    *facts: P.args,
    **named: P.kwargs,
) -> None:
    """Print the facts as JSON (`document`) or as text (`text`)."""
    if as_json:
        sys.stdout.write(json.dumps(document(*facts, **named), indent=2, allow_nan=False) + "\n")
    else:
        console.print(text(*facts, **named))
