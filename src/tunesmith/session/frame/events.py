"""What a session tells an observer while it runs; a report turns it into progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tunesmith import bench
from tunesmith.bench import Dispatched as Dispatched
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
    """A cell was measured and committed. `rate` is in `unit`s per second ("FLOP"), None if the cell did not run."""

    solution: Solution
    problem: Problem
    measurement: Measurement
    rate: float | None
    unit: str = "FLOP"


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step of the protocol is done; it took `seconds` of wall time. `type_name` is the problem type's if several
    types go through their steps together, whose seconds then overlap."""

    result: StepResult
    seconds: float
    type_name: str = ""


@dataclass(frozen=True, slots=True)
class DriftMeasured:
    """The anchor was measured again: `ratio` of its time now to its first; `alarm` when that is beyond noise."""

    ratio: float
    alarm: bool


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence for the person: a default that was taken, something ignored, something to look at."""

    text: str


@dataclass(frozen=True, slots=True)
class CompilingBegan:
    """A run that only compiles starts: so many `modules`, by `compiler`, for any device like `target`."""

    target: Target
    compiler: str
    modules: int


@dataclass(frozen=True, slots=True)
class DeviceState:
    """What one of several devices does: the share of the time in which it was `busy`, measurements a second since the
    run's first, and the problem that it measures."""

    device: str
    busy: float
    rate: float
    problem: str


@dataclass(frozen=True, slots=True)
class DevicesShown:
    """What all devices of a run do, about once a second."""

    devices: tuple[DeviceState, ...]


Event = (
    RunBegan
    | GroupBegan
    | BatchBegan
    | CellMeasured
    | StepEnded
    | DriftMeasured
    | Message
    | CompilingBegan
    | DevicesShown
    | bench.Event
)
Observer = Callable[[Event], None]


def nobody(event: Event) -> None:
    """An observer that ignores all events."""


class BatchMerger:
    """Passes events on to an observer. Within `together`, batches are reported as parts of the announced batch, which
    grows if more is done than was announced."""

    def __init__(self, observe: Observer) -> None:
        self._observe = observe
        self._whole: BatchBegan | None = None

    def __call__(self, event: Event) -> None:
        """Pass the event on. Within a whole batch, a part's `BatchBegan` becomes the whole with all done cells in
        `reused`; it is dropped if the part found nothing in the store."""
        if self._whole and isinstance(event, BatchBegan | CellMeasured):
            newly_done = event.reused if isinstance(event, BatchBegan) else 1
            done = self._whole.reused + newly_done
            self._whole = replace(self._whole, cells=max(self._whole.cells, done), reused=done)
            if isinstance(event, BatchBegan):
                if not newly_done:
                    return
                event = self._whole
        self._observe(event)

    @contextmanager
    def together(self, batch: BatchBegan) -> Iterator[None]:
        """Announce a whole batch; everything that is measured in this context is part of it."""
        self._whole = batch
        self._observe(batch)
        try:
            yield
        finally:
            self._whole = None
