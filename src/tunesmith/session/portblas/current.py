"""The current library: what our logic chooses today for a problem, before anything new is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tunesmith.logic import Logic, logic_files
from tunesmith.records import Configuration, Problem, UserError
from tunesmith.session.frame.earlier import readable
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.outputs import LOGIC

from .task import PortBlasTask


@dataclass(frozen=True, slots=True)
class Current:
    """A configuration, and by which rule it is the current one."""

    config: Configuration
    note: str


def current(
    task: PortBlasTask, oracle: ConfigurationOracle, problem: Problem, folder: Path, complain: Callable[[str], None]
) -> Current:
    """What the task's logic chooses, else that of the run's folder, else the family's default configuration.

    What cannot be read in the run's folder is complained of. Raises UserError for a logic that was named and is none,
    or is of no such problem type on this device.
    """
    target = oracle.target
    own = map(Logic, readable(folder / LOGIC, complain))
    if found := _chosen(map(Logic.load, logic_files(task.logic)) if task.logic else own, oracle, problem):
        return found
    if task.logic:
        what = f"has nothing for {problem.type.name} on {target.name} ({target.api})"
        raise UserError(str(task.logic), what, "leave --logic out, or name one that was tuned for it")
    return Current(task.default(target), "default, no logic yet")


def _chosen(logics: Iterable[Logic], oracle: ConfigurationOracle, problem: Problem) -> Current | None:
    """The first choice that is legal here, of the logic that was made on this device."""
    for logic in logics:
        document = logic.document
        if not document.origin.is_of(oracle.target) or document.problem_type != problem.type:
            continue
        for choice in logic.candidates(problem.sizes, problem.leading):
            config = choice.solution.configuration
            if not oracle.rejections(config) and not oracle.rejections_for(config, problem):
                return Current(config, f"logic, {choice.rule.value}")
    return None
