"""Decides the grids that a tuning file leaves open, so that tuning measures what the library would launch.

The decision itself is in `launch_decisions.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path

from tunesmith.models.stream_k.launch_decisions import GRID, OPEN, LaunchDecisions
from tunesmith.records import Configuration, Problem, Solution, Target


class OpenGrids:
    """Decides open grids for one device. The environment and the calibrations in `folders` are read at the first open
    grid; `warn` gets a sentence when a calibration is missing or cannot be used."""

    def __init__(
        self, target: Target, folders: Collection[Path] = (), warn: Callable[[str], None] = lambda sentence: None
    ) -> None:
        self._target, self._folders, self._warn = target, folders, warn

    def decided(self, solution: Solution, problem: Problem) -> Solution:
        """The solution as it is launched for the problem; unchanged if its grid is not open. Raises UserError for
        invalid variables and calibrations."""
        return self._deciding.solutions(solution, problem)[0] if is_open(solution.configuration) else solution

    @cached_property
    def _deciding(self) -> LaunchDecisions:
        return LaunchDecisions.of(self._target, self._folders, os.environ, self._warn)


def is_open(config: Configuration) -> bool:
    return config.get(GRID) == OPEN


def with_arbitrary_grid(config: Configuration) -> Configuration:
    """The configuration with an arbitrary grid instead of an open one, for use where no problem is known."""
    return config | {GRID: 1} if is_open(config) else config
