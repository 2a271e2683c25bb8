"""The command line: `tunesmith COMMAND`. Prints the user's mistakes; imports nothing before it is ready for Ctrl-C."""

from __future__ import annotations

import io
import os
import sys
from typing import NoReturn


def main() -> None:
    """Run the command line; a mistake of the user's is one line on stderr and exit code 2.

    So is what the file system refuses: a file where a folder should be, a full disk, a pipe that nobody reads. Ctrl-C
    among the imports is one line and exit code 130; later the commands see to it.
    """
    try:
        _run()
    except KeyboardInterrupt:
        interrupted()


def interrupted() -> NoReturn:
    """End the program as one that Ctrl-C has stopped."""
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
        sys.stderr.write("".join(f"tunesmith: {one}\n" for one in error.errors))
        sys.exit(2)
    except OSError as error:
        location = printable(str(error.filename or "output"))
        sys.stderr.write(f"tunesmith: {location}: {error.strerror}; see to it and run this again\n")
        # What is still buffered for a broken output must not be tried again at exit.
        os._exit(2)


if __name__ == "__main__":
    main()
