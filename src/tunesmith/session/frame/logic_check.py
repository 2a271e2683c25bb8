"""The last look at a logic: loaded again as its users will, with every launch watched.

It happens in a process of its own (`watcher`), since a driver that crashes or hangs must not take a finished run along.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunesmith.bench import Spawner
from tunesmith.devices import environment

SECONDS = 120.0
"""For all launches together."""


def watch(logic: Sequence[Path], cache: Path, seconds: float = SECONDS) -> list[str]:
    """What is wrong with logic files that were written, a sentence each; nothing when all is well.

    Of every logic that NumPy arrays can ask for, each solution is launched through `tunesmith.load` at the smallest
    size that it won: the launch must be of the solution that the logic names there, and its result right.
    `cache` is a bench's, so that what it compiled is found again.
    """
    if not logic:
        return []
    spawner = Spawner(environment(cache))
    child = spawner.start("tunesmith.session.frame.logic_check_process")
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
        spawner.close()
