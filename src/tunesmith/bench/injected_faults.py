"""Faults on request, at named points of a run: how the kill tests reach every one of them.

The variable TUNESMITH_FAULT is `point:role:n:action` or `point:role:n:action:token`. When a process of that role
(parent, worker, compiler) passes that point for the n-th time (from 1), the action happens: `kill` (SIGKILL to itself),
`kill-parent` (to the process that started it), `interrupt` (SIGINT to itself), `stop` (SIGSTOP to itself), `segfault`,
`hang` or `raise`. With a token, the path of a file, it happens once in all processes together: the file is removed by
the process that acts, and without it nobody acts.
Without the variable nothing ever happens.

The variable TUNESMITH_PASSAGES names a file to which every passage is appended, `point role pid n`: what there is to be
reached in a run.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NoReturn

Role = Literal["parent", "worker", "compiler"]

VARIABLE, PASSAGES = "TUNESMITH_FAULT", "TUNESMITH_PASSAGES"

POINTS = (
    "compiling",
    "probing",
    "verifying",
    "timing",
    "reporting",
    "committing",
    "confirming",
    "decided",
    "writing",
    "closing",
)


class FaultError(Exception):
    """The action `raise`."""


def play(role: Role) -> None:
    """Say which role this process has; a process that says nothing is the parent."""
    global _role
    _role = role


def reached(point: str) -> None:
    """Mark a named point of a run. ValueError for a point that is not in POINTS."""
    if point not in POINTS:
        raise ValueError(f"no point {point!r}; there are {', '.join(POINTS)}")
    wanted, passages = os.environ.get(VARIABLE), os.environ.get(PASSAGES)
    if not (wanted or passages):
        return
    _passed[point] += 1
    if passages:
        with Path(passages).open("a") as file:
            file.write(f"{point} {_role} {os.getpid()} {_passed[point]}\n")
    if not wanted:
        return
    at, role, count, action, *token = wanted.split(":", 4)
    if (at, role, int(count)) == (point, _role, _passed[point]) and _is_first(token):
        _ACTIONS[action](point)


_role: Role = "parent"
_passed: Counter[str] = Counter()


def _is_first(token: list[str]) -> bool:
    if not token:
        return True
    try:
        Path(token[0]).unlink()
    except FileNotFoundError:
        return False
    return True


def _signal(number: signal.Signals, process: Callable[[], int] = os.getpid) -> Callable[[str], None]:
    return lambda point: os.kill(process(), number)


def _hang(point: str) -> None:
    while True:
        signal.pause()


def _raise(point: str) -> NoReturn:
    raise FaultError(point)


_ACTIONS: dict[str, Callable[[str], None]] = {
    "kill": _signal(signal.SIGKILL),
    "kill-parent": _signal(signal.SIGKILL, os.getppid),
    "interrupt": _signal(signal.SIGINT),
    "segfault": _signal(signal.SIGSEGV),
    "hang": _hang,
    "stop": _signal(signal.SIGSTOP),
    "raise": _raise,
}
