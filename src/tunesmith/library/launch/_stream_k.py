"""Stream-K at run time: decides the grid and the split tiles when a problem is launched for the first time."""

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
    from tunesmith.models.stream_k.launch_decisions import LaunchDecisions

GRID, WHOLE_TILES, OPEN = "StreamKGrid", 0, -1
"""The grid parameter of families that split tiles, its value for one work-group on each tile, and its value for a grid
that is left open."""

SCHEDULE, STREAM_K = "Schedule", "StreamK"
"""The schedule parameter of families whose schedule is compiled in, and its value for a schedule that splits tiles."""

VARIABLE, CALIBRATION = "_STREAMK_", "_CALIBRATION"
"""A part of the names of all environment variables that change a grid, and the end of the name of a variable that does
not."""

KEPT = (Rule.EXACT, Rule.PREDICTED)
"""The rules of choices whose time is that of one grid."""


class StreamK:
    """Decides what is launched on a device for solutions that can split tiles.

    `folders` may hold calibrations. The folders and the environment are read when the first solution needs them, and
    not again: decisions do not change while a program runs.
    """

    def __init__(self, target: Target, folders: Collection[Path]) -> None:
        self._target, self._folders = target, folders
        self._unchanged: set[Solution] = set()

    def solutions(self, choice: Choice, problem: Problem) -> tuple[Solution, ...]:
        """The solutions that may be launched for a choice, the best first. A solution without a grid is returned as it
        is.

        A grid that was measured at this very size is kept, with everything that it was measured with, and so is one
        whose time a choice model expects. Any other grid is decided here. If the decided grid cannot run, whole tiles
        are next. But if an environment variable asks for a grid, nothing else is launched, even if whole tiles were
        tuned.
        Raises UserError for invalid variables and calibration files.
        """
        tuned = choice.solution
        grid = tuned.configuration.get(GRID)
        if grid is None or (grid == WHOLE_TILES and not self._changes_whole_tiles(tuned)):
            return (tuned,)
        if grid != OPEN and choice.rule in KEPT and not self._deciding.override.used:
            return (tuned,)
        return self._deciding.solutions(tuned, problem)

    def is_asked_for(self, solution: Solution) -> bool:
        """Whether environment variables ask for a grid of this solution, so that nothing else may be launched."""
        return GRID in solution.configuration and self._has_variables and bool(self._deciding.override.used)

    def _changes_whole_tiles(self, tuned: Solution) -> bool:
        """Whether environment variables change the launch of a solution that was tuned with a work-group on each tile.
        Warns if variables are set but the program cannot split tiles."""
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
    def _deciding(self) -> LaunchDecisions:
        # Imported here: a program whose logic has no such solution does not load the models.
        from tunesmith.models.stream_k.launch_decisions import LaunchDecisions

        return LaunchDecisions.of(self._target, self._folders, os.environ, warnings.warn)
