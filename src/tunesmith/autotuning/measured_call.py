"""Measures a call's configurations: the run is that of a tuning file, in the kernel's folder, which keeps all times."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunesmith.problems.custom import caller
from tunesmith.records import Outcome, Solution, UserError, Value
from tunesmith.session import RunOutcome, TuningPlan
from tunesmith.session import tune as tune_file
from tunesmith.session.frame import events

from .call_problem import CallProblem
from .call_reference import CallReference, ReferenceResult, contents_of
from .callables import in_time
from .choice import Machine
from .current_device import target_of
from .launch_ahead import LaunchAhead
from .tuning import progress

REFERENCE_SECONDS = 600.0
"""How long a user's reference may take."""


@dataclass(frozen=True)
class MeasuredCall:
    """The winner, and the configurations that could not be told from it, as positions in the problem's list.

    `seconds` and `failures` have the configurations that ran right, and the others with the reason. `measured` counts
    those that were not in the store. The finalists among all are then measured again, side by side.
    """

    winner: int
    ties: tuple[int, ...] = ()
    seconds: Mapping[int, float] = field(default_factory=dict)
    failures: Mapping[int, str] = field(default_factory=dict)
    measured: int = 0


@dataclass(frozen=True)
class CallSettings:
    """How a call is measured. `settings` are GlobalParameters of a tuning file. `ahead` begins when the
    first configuration is compiled."""

    reference: CallReference | None = None
    settings: Mapping[str, Value] = field(default_factory=dict)
    quiet: bool = False
    ahead: LaunchAhead | None = None


def measure_call(
    problem: CallProblem,
    arguments: Mapping[str, Any],
    folder: Path,
    machine: Machine,
    how: CallSettings,
    location: str,
) -> MeasuredCall:
    """Measure the listed configurations that the store in `folder` lacks, and choose. Raises UserError if none ran
    right, with the reasons."""
    path = written(problem, folder / "source" / problem.name, how.settings)
    with progress(how.quiet) as observer, _known_to_workers(problem, arguments, how, location):
        screening = ScreeningObserver(observer, *_told_ahead(how.ahead, problem))
        try:
            # The winner is launched through Triton, so nobody loads the logic.
            device = target_of(machine)
            outcome = tune_file(path, folder, device=device, order="file", checks_logic=False, observe=screening)
        except UserError as error:
            raise at_the_call(error, path.parent, location) from error
    measured = chosen(problem, outcome, screening.measured, location)
    if how.ahead:
        how.ahead.wait(measured.winner)
    return measured


def _told_ahead(ahead: LaunchAhead | None, problem: CallProblem) -> Iterator[Callable[[Solution], None]]:
    """What is told of the first solution that is compiled, and of the one that leads."""
    if ahead:
        yield lambda compiled: ahead.begin(_position(problem, compiled))
        yield lambda leading: ahead.expect(_position(problem, leading))


@contextmanager
def _known_to_workers(
    problem: CallProblem, arguments: Mapping[str, Any], how: CallSettings, location: str
) -> Iterator[None]:
    """A context in which the processes of a run find the arrays' contents, and the user's reference if there is one."""
    arrays = [array for array in problem.arrays if array.has_contents]
    with ExitStack() as opened:
        opened.callback(caller.forget, problem.reference_key)
        for array in arrays:
            # Copied from the device while the configurations are compiled.
            key = problem.contents_key(array)
            opened.callback(caller.forget, key)
            caller.promise_contents(key, contents_of(array))
        if how.reference:
            by_user, what = ReferenceResult(problem, how.reference, arguments), "the reference"
            caller.register_reference(
                problem.reference_key,
                lambda sizes, arrays: in_time(lambda: by_user(sizes, arrays), REFERENCE_SECONDS, what, location),
            )
        yield


def at_the_call(error: UserError, folder: Path, location: str) -> UserError:
    """An error of a run, told at the user's call if it was found in the files that were made for the run."""
    if isinstance(error.__cause__, UserError):
        return error.__cause__
    return UserError(location, error.what, error.remedy) if error.location.startswith(str(folder)) else error


@dataclass
class ScreeningObserver:
    """Passes events on, counts the cells of the run's first batch, the screening, that were not in the store, and tells
    of each solution that is compiled, and of the one that leads when the finalists are compared."""

    observe: events.Observer
    compiled: Callable[[Solution], None] = lambda solution: None
    leads: Callable[[Solution], None] = lambda solution: None
    measured: int = field(default=0, init=False)
    _batches: int = field(default=0, init=False)
    _leading: tuple[float, Solution] | None = field(default=None, init=False)

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.BatchBegan):
            self._batches += 1
            if self._batches == 1:
                self.measured = event.cells - event.reused
            elif self._leading:
                self.leads(self._leading[1])
        elif isinstance(event, events.Dispatched):
            self.compiled(event.solution)
        elif isinstance(event, events.CellMeasured) and event.measurement.ok and event.measurement.estimate:
            seconds = event.measurement.estimate.seconds
            if self._leading is None or seconds < self._leading[0]:
                self._leading = seconds, event.solution
        self.observe(event)


def chosen(problem: CallProblem, outcome: RunOutcome[TuningPlan], measured: int, location: str) -> MeasuredCall:
    """The decision of a run, by positions in the problem's list. Raises UserError if nothing ran right."""
    seconds, failures, decided = dict[int, float](), dict[int, str](), list[int]()
    for table in (group.table for group in outcome.plan.groups if group.table):
        for solutions in table.decided.values():
            decided += positions(problem, solutions)
        for position, solution in zip(positions(problem, table.solutions), table.solutions, strict=True):
            cell = table.cell(table.problems[0], solution)
            if cell.time:
                seconds[position] = cell.time.seconds
            elif cell.outcome is not Outcome.OK:
                failures[position] = ": ".join(filter(None, (cell.outcome.value, cell.reason, cell.detail)))
    for position in set(range(len(problem.listed))) - seconds.keys() - failures.keys():
        failures[position] = "rejected: the device cannot run it"
    if not decided:
        shown = " | ".join(dict.fromkeys([*failures.values(), *outcome.look_at])) or "nothing was measured"
        raise UserError(location, f"no configuration of {problem.entry} ran right: {shown}", "mend the kernel")
    return MeasuredCall(decided[0], tuple(decided[1:]), seconds, failures, measured)


def _position(problem: CallProblem, solution: Solution) -> int:
    return positions(problem, [solution])[0]


def positions(problem: CallProblem, solutions: Sequence[Solution]) -> list[int]:
    """Where the configurations of solutions stand in the problem's list."""
    listed = [tuple(member.items()) for member in problem.listed]
    names = list(problem.listed[0])
    return [listed.index(tuple((name, solution.configuration[name]) for name in names)) for solution in solutions]


def written(problem: CallProblem, folder: Path, settings: Mapping[str, Value]) -> Path:
    """Write the tuning file with the files that it names; its path."""
    head = f"GlobalParameters: {json.dumps(dict(settings))}\n" if settings else ""
    texts = {
        f"{problem.name}.py": problem.source,
        f"{problem.name}.kernel.yaml": problem.description,
        f"{problem.name}.yaml": head + problem.tuning_file,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder / f"{problem.name}.yaml"
