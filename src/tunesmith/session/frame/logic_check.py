"""The final check of written logic: it is loaded as its users will load it, and its solutions are launched.

Processes of its own (`library.logic_check_process`) make the check, since a driver that crashes or hangs must not end
the run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from tunesmith.bench import Child, Spawner
from tunesmith.library import logic_check_process

SECONDS = 120.0
"""The limit for all launches together."""

PROCESSORS_EACH, MOST_PROCESSES = 4, 8
"""A process that makes the check computes references, which keep some processors busy."""


def checker_count() -> int:
    """How many processes make the check at once on this host."""
    return min(MOST_PROCESSES, max(1, len(os.sched_getaffinity(0)) // PROCESSORS_EACH))


def started_checker(spawner: Spawner) -> Child:
    """A process that makes the check; it imports while the caller does something else."""
    return spawner.start(logic_check_process.__name__)


def check_logic(
    logic: Sequence[Path], spawner: Spawner, seconds: float = SECONDS, checkers: Sequence[Child] = ()
) -> list[str]:
    """Sentences on what is wrong with the logic files; empty if all is well.

    For every logic that can be called with NumPy arrays, each solution is launched through `tunesmith.load` at the
    smallest size that it won. The library must launch the solution that the logic names there, with a right result.
    `spawner` starts a process with the bench's cache, so that its compiled programs are found again, unless there are
    `checkers` already, which share each file's solutions.
    """
    if not logic:
        return []
    for path in logic:
        logic_check_process.share_references(path)
    children, deadline = checkers or [started_checker(spawner)], time.monotonic() + seconds
    try:
        for number, child in enumerate(children):
            child.send((list(logic), slice(number, None, len(children))))
        answers = [_answer(child, deadline) for child in children]
    finally:
        for child in children:
            child.end()
    late = [f"launching what the logic names gave no result for {seconds:g} s"]
    # Each process says what is wrong with the device or a whole file.
    return list(dict.fromkeys(sentence for answer in answers for sentence in (late if answer is None else answer)))


def _answer(child: Child, deadline: float) -> list[str] | None:
    """What the process found, or how it ended; None if it does not answer until the deadline."""
    if not child.connection.poll(max(0.0, deadline - time.monotonic())):
        return None
    answer = child.receive()
    if isinstance(answer, list):
        return answer
    return [f"launching what the logic names ended with {child.end(patience=5.0)}: {child.last_words()}"]
