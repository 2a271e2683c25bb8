"""`tunesmith stream-k COMMAND`: how products are split over a GPU. This file holds the commands together."""

from __future__ import annotations

from importlib import import_module

import typer

COMMANDS = ("explain", "sweep")
"""Each is a module of this package, `stream_k_` before its name, with a function of that name."""

app = typer.Typer(
    name="stream-k",
    help="How the tiles of a product are split over a device's work-groups.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


for _command in COMMANDS:
    _function = getattr(import_module(f"tunesmith.cli.stream_k_{_command}"), _command)
    app.command(_command, context_settings={"allow_extra_args": _command == "explain"})(_function)
