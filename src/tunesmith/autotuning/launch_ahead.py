"""What Triton makes before the winner's first launch, made while the call's configurations are measured.

Before the first launch of a signature, some releases of Triton (3.6) compile a small C program, the launcher. That
takes a quarter of a second, whatever the configuration is, and Triton keeps the program. A thread makes a launcher as
soon as a configuration is known to compile. Another one compiles the configuration that leads before the last
comparison. What Triton's driver makes once for a device needs no configuration, and is made at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass
class LaunchAhead:
    """`make` compiles the configuration at a position, and makes a launcher for it if its second argument is True. It
    loads and launches nothing, and may be called by several threads. `prepare` makes what all need."""

    make: Callable[[int, bool], object]
    prepare: Callable[[], object] = lambda: None
    _preparing: threading.Thread | None = field(default=None, init=False)
    _threads: dict[int, threading.Thread] = field(default_factory=dict, init=False)

    def begin_to_prepare(self) -> None:
        self._preparing = _started(self.prepare)

    def begin(self, position: int) -> None:
        """Begin with a launcher, for the configuration at a position. A second call does nothing."""
        if not self._threads:
            self._start(position, makes_launcher=True)

    def expect(self, position: int) -> None:
        """Begin to compile the configuration at a position, unless that was begun."""
        if position not in self._threads:
            self._start(position, makes_launcher=False)

    def wait(self, winner: int) -> None:
        """Wait for the launcher, and for the winner if it was begun."""
        for position, thread in self._threads.items():
            if position in (next(iter(self._threads)), winner):
                thread.join()

    def _start(self, position: int, makes_launcher: bool) -> None:
        def work() -> None:
            if self._preparing:
                self._preparing.join()
            self.make(position, makes_launcher)

        self._threads[position] = _started(work)


def _started(work: Callable[[], object]) -> threading.Thread:
    def carry_out() -> None:
        # The launch makes by itself what is missing, and raises what is wrong.
        with suppress(Exception):
            work()

    # Python waits for the thread at its end: a compiler that is cut off there ends the program with an error.
    thread = threading.Thread(target=carry_out, name="tunesmith-launch-ahead")
    thread.start()
    return thread
