"""`tunesmith calibrate COMMAND`: what models need to know of a device. This file holds the commands together."""

from __future__ import annotations

from importlib import import_module

import typer

COMMANDS = ("stream-k",)
"""Each is a module of this package, `calibrate_` before its name, with a function of that name."""

app = typer.Typer(
    name="calibrate",
    help="Measure what models need to know of a device.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


for _command in COMMANDS:
    _name = _command.replace("-", "_")
    app.command(_command)(getattr(import_module(f"tunesmith.cli.calibrate_{_name}"), _name))
