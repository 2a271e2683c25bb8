"""What a person sees while nothing but compiling goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tunesmith.bench import Compiled
from tunesmith.session.frame import events

from .progress import QUIET_SECONDS

PATIENCE = 2.0
"""Seconds that nothing is shown for."""


class CompilingReport:
    """Observes a compilation: after a while a bar on a terminal, elsewhere a line now and then. A context manager."""

    def __init__(self, console: Console, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._quiet, self._clock = console, quiet, clock
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=None)
        self._began = self._last_line = clock()
        self._modules = self._done = self._failed = 0
        self._title = ""

    def __enter__(self) -> CompilingReport:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._bar.live.is_started:
            self._bar.stop()

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.CompilingBegan(target=target, compiler=compiler, modules=modules):
                self._title, self._modules = f"{compiler} for {target.architecture}", modules
                self._bar.update(self._task, total=modules, description=self._title)
            case Compiled(reason=reason):
                self._done += 1
                self._failed += bool(reason)
                self._show()

    def _show(self) -> None:
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.update(self._task, completed=self._done, description=self._title + failed)
        now = self._clock()
        if self._quiet or now - self._began < PATIENCE:
            return
        if self._console.is_terminal:
            self._bar.start()
        elif now - self._last_line > QUIET_SECONDS:
            self._console.print(f"{self._title}: {self._done}/{self._modules}{failed}", highlight=False)
            self._last_line = now
