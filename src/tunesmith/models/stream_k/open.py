"""Grids that a tuning file leaves open: decided for what is measured as the library decides for what it launches."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path

from tunesmith.models.stream_k.launch import GRID, OPEN, Deciding
from tunesmith.records import Configuration, Problem, Solution, Target


class OpenGrids:
    """Of one device. Calibrations in `places` and the environment are looked at when the first grid is open."""

    def __init__(
        self, target: Target, places: Collection[Path] = (), say: Callable[[str], None] = lambda sentence: None
    ) -> None:
        self._target, self._places, self._say = target, places, say

    def decided(self, solution: Solution, problem: Problem) -> Solution:
        """The solution as it is launched for it. Raises UserError for variables and calibrations that mean nothing."""
        return self._deciding.solutions(solution, problem)[0] if is_open(solution.configuration) else solution

    @cached_property
    def _deciding(self) -> Deciding:
        return Deciding.of(self._target, self._places, os.environ, self._say)


def is_open(config: Configuration) -> bool:
    return config.get(GRID) == OPEN


def with_a_grid(config: Configuration) -> Configuration:
    """With any grid in the place of an open one, where no problem is known to decide for."""
    return config | {GRID: 1} if is_open(config) else config
