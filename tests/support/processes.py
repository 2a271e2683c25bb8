"""The processes of this machine, read from /proc: a fresh Debian has no `ps`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Process:
    """A process that is not a zombie."""

    pid: int
    parent: int
    command: str


def processes() -> Iterator[Process]:
    """Every living process; one that ends while it is looked at is left out."""
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            # The name in parentheses may hold spaces; state and parent follow it.
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except (OSError, ValueError):
            continue
        if state != "Z":
            yield Process(int(folder.name), int(parent), command)
