"""The final check of written logic: it is loaded as its users will load it, and its solutions are launched.

A process of its own (`library.logic_check_process`) makes the check, since a driver that crashes or hangs must not end
the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunesmith.bench import Child, Spawner
from tunesmith.library import logic_check_process

SECONDS = 120.0
"""The limit for all launches together."""


def started_checker(spawner: Spawner) -> Child:
    """The process that makes the check; it imports while the caller does something else."""
    return spawner.start(logic_check_process.__name__)


def check_logic(
    logic: Sequence[Path], spawner: Spawner, seconds: float = SECONDS, checker: Child | None = None
) -> list[str]:
    """Sentences on what is wrong with the logic files; empty if all is well.

    For every logic that can be called with NumPy arrays, each solution is launched through `tunesmith.load` at the
    smallest size that it won. The library must launch the solution that the logic names there, with a right result.
    `spawner` starts the process with the bench's cache, so that its compiled programs are found again, unless there is
    a `checker` already.
    """
    if not logic:
        return []
    for path in logic:
        logic_check_process.share_references(path)
    child = checker or started_checker(spawner)
    try:
        child.send(list(logic))
        if not child.connection.poll(seconds):
            return [f"launching what the logic names gave no result for {seconds:g} s"]
        answer = child.receive()
        if isinstance(answer, list):
            return answer
        return [f"launching what the logic names ended with {child.end(patience=5.0)}: {child.last_words()}"]
    finally:
        child.end()
