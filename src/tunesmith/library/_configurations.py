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
    for name in _own(kind, kernel):
        if name not in solution.configuration:
            return ConfigurationMistake(f"{name} is missing", ("configuration",))
        try:
            _check_value(solution, name)
        except UserError as error:
            return ConfigurationMistake(error.what, ("configuration", name), error.remedy)
    return None


def _check_value(solution: Solution, name: str) -> None:
    """Raise UserError for a value that no tuning file may give a parameter of the solution's family.

    A file may give it the values of all families. The family's own are tried first: the others take long to import.
    """
    value = solution.configuration[name]
    try:
        _own(solution.type, solution.kernel)[name].check(value, name)
    except UserError:
        _all(solution.type)[name].check(value, name)


@lru_cache
def _own(kind: ProblemType, kernel: str) -> Any:
    return {parameter.name: parameter for parameter in KERNELS[kernel].space(kind)}


@lru_cache
def _all(kind: ProblemType) -> Any:
    return tuning_space(kind, hidden=True)


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
