"""Parts of a plan that are carried out together, so that on several devices one part's work fills another's pauses.

A part is written as if it were alone. Each part has a thread, of which only one runs at any moment: a part runs until
it asks for measurements, then the next part runs. When all parts wait, what they ask for is measured at once. So a part
needs no locks, and the same answers lead to the same questions in the same order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .ahead import Finalists, Questions, interleave_ahead, run_announced
from .order import CellRace

if TYPE_CHECKING:
    from .measure import RecordedMeasure

Part = Callable[[], None]


class EndedEarlyError(Exception):
    """Raised in a part that waits for measurements when the whole is ended by another part's exception."""


@dataclass(eq=False)
class _Running:
    """A part's thread. `races` and `finalists` are what it asks for. It `rests` before its first turn, and while it
    waits for what it asks for."""

    thread: threading.Thread
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    races: tuple[RecordedMeasure, Sequence[CellRace], str, bool] | None = None
    finalists: Sequence[Finalists] = ()
    error: BaseException | None = None
    rests: bool = True
    ended: bool = False


class Together(Questions):
    """Carries out parts. While it does, it is the `questions` of their measures."""

    come_together = True

    def __init__(self) -> None:
        self._back = threading.Semaphore(0)
        self._parts: list[_Running] = []
        self._is_over = False

    def carry_out(self, parts: Sequence[Part]) -> None:
        """Returns when all parts have ended. Raises the first exception of a part or of measuring; the other parts have
        ended by then, too."""
        self._parts = [self._begun(part) for part in parts]
        try:
            while waiting := [part for part in self._parts if not part.ended]:
                for part in waiting:
                    self._let_go_on(part)
                self._answer(waiting)
        finally:
            self._end()

    def measure_races(self, measure: RecordedMeasure, races: Sequence[CellRace], round_: str, racing: bool) -> None:
        part = self._own()
        part.races = measure, races, round_, racing
        self._wait(part)

    def interleave(self, asked: Sequence[Finalists]) -> None:
        part = self._own()
        part.finalists = asked
        self._wait(part)

    def _own(self) -> _Running:
        """The part whose thread calls."""
        return next(part for part in self._parts if part.thread is threading.current_thread())

    def _begun(self, part: Part) -> _Running:
        def work() -> None:
            running.turn.acquire()
            running.rests = False
            try:
                if not self._is_over:
                    part()
            except BaseException as error:
                running.error = error
            finally:
                running.ended = True
                self._back.release()

        running = _Running(threading.Thread(target=work, name="tunesmith-part", daemon=True))
        running.thread.start()
        return running

    def _let_go_on(self, part: _Running) -> None:
        """Let a part run until it asks or ends. Raises what ended it."""
        part.turn.release()
        self._back.acquire()
        if part.error is not None:
            raise part.error

    def _wait(self, part: _Running) -> None:
        part.rests = True
        self._back.release()
        part.turn.acquire()
        part.rests = False
        if self._is_over:
            raise EndedEarlyError

    def _answer(self, waiting: Sequence[_Running]) -> None:
        """Measure what the waiting parts ask for: races first, and those of one kind by one request."""
        by_kind: dict[tuple[str, bool], list[tuple[RecordedMeasure, Sequence[CellRace]]]] = {}
        finalists: list[Finalists] = []
        for part in waiting:
            if part.races:
                measure, races, round_, racing = part.races
                by_kind.setdefault((round_, racing), []).append((measure, races))
            finalists += part.finalists
            part.races, part.finalists = None, ()
        for (round_, racing), asked in by_kind.items():
            run_announced(asked, round_, racing)
        interleave_ahead(finalists)

    def _end(self) -> None:
        """Let the parts that have not ended do so. One may still be at work, if the caller was interrupted."""
        self._is_over = True
        for part in self._parts:
            while not (part.rests or part.ended):
                self._back.acquire(timeout=0.1)
            part.turn.release()
            part.thread.join()
        self._parts = []
