"""Faults that tests inject at named points of a run.

The variable TUNESMITH_FAULT is `point:role:n:action` or `point:role:n:action:token`. When a process of that role
(parent, worker, compiler) passes that point for the n-th time (from 1), the action happens: `kill` (SIGKILL to itself),
`kill-parent` (to the process that started it), `interrupt` (SIGINT to itself), `stop` (SIGSTOP to itself), `segfault`,
`hang` or `raise`. A token is the path of a file, and lets the action happen once in all processes together: the process
that acts removes the file, and a process that does not find the file does not act.
Without the variable nothing ever happens.

The variable TUNESMITH_PASSAGES names a file to which every passage is appended as `point role pid n`. It shows which
points a run reaches.
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
    """Raised by the action `raise`."""


def set_role(role: Role) -> None:
    """Set the role of this process. Without this call it is the parent."""
    global _role
    _role = role


def pass_point(point: str) -> None:
    """Pass a named point of a run, where a fault may be injected. ValueError for a point that is not in POINTS."""
    if point not in POINTS:
        raise ValueError(f"no point {point!r}; there are {', '.join(POINTS)}")
    fault, passages = os.environ.get(VARIABLE), os.environ.get(PASSAGES)
    if not (fault or passages):
        return
    _passed[point] += 1
    if passages:
        with Path(passages).open("a") as file:
            file.write(f"{point} {_role} {os.getpid()} {_passed[point]}\n")
    if not fault:
        return
    fault_point, role, count, action, *token = fault.split(":", 4)
    if (fault_point, role, int(count)) == (point, _role, _passed[point]) and _is_first(token):
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
