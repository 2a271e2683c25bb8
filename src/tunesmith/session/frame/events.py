"""What a session tells an observer while it runs; a report turns it into progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tunesmith import bench
from tunesmith.protocol import StepResult
from tunesmith.records import Measurement, Problem, ProblemType, Solution, Target


@dataclass(frozen=True, slots=True)
class RunBegan:
    """A run starts on `target`; `steps` is how many measuring steps all its size groups have."""

    target: Target
    steps: int


@dataclass(frozen=True, slots=True)
class GroupBegan:
    """A size group of a problem type starts."""

    problem_type: ProblemType
    group: int


@dataclass(frozen=True, slots=True)
class BatchBegan:
    """Cells are about to be measured: `cells` in all, of which `reused` were in the store."""

    purpose: str
    cells: int
    reused: int


@dataclass(frozen=True, slots=True)
class CellMeasured:
    """A cell has its outcome, committed. `rate` is in `unit` a second ("FLOP"), None where it did not run."""

    solution: Solution
    problem: Problem
    measurement: Measurement
    rate: float | None
    unit: str = "FLOP"


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step of the protocol is done; `seconds` of wall time."""

    result: StepResult
    seconds: float


@dataclass(frozen=True, slots=True)
class DriftSeen:
    """The anchor was measured again: `ratio` of its time now to its first; `alarm` when that is beyond noise."""

    ratio: float
    alarm: bool


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence for the person: a default that was taken, something ignored, something to look at."""

    text: str


@dataclass(frozen=True, slots=True)
class CompilingBegan:
    """Nothing but compiling starts, for any device like `target`: so many modules, by `compiler`."""

    target: Target
    compiler: str
    modules: int


Event = RunBegan | GroupBegan | BatchBegan | CellMeasured | StepEnded | DriftSeen | Said | CompilingBegan | bench.Event
Observer = Callable[[Event], None]


def nobody(event: Event) -> None:
    """The observer who does not listen."""


class Batches:
    """Passes events on to an observer. The pieces of a batch that was announced as a whole count as that batch."""

    def __init__(self, observe: Observer) -> None:
        self._observe = observe
        self._whole: BatchBegan | None = None

    def __call__(self, event: Event) -> None:
        """What a piece found in the store, the observer has to be told; what is measured, it counts itself."""
        if self._whole and isinstance(event, BatchBegan | CellMeasured):
            found = event.reused if isinstance(event, BatchBegan) else 1
            self._whole = replace(self._whole, reused=self._whole.reused + found)
            if isinstance(event, BatchBegan):
                if not found:
                    return
                event = self._whole
        self._observe(event)

    @contextmanager
    def together(self, batch: BatchBegan) -> Iterator[None]:
        """Announce a batch; whatever is measured within counts as it."""
        self._whole = batch
        self._observe(batch)
        try:
            yield
        finally:
            self._whole = None
