"""Passing cells to the bench: a measure's races, and on several devices what several questions will ask for at once.

What is measured ahead is committed like everything else. Each question that comes later is then answered by the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tunesmith.bench import Batch, Bench, Job, Race
from tunesmith.protocol import Cell
from tunesmith.records import Configuration, Measurement, Problem
from tunesmith.store import FULL, RACE, RECHECK

from . import events
from .many_devices import Confirmation, ManyDevices
from .order import CellRace

if TYPE_CHECKING:
    from .measure import RecordedMeasure


@dataclass(frozen=True)
class InterleavedCells:
    """Cells of one problem under the round in which they are interleaved. `known` of them have samples already."""

    cells: tuple[Cell, ...]
    round: str
    known: int
    asked: Confirmation


@dataclass(frozen=True)
class Screening:
    """A question to `RecordedMeasure.screen_cells` that a plan will ask later."""

    measure: RecordedMeasure
    groups: Sequence[Sequence[Cell]]
    racing: bool = False


Finalists = tuple["RecordedMeasure", Sequence[Configuration], Sequence[Problem]]
"""A question to `RecordedMeasure.confirm`: the configurations to interleave, on each of these problems."""


class Questions:
    """What a measure asks the bench: here at once. A subclass may let questions of several measures come together."""

    come_together = False

    def measure_races(self, measure: RecordedMeasure, races: Sequence[CellRace], round_: str, racing: bool) -> None:
        """Measure and commit the races of a measure. Raises OutOfBudgetError."""
        run_races(measure.bench, [(measure, races)], round_, racing)

    def interleave(self, asked: Sequence[Finalists]) -> None:
        """Measure what `RecordedMeasure.confirm` will be asked about, if there are several devices."""
        interleave_ahead(asked)


def first_round(racing: bool) -> str:
    """The store's name of the round of first times."""
    return RACE if racing else FULL


def run_races(
    bench: Bench, asked: Sequence[tuple[RecordedMeasure, Sequence[CellRace]]], round_: str, racing: bool
) -> None:
    """Measure and commit the races of each measure, all by one request to the bench.

    Results that came together are committed together. A second result for a cell (it broke another's worker) has a
    round of its own. Raises OutOfBudgetError.
    """
    owners = {measure.key(cell): (measure, cell) for measure, races in asked for race in races for cell in race.cells}
    races = tuple(
        Race(_jobs(measure, race.cells), race.rivals, measure.purpose) for measure, own in asked for race in own
    )
    done: set[str] = set()
    for results in bench.run_together(Batch(races, racing)):
        together: dict[tuple[int, str], tuple[RecordedMeasure, list[tuple[Cell, Measurement]]]] = {}
        for job, measurement in results:
            measure, cell = owners[job.key]
            name = round_ + RECHECK if job.key in done else round_
            together.setdefault((id(measure), name), (measure, []))[1].append((cell, measurement))
            done.add(job.key)
        for (_, name), (measure, measured) in together.items():
            measure.commit(measured, name)
        for measure, _ in together.values():
            measure.check_budget()


def _jobs(measure: RecordedMeasure, cells: Sequence[Cell]) -> tuple[Job, ...]:
    """The jobs of cells, one for each key."""
    return tuple({measure.key(cell): measure.job(cell) for cell in cells}.values())


def run_announced(asked: Sequence[tuple[RecordedMeasure, Sequence[CellRace]]], round_: str, racing: bool) -> None:
    """`run_races` of several measures, announced as one batch."""
    if cells := sum(len(race.cells) for _, races in asked for race in races):
        first, _ = asked[0]
        others = f", {len(asked)} types together" if len(asked) > 1 else ""
        first.observe(events.BatchBegan(first.purpose + others, cells, 0))
        run_races(first.bench, asked, round_, racing)


def screen_ahead(screenings: Sequence[Screening]) -> None:
    """Measure what screenings of several problem types will ask for, on all devices at once.

    Nothing is measured if there is one device, since it would only measure the same later. Raises OutOfBudgetError.
    """
    for racing in (False, True):
        asked = [
            (screening.measure, screening.measure.missing(screening.groups, racing))
            for screening in screenings
            if screening.racing is racing and isinstance(screening.measure.bench, ManyDevices)
        ]
        run_announced(asked, first_round(racing), racing)


def interleave_ahead(asked: Sequence[Finalists]) -> None:
    """Measure what `RecordedMeasure.confirm` will be asked about, each problem on one device, all devices at once.

    Nothing is measured if there is one device. Raises OutOfBudgetError.
    """
    waiting: dict[tuple[int, str], tuple[RecordedMeasure, InterleavedCells]] = {}
    for measure, configs, problems in asked:
        if not isinstance(measure.bench, ManyDevices):
            continue
        for problem in problems:
            cells = [(config, problem) for config in configs]
            interleaved = measure.unconfirmed(cells, until_clear=len(problems) == 1)
            if interleaved.known < len(interleaved.cells):
                waiting.setdefault((id(measure), interleaved.round), (measure, interleaved))
    if not waiting:
        return
    questions = list(waiting.values())
    first, _ = questions[0]
    bench = first.bench
    assert isinstance(bench, ManyDevices)
    first.check_budget()
    first.observe(events.BatchBegan(f"{first.purpose}, finalists", sum(len(i.cells) for _, i in questions), 0))
    for index, measured in bench.interleave_many([interleaved.asked for _, interleaved in questions]):
        measure, interleaved = questions[index]
        measure.commit(list(zip(interleaved.cells, measured, strict=True)), interleaved.round)
        measure.ahead |= {(measure.key(cell), interleaved.round) for cell in interleaved.cells}
        measure.check_budget()
