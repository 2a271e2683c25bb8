"""A process that holds a folder, for the tests of the lock: the bench's server forks it."""

from __future__ import annotations

import sys
from multiprocessing.connection import Connection

from tunesmith.session.frame.lock import held_folder


def main(connection: Connection) -> None:
    """Hold the folder that the parent sends, say so, and let it go at the next message."""
    folder = connection.recv()
    sys.argv = ["tunesmith", "tune", "--store=postgresql://me:secret@host/db"]
    with held_folder(folder):
        connection.send("holding")
        connection.recv()
