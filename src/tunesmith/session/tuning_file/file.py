"""A tuning file made ready for a run: read with the families' spaces, its device chosen, its policy filled in."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

from tunesmith.bench import Policy
from tunesmith.devices import APIS, asks_for_hidden, choose
from tunesmith.kernels import LANGUAGE, OPEN, chosen, families, languages, tuning_space
from tunesmith.protocol import Benchmark, Final, Fork, Phases, TuningFile, read_tuning_file
from tunesmith.records import ProblemType, Target, UserError
from tunesmith.spaces import Space


def ready(path: Path, max_size: int | None, selector: str | None) -> tuple[TuningFile, Target]:
    """A tuning file and the device to tune it on. A language that the file leaves open is one that the device runs."""
    file = read(path, max_size, selector)
    target = device_for(file, selector)
    return replace(file, groups=tuple(_settled(phases, target) for phases in file.groups)), target


def read(path: Path, max_size: int | None, selector: str | None) -> TuningFile:
    """Read a tuning file against the parameters of all families that the device may have; raises UserError."""
    if not path.is_file():
        raise UserError(str(path), "no such file", "give the path of a tuning file, such as examples/quickstart.yaml")
    space = partial(_tuned_space, hidden=asks_for_hidden(selector))
    return read_tuning_file(path, space, derived_names, max_size, chosen)


def _tuned_space(problem_type: ProblemType, hidden: bool) -> Space:
    """Raises LookupError where no kernel computes the operation: then there is nothing to tune."""
    if not families(problem_type.operation, hidden):
        operation = problem_type.operation
        raise LookupError(f"no kernel computes {operation} yet: `tunesmith characterize` takes it, tuning does not")
    return tuning_space(problem_type, hidden=hidden)


def derived_names(problem_type: ProblemType) -> frozenset[str]:
    """What a join may name beside parameters: everything that a family of the operation derives."""
    named: set[str] = set()
    for family in families(problem_type.operation):
        named.update(family.derived(family.space(problem_type).defaults))
    return frozenset(named)


def device_for(file: TuningFile, selector: str | None) -> Target:
    """The device to tune on: as asked, else the first usable one that runs a language which the file names."""
    return choose(selector, languages=sorted({name for phases in file.groups for name in _languages(phases)}))


def policy_of(file: TuningFile) -> Policy:
    """The bench's defaults with what the file says instead."""
    return replace(Policy(), **file.globals.policy())  # type: ignore[arg-type]  # names are the policy's, a test holds it


def _settled(phases: Phases, target: Target) -> Phases:
    if phases.start.get(LANGUAGE) != OPEN:
        return phases
    able = languages(phases.problem_type)
    language = next((name for name in APIS[target.api].languages if name in able), able[0])
    return replace(phases, start=phases.start | {LANGUAGE: language})


def _languages(phases: Phases) -> set[str]:
    named = {phases.start[LANGUAGE]} if LANGUAGE in phases.start else set()
    for step in phases.steps:
        if isinstance(step, Fork | Benchmark | Final):
            named.update(step.choices.values(LANGUAGE))
    return {str(name) for name in named if name != OPEN} | set(languages(phases.problem_type) if OPEN in named else ())
