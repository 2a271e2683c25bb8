"""`tunesmith devices`: what can be tuned here, and why the rest cannot."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import typer

from tunesmith.devices import Found, discover
from tunesmith.report import tables

from ._output import Json, console, print_json


def devices(as_json: Json = False) -> None:
    """List the devices that can be tuned here, with their limits, and why a device is unusable.

    Each one compiles and runs a small kernel before it is called usable.

    Example: `tunesmith devices --json`
    """
    found = discover()
    if as_json:
        print_json({"devices": [_document(one) for one in found]})
    else:
        console.print(tables.devices(found))
    if not any(one.usable for one in found):
        raise typer.Exit(1)


def _document(found: Found) -> dict[str, Any]:
    return {
        "name": found.name,
        "usable": found.usable,
        "problem": found.problem,
        "remedy": found.remedy,
        "properties": asdict(found.target) if found.target else None,
    }
