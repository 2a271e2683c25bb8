"""Stream-K at run time: grid and split tiles are decided when a problem is launched for the first time."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tunesmith.logic import Choice, Rule
from tunesmith.records import Problem, Solution, Target

if TYPE_CHECKING:
    from tunesmith.models.stream_k.launch import Deciding

GRID, WHOLE_TILES, OPEN = "StreamKGrid", 0, -1
"""The parameter of families that split tiles, its value for a work-group on each tile, and where it is left open."""

SCHEDULE, STREAM_K = "Schedule", "StreamK"
"""The parameter of families whose way to share tiles is compiled in, and its value where tiles are split."""

VARIABLE, CALIBRATION = "_STREAMK_", "_CALIBRATION"
"""Part of the names of all variables of the environment that change a grid, and the end of one that changes none."""


class StreamK:
    """What a device launches of solutions that can split tiles.

    `places` are folders with calibrations. They and the environment are looked at when the first solution needs it, and
    then stay as they were: a program that is running does not change its mind.
    """

    def __init__(self, target: Target, places: Collection[Path]) -> None:
        self._target, self._places = target, places
        self._unchanged: set[Solution] = set()

    def solutions(self, choice: Choice, problem: Problem) -> tuple[Solution, ...]:
        """What may be launched for a choice, the best first; of most families, and without a grid, what was chosen.

        A grid that was measured at this very size stays, and so does everything that it was measured with; one that was
        measured elsewhere says nothing here and is decided, like one that was left open. Where what is decided cannot
        run, whole tiles may; but what a variable asks for is launched or nothing is, also where whole tiles were tuned.
        Raises UserError for variables and calibration files that mean nothing.
        """
        tuned = choice.solution
        grid = tuned.configuration.get(GRID)
        if grid is None or (grid == WHOLE_TILES and not self._changes_whole_tiles(tuned)):
            return (tuned,)
        if grid != OPEN and choice.rule is Rule.EXACT and not self._deciding.override.used:
            return (tuned,)
        return self._deciding.solutions(tuned, problem)

    def _changes_whole_tiles(self, tuned: Solution) -> bool:
        """Whether variables ask for another launch than the tuned one, which has a work-group for each tile. Warns
        where they do, and the program cannot split tiles."""
        if not (self._has_variables and self._deciding.override.used):
            return False
        schedule = tuned.configuration.get(SCHEDULE, STREAM_K)
        if schedule == STREAM_K:
            return True
        if tuned not in self._unchanged:
            self._unchanged.add(tuned)
            names = " and ".join(self._deciding.override.used)
            what = f"{names} has no effect on a {tuned.kernel} of {tuned.type.name} with {SCHEDULE}: {schedule}"
            warnings.warn(f"{what}: tune it with {SCHEDULE}: {STREAM_K}, or unset the variable", stacklevel=2)
        return False

    @cached_property
    def _has_variables(self) -> bool:
        return any(VARIABLE in name and not name.endswith(CALIBRATION) for name in os.environ)

    @cached_property
    def _deciding(self) -> Deciding:
        # A program whose logic has no such solution is spared the models.
        from tunesmith.models.stream_k.launch import Deciding

        return Deciding.of(self._target, self._places, os.environ, warnings.warn)
