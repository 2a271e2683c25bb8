"""The current library: the configuration that our logic chooses for a problem before this run decides."""

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
class CurrentChoice:
    """A configuration, and a note on where it comes from: a logic with its rule, or the default."""

    config: Configuration
    note: str


def current_choice(
    task: PortBlasTask, oracle: ConfigurationOracle, problem: Problem, folder: Path, complain: Callable[[str], None]
) -> CurrentChoice:
    """The choice of the task's logic, else of the logic in the run's folder, else the family's default configuration.

    `complain` gets a sentence about each logic in the folder that cannot be read. Raises UserError if the task names a
    logic that cannot be read, or that has nothing for this problem type and device.
    """
    target = oracle.target
    in_folder = map(Logic, readable(folder / LOGIC, complain))
    named = map(Logic.load, logic_files(task.logic)) if task.logic else None
    if choice := _first_legal_choice(named or in_folder, oracle, problem):
        return choice
    if task.logic:
        what = f"has nothing for {problem.type.name} on {target.name} ({target.api})"
        raise UserError(str(task.logic), what, "leave --logic out, or name one that was tuned for it")
    return CurrentChoice(task.default(target), "default, no logic yet")


def _first_legal_choice(logics: Iterable[Logic], oracle: ConfigurationOracle, problem: Problem) -> CurrentChoice | None:
    """The first legal choice of a logic for this problem type that was made on this device (`Origin.is_of`)."""
    for logic in logics:
        document = logic.document
        if not document.origin.is_of(oracle.target) or document.problem_type != problem.type:
            continue
        for choice in logic.candidates(problem.sizes, problem.leading):
            config = choice.solution.configuration
            if not oracle.rejections(config) and not oracle.rejections_for(config, problem):
                return CurrentChoice(config, f"logic, {choice.rule.value}")
    return None
