"""How soon does a tuning run measure its best candidates, by the order in which it measures?

    python benchmarks/measuring_order.py FILE FOLDER [--device CPU] [--json RESULT.json]

FOLDER is the result of a finished `tunesmith tune FILE -o FOLDER`. The run is replayed from its store, with the cells
of each step in every order: the file's and each policy's. The output for each step is the number of cells; the number
measured until the step's best configuration is measured; and the number until one that takes at most 5 % longer is. A
configuration is measured when the last of its cells is. The best configuration has the least geometric mean over the
step's sizes, among all lineages. For the final step, the counts go until every size has its best cell, or a cell within
5 %.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tunesmith.models.intensity.policies import POLICIES
from tunesmith.protocol import Cell
from tunesmith.records import Configuration, Estimate, Problem
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.frame.order import CellRace, in_order
from tunesmith.session.frame.run import carry_out
from tunesmith.session.tuning_file.file import ready
from tunesmith.session.tuning_file.order import AS_IN_FILE, rank_of
from tunesmith.session.tuning_file.tuning import TuningPlan

NEAR = 1.05


class ScreenedStep:
    """A step's cells in the file's order, by lineage, with their times."""

    def __init__(self, measure: RecordedMeasure, groups: Sequence[Sequence[Cell]], times: Mapping[Cell, Estimate]):
        self.name, self.oracle = measure.purpose, measure.oracle
        self.groups = [[cell for cell in group if cell in times] for group in groups]
        self.seconds = {cell: times[cell].seconds for group in self.groups for cell in group}

    def ordered(self, order: str) -> list[Cell]:
        races = [CellRace(tuple(group)) for group in self.groups if group]
        races_in_order = in_order(races, self.oracle, rank_of(order, self.oracle))
        return list(dict.fromkeys(cell for race in races_in_order for cell in race.cells))

    def counts(self, order: str) -> tuple[int, int]:
        """Cells measured until the best configuration is, and until a configuration within 5 % is."""
        cells = self.ordered(order)
        is_final = self.name.endswith("Final")
        contests = (
            [[cell for cell in cells if cell[1] == problem] for problem in self.problems] if is_final else [cells]
        )
        positions = [self._until(cells, contest) for contest in contests]
        return max(best for best, _ in positions), max(near for _, near in positions)

    @property
    def problems(self) -> list[Problem]:
        return list(dict.fromkeys(problem for _, problem in self.seconds))

    def _until(self, cells: Sequence[Cell], contest: Sequence[Cell]) -> tuple[int, int]:
        times: dict[Configuration, list[float]] = {}
        last: dict[Configuration, int] = {}
        for cell in contest:
            times.setdefault(cell[0], []).append(math.log(self.seconds[cell]))
            last[cell[0]] = cells.index(cell) + 1
        covered = max(map(len, times.values()))
        means = {config: sum(logs) / covered for config, logs in times.items() if len(logs) == covered}
        best = min(means.values())
        near = [last[config] for config, mean in means.items() if mean <= best + math.log(NEAR)]
        return last[min(means, key=lambda config: means[config])], min(near)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    steps = replayed(options.file, options.folder, options.device)
    orders = (AS_IN_FILE, *POLICIES)
    rows = [
        {"step": step.name, "cells": len(step.seconds), **{order: step.counts(order) for order in orders}}
        for step in steps
    ]
    rows.append(
        {
            "step": "all",
            "cells": sum(len(step.seconds) for step in steps),
            **{order: tuple(map(sum, zip(*(step.counts(order) for step in steps), strict=True))) for order in orders},
        }
    )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    shown = Table("step", "cells", *(f"{order}: best, near" for order in orders), box=None)
    for row in rows:
        shown.add_row(
            *(", ".join(map(str, value)) if isinstance(value, tuple) else str(value) for value in row.values())
        )
    Console().print(shown)


def replayed(path: Path, folder: Path, device: str | None) -> list[ScreenedStep]:
    """The steps of a finished run. Measurements that the folder lacks are made."""
    found = ready(path, None, device)
    file, target = found.file, found.target
    screened: list[ScreenedStep] = []
    screen = RecordedMeasure.screen_cells

    def watched(measure: RecordedMeasure, groups: Sequence[Sequence[Cell]], racing: bool) -> object:
        table = screen(measure, groups, racing)
        screened.append(ScreenedStep(measure, groups, table.cells))
        return table

    RecordedMeasure.screen_cells = watched  # type: ignore[assignment,method-assign]
    carry_out(TuningPlan(path, file, target), folder)
    return [step for step in screened if step.seconds]


if __name__ == "__main__":
    main()
