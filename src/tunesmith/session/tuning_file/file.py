"""Reading a tuning file for a run: against the families' spaces, with its device and its bench policy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.devices import APIS, asks_for_hidden, choose
from tunesmith.formats.tensile.library.sizes import SUFFIXES, read_logic_sizes
from tunesmith.kernels import LANGUAGE, OPEN, families_meant, families_of, languages, tuning_space
from tunesmith.protocol import Benchmark, Final, Fork, Phases, TuningFile, read_tuning_file
from tunesmith.records import ProblemType, Target, UserError
from tunesmith.spaces import Space

LISTS = dict.fromkeys(SUFFIXES, read_logic_sizes)
"""Readers of the lists that are not CSV, by the suffixes of their names."""


def ready(path: Path, max_size: int | None, selector: str | Target | None) -> tuple[TuningFile, Target]:
    """A tuning file and the device to tune it on. If the file leaves the language open, it is set to one that the
    device runs."""
    file = read(path, max_size, selector)
    target = device_for(file, selector)
    return replace(file, groups=tuple(_with_language(phases, target) for phases in file.groups)), target


def read(path: Path, max_size: int | None, selector: str | Target | None) -> TuningFile:
    """Read a tuning file against the parameters of all families that the device may have; raises UserError."""
    if not path.is_file():
        raise UserError(str(path), "no such file", "give the path of a tuning file, such as examples/quickstart.yaml")
    space = partial(_tuned_space, hidden=asks_for_hidden(selector))
    return read_tuning_file(path, space, derived_names, max_size, families_meant, LISTS)


def _tuned_space(problem_type: ProblemType, hidden: bool) -> Space:
    """The space to tune. Raises LookupError if no kernel computes the operation."""
    if not families_of(problem_type.operation, hidden):
        operation = problem_type.operation
        raise LookupError(f"no kernel computes {operation} yet: `tunesmith characterize` takes it, tuning does not")
    return tuning_space(problem_type, hidden=hidden)


def derived_names(problem_type: ProblemType) -> frozenset[str]:
    """The names of derived values: a join may name these as well as parameters."""
    names: set[str] = set()
    for family in families_of(problem_type.operation):
        names.update(family.derived(family.space(problem_type).defaults))
    return frozenset(names)


def device_for(file: TuningFile, selector: str | Target | None) -> Target:
    """The device that `selector` names, else the first usable device that runs a language of the file."""
    return choose(selector, languages=sorted({name for phases in file.groups for name in _languages(phases)}))


def policy_of(file: TuningFile) -> Policy:
    """The bench's default policy, with the values that the file sets."""
    return replace(Policy(), **file.globals.policy())  # type: ignore[arg-type]  # names are the policy's, a test holds it


def _with_language(phases: Phases, target: Target) -> Phases:
    """The phases with an open language set to the first one that the device runs and a family has."""
    if phases.start.get(LANGUAGE) != OPEN:
        return phases
    offered = languages(phases.problem_type)
    language = next((name for name in APIS[target.api].languages if name in offered), offered[0])
    return replace(phases, start=phases.start | {LANGUAGE: language})


def _languages(phases: Phases) -> set[str]:
    """The languages that a size group names; if it leaves the language open, also all that its families have."""
    names = {phases.start[LANGUAGE]} if LANGUAGE in phases.start else set()
    for step in phases.steps:
        if isinstance(step, Fork | Benchmark | Final):
            names.update(step.choices.values(LANGUAGE))
    return {str(name) for name in names if name != OPEN} | set(languages(phases.problem_type) if OPEN in names else ())
