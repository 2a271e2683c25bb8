"""`tunesmith random COMMAND`: launch shapes of random number generators. This file holds the commands together."""

from __future__ import annotations

from importlib import import_module

import typer

COMMANDS = ("tune", "select", "grid-sizes")
"""Each is a module of this package, `random_` before its name, with a function of that name."""

app = typer.Typer(
    name="random",
    help="Tune launch shapes of random number generators, and choose from what was measured.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

for _command in COMMANDS:
    _name = _command.replace("-", "_")
    app.command(_command)(getattr(import_module(f"tunesmith.cli.random_{_name}"), _name))
