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
    from tunesmith.models.stream_k_launch import Deciding

GRID, OPEN = "StreamKGrid", -1
"""The parameter of families that split tiles, and its value where it is left open."""


class StreamK:
    """What a device launches of solutions that can split tiles.

    `places` are folders with calibrations. They and the environment are looked at when the first solution needs it, and
    then stay as they were: a program that is running does not change its mind.
    """

    def __init__(self, target: Target, places: Collection[Path]) -> None:
        self._target, self._places = target, places

    def solutions(self, choice: Choice, problem: Problem) -> tuple[Solution, ...]:
        """What may be launched for a choice, the best first; of most families, and without a grid, what was chosen.

        A grid that was measured at this very size stays, and so does everything that it was measured with; one that was
        measured elsewhere says nothing here and is decided, like one that was left open. Where what is decided cannot
        run, whole tiles may; but what a variable asks for is launched or nothing is. Raises UserError for variables and
        calibration files that mean nothing.
        """
        tuned = choice.solution
        grid = tuned.configuration.get(GRID, 0)
        if grid == 0:
            return (tuned,)
        if grid != OPEN and choice.rule is Rule.EXACT and not self._deciding.override.used:
            return (tuned,)
        return self._deciding.solutions(tuned, problem)

    @cached_property
    def _deciding(self) -> Deciding:
        # A program whose logic has no such solution is spared the models.
        from tunesmith.models.stream_k_launch import Deciding

        return Deciding.of(self._target, self._places, os.environ, warnings.warn)
