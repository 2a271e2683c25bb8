"""A solution: a kernel family with a full configuration, for a problem type."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from ._configuration import Configuration, Value
from ._problem import ProblemType
from ._program import Module


@dataclass(frozen=True, slots=True)
class Solution:
    """What can be launched. `kernel` names the family in the registry; `configuration` has a value for every
    parameter."""

    type: ProblemType
    kernel: str
    configuration: Configuration

    def __str__(self) -> str:
        return f"{self.type.name} {self.kernel} {self.configuration.to_json()}"


def identity(modules: Sequence[Module], launch_time: Configuration) -> str:
    """A hash of what distinguishes solutions: their programs and their launch-time parameters.

    Two configurations with the same identity are one solution. Two configurations that differ only in a launch-time
    parameter share their programs, but are two solutions.
    """
    text = json.dumps([[module.digest() for module in modules], launch_time.to_json()])
    return hashlib.sha256(text.encode()).hexdigest()


def abbreviation(name: str) -> str:
    """Capitals and digits of a parameter's name, as Tensile abbreviates: NumLoadsCoalescedA -> NLCA."""
    return re.sub(r"[^A-Z0-9]", "", name) or name


def value_text(value: Value) -> str:
    match value:
        case bool():
            return str(int(value))
        case tuple():
            return "x".join(value_text(item) for item in value)
        case _:
            return str(value)


def solution_names(solutions: Sequence[Solution], always: Sequence[str] = ()) -> list[str]:
    """A short name for each solution: its type, then the parameters in `always` and those that differ between
    solutions.

    Unequal solutions get different names. Parameters are in alphabetical order, as in Tensile's kernel names.
    """

    def varies(name: str) -> bool:
        return len({value_text(s.configuration[name]) if name in s.configuration else None for s in solutions}) > 1

    parameters = sorted({name for solution in solutions for name in solution.configuration})
    shown = [name for name in parameters if name in always or varies(name)]
    kernels_differ = len({solution.kernel for solution in solutions}) > 1
    names = []
    for solution in solutions:
        parts = [solution.type.name, *([solution.kernel] if kernels_differ else [])]
        parts += [
            abbreviation(name) + value_text(solution.configuration[name])
            for name in shown
            if name in solution.configuration
        ]
        names.append("_".join(parts))
    return names
