"""The commands as one application. One file a command; this one holds them together."""

from __future__ import annotations

from importlib import import_module

import typer

from tunesmith.cli import calibrate, portblas, random, stream_k

COMMANDS = ("devices", "plan", "tune", "show", "select", "compare")
"""Each is a module of this package with a function of the same name."""

app = typer.Typer(
    name="tunesmith",
    help="Tune once, ship the logic, launch the best kernel.\n\n"
    "Exit codes: 0 done; 1 finished with something to look at; 2 a mistake in what was given; 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

for _command in COMMANDS:
    _function = getattr(import_module(f"tunesmith.cli.{_command}"), _command)
    app.command(_command, context_settings={"allow_extra_args": _command == "select"})(_function)

app.add_typer(random.app)
app.add_typer(portblas.app)
app.add_typer(calibrate.app)
app.add_typer(stream_k.app)
