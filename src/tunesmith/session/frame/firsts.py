"""The first cell that runs of a problem without a reference. The others' results must agree with that cell's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tunesmith.problems import OPERATIONS
from tunesmith.protocol import Cell
from tunesmith.records import Measurement, Problem

from .ahead import first_round
from .order import CellRace

if TYPE_CHECKING:
    from .measure import RecordedMeasure


def with_firsts(
    measure: RecordedMeasure, cells: Sequence[Cell], known: dict[Cell, Measurement], racing: bool
) -> dict[Cell, Measurement]:
    """What is known of the cells once each problem that needs one has its first cell that runs (`measure.firsts`).

    Cells are tried in their order, each by itself, since the others need the result. The others' programs are compiled
    meanwhile.
    """
    waiting: dict[Problem, list[Cell]] = {}
    for cell in cells:
        if cell[1] not in measure.firsts and OPERATIONS[cell[1].type.operation].agreement(cell[1]):
            waiting.setdefault(cell[1], []).append(cell)
    for problem, own in waiting.items():
        unknown = [measure.job(cell) for cell in own if cell not in known]
        if unknown:
            measure.bench.prepare(unknown)
        for cell in own:
            if cell not in known:
                measure.questions.measure_races(measure, [CellRace((cell,))], first_round(racing), racing=False)
            measured = measure.lookup([cell], racing).get(cell)
            if measured and measured.ok:
                measure.firsts[problem] = cell
                break
    return measure.lookup(cells, racing) if waiting else known
