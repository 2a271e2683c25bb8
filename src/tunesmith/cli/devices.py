"""`tunesmith devices`: the devices that can be tuned here, and why others cannot."""

from __future__ import annotations

import typer

from tunesmith.devices import discover
from tunesmith.report import documents, tables

from .output import Json, print_facts


def devices(as_json: Json = False) -> None:
    """List the devices that can be tuned here, with their limits, and why a device is unusable.

    Each one compiles and runs a small kernel before it is called usable.

    Example: `tunesmith devices --json`
    """
    found = discover()
    print_facts(as_json, documents.devices, tables.devices, found)
    if not any(device.usable for device in found):
        raise typer.Exit(1)
