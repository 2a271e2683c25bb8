"""What the commands share: where text goes, and JSON with stable keys."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

console = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
"""Facts go to standard output; progress goes to standard error, so that a pipe gets only the facts."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text (keys: docs/json.md).")]
Device = Annotated[
    str | None,
    typer.Option("--device", help="Selector of a device, or part of its name.", show_default=False),
]
MaxSize = Annotated[
    int | None,
    typer.Option("--max-size", min=1, help="Clamp every size to this, then drop the repeats.", show_default=False),
]


def print_json(document: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(document, indent=2, allow_nan=False) + "\n")
