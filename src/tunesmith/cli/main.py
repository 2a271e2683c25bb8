"""The entry point of `tunesmith COMMAND`: prints the user's mistakes, and handles Ctrl-C from the first import on."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn


def main() -> None:
    """Run the command line. A mistake of the user's is a line on stderr and exit code 2.

    An error of the file system gets the same: a file instead of a folder, a full disk, a pipe that nobody reads. Ctrl-C
    during the imports is a line and exit code 130; later, the commands handle Ctrl-C.
    """
    try:
        _run()
    except KeyboardInterrupt:
        interrupted()


def interrupted() -> NoReturn:
    """End the program with the message and the exit code of Ctrl-C."""
    sys.stderr.write("tunesmith: interrupted\n")
    sys.exit(130)


def _run() -> None:
    from tunesmith.records import UserError, printable

    from .app import app

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
        sys.stdout.flush()
    except UserError as error:
        sys.stderr.write("".join(f"tunesmith: {mistake}\n" for mistake in error.errors))
        sys.exit(2)
    except OSError as error:
        location = printable(str(error.filename or "output"))
        sys.stderr.write(f"tunesmith: {location}: {error.strerror}; see to it and run this again\n")
        # An exit without flushing: writing to a broken output again would fail again.
        os._exit(2)


if __name__ == "__main__":
    main()
