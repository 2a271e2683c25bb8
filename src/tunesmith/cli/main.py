"""The command line: `tunesmith COMMAND`. One file a command; this one holds them together and prints mistakes."""

from __future__ import annotations

import io
import os
import sys
from importlib import import_module

import typer

from tunesmith.records import UserError

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


def main() -> None:
    """Run the command line; a mistake of the user's is one line on stderr and exit code 2.

    So is what the file system refuses: a file where a folder should be, a full disk, a pipe that nobody reads.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
        sys.stdout.flush()
    except UserError as error:
        sys.stderr.write(f"tunesmith: {error}\n")
        sys.exit(2)
    except OSError as error:
        sys.stderr.write(f"tunesmith: {error.filename or 'output'}: {error.strerror}; see to it and run this again\n")
        # What is still buffered for a broken output must not be tried again at exit.
        os._exit(2)


if __name__ == "__main__":
    main()
