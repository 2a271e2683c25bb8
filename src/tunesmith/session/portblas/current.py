"""The current library: what our logic chooses today for a problem, before anything new is known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tunesmith.logic import Logic, logic_files
from tunesmith.records import Configuration, Problem, UserError
from tunesmith.session.frame.logic import is_for
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.outputs import LOGIC

from .task import PortBlasTask


@dataclass(frozen=True, slots=True)
class Current:
    """A configuration, and by which rule it is the current one."""

    config: Configuration
    note: str


def current(task: PortBlasTask, oracle: ConfigurationOracle, problem: Problem, folder: Path) -> Current:
    """What the task's logic chooses, else that of the run's folder, else the family's default configuration.

    Raises UserError for a logic that was named and is none, or is of no such problem type on this device.
    """
    target, place = oracle.target, task.logic or folder / LOGIC
    found = _chosen(place, oracle, problem) if task.logic or place.is_dir() else None
    if found:
        return found
    if task.logic:
        what = f"has nothing for {problem.type.name} on {target.name} ({target.api})"
        raise UserError(str(task.logic), what, "leave --logic out, or name one that was tuned for it")
    return Current(task.default(target), "default, no logic yet")


def _chosen(place: Path, oracle: ConfigurationOracle, problem: Problem) -> Current | None:
    """The first choice that is legal here, of the logic that was made on this device."""
    for logic in map(Logic.load, logic_files(place)):
        if not is_for(logic.document, oracle.target, problem.type):
            continue
        for choice in logic.candidates(problem.sizes, problem.leading):
            config = choice.solution.configuration
            if not oracle.rejections(config) and not oracle.rejections_for(config, problem):
                return Current(config, f"logic, {choice.rule.value}")
    return None
