"""Checks the solutions of files against the kernels that are installed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from tunesmith.kernels import KERNELS, tuning_space
from tunesmith.logic import Logic, location_in
from tunesmith.problems import OPERATIONS
from tunesmith.records import ProblemType, Solution, UserError

REMEDY = "give a file that `tunesmith tune` wrote, with the same version of tunesmith"


@dataclass(frozen=True, slots=True)
class ConfigurationMistake:
    """Why a solution cannot be used, and the keys that lead to the mistake in its entry of a file."""

    what: str
    keys: tuple[str, ...]
    remedy: str = REMEDY


def mistake_in(solution: Solution) -> ConfigurationMistake | None:
    """The first mistake: an unknown kernel, or parameters that a tuning file may not have. None if there is none. The
    operation must be known."""
    kind, kernel = solution.type, solution.kernel
    if kernel not in KERNELS or KERNELS[kernel].operation != kind.operation:
        return ConfigurationMistake(f"there is no kernel {kernel!r} of {kind.operation}", ("kernel",))
    allowed = _allowed(kind)
    for name in _names(kernel, kind):
        if name not in solution.configuration:
            return ConfigurationMistake(f"{name} is missing", ("configuration",))
        try:
            allowed[name].check(solution.configuration[name], name)
        except UserError as error:
            return ConfigurationMistake(error.what, ("configuration", name), error.remedy)
    return None


@lru_cache
def _allowed(kind: ProblemType) -> Any:
    return tuning_space(kind, hidden=True)


@lru_cache
def _names(kernel: str, kind: ProblemType) -> tuple[str, ...]:
    return tuple(parameter.name for parameter in KERNELS[kernel].space(kind))


def check_configurations(file: Path, logic: Logic) -> None:
    """Raise UserError for a solution of a logic that has a mistake, and for an unknown operation."""
    kind = logic.document.problem_type
    if kind.operation not in OPERATIONS:
        what = f"there is no operation {kind.operation}; there are {', '.join(OPERATIONS)}"
        location = location_in(file, "problem-type", "operation")
        raise UserError(location, what, "install the distribution that has it")
    for number, named in enumerate(logic.document.solutions):
        if mistake := mistake_in(named.solution):
            location = location_in(file, "solutions", number, *mistake.keys)
            raise UserError(location, f"solution {named.name}: {mistake.what}", mistake.remedy)
