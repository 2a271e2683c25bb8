"""A tuning run, from a file to library logic. The same call goes on with a run that was stopped."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import tunesmith
from tunesmith.bench import Bench, Drift
from tunesmith.bench.faults import reached
from tunesmith.kernels import KERNELS
from tunesmith.logic import FinalTable, Logic, Origin, write_logic
from tunesmith.logic.build import build
from tunesmith.protocol import Phases, Result, StepResult, TuningFile, run, step_names
from tunesmith.records import Problem, ProblemType, Solution, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.drift import Anchor
from tunesmith.session.frame.health import HealthWatch
from tunesmith.session.frame.logic_check import watch
from tunesmith.session.frame.measure import Ledger, RecordedMeasure
from tunesmith.session.frame.oracle import FamilyJudge
from tunesmith.session.frame.outputs import group_name, step_record, table_of, write_step
from tunesmith.session.frame.record import booked, run_start
from tunesmith.session.stream_k.open import OpenGrids, with_a_grid
from tunesmith.store import FILE_NAME, RunState, Store

from .file import policy_of, ready

STORE, TABLES, LOGIC, CACHE = FILE_NAME, "tables", "logic", "cache"
"""What lies in a run's folder."""


@dataclass(frozen=True)
class Group:
    """A size group that is done: its protocol's result and the final table with where it was written.

    There is no `csv` where no lineage came as far as the final.
    """

    phases: Phases
    result: Result
    measure: RecordedMeasure
    table: FinalTable
    csv: Path | None


@dataclass
class Outcome:
    """What a run came to. `failed` counts by outcome and reason what was tried and did not run right, `health` is what
    was seen of the device meanwhile. `look_at` are sentences about what a person should see; without any, all went
    well."""

    target: Target
    folder: Path
    state: RunState = RunState.FINISHED
    groups: list[Group] = field(default_factory=list)
    logic: list[tuple[Path, Logic]] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    failed: Counter[str] = field(default_factory=Counter)
    drift: Drift | None = None
    seconds: float = 0.0
    health: dict[str, float] = field(default_factory=dict)
    look_at: list[str] = field(default_factory=list)


def tune(
    path: Path,
    folder: Path,
    *,
    device: str | None = None,
    max_size: int | None = None,
    budget_minutes: float | None = None,
    observe: events.Observer = events.nobody,
) -> Outcome:
    """Carry out a tuning file: measure, write a CSV for every step, build and write library logic.

    Everything goes into `folder`; calling again with the same arguments measures only what is missing there.
    `budget_minutes` (else the file's BudgetMinutes) stops the run when it is spent, with all that was measured kept.
    Raises UserError for a mistake in the file or the arguments, KeyboardInterrupt after everything was put away.
    """
    file, target = ready(path, max_size, device)
    for note in file.notes:
        observe(events.Said(note))
    observe(events.RunBegan(target, sum(len(phases.steps) for phases in file.groups)))
    minutes = budget_minutes if budget_minutes is not None else file.globals.budget_minutes
    deadline = time.monotonic() + 60 * minutes if minutes else None
    outcome, health = Outcome(target, folder), HealthWatch(target)
    # The load of a host that is itself the device is mostly our own: there the anchor tells of others.
    watched = observe if target.shares_the_host else health.beside(observe)
    with (
        Store.open(folder / STORE) as store,
        booked(outcome, store, run_start(target, path), health) as run_id,
        Bench(target, policy_of(file), folder / CACHE, watched) as bench,
    ):
        _Session(file, outcome, store, run_id, bench, watched, deadline).run()
    return outcome


@dataclass
class _Session:
    file: TuningFile
    outcome: Outcome
    store: Store
    run_id: str
    bench: Bench
    observe: events.Observer
    deadline: float | None

    def __post_init__(self) -> None:
        places = [self.outcome.folder / LOGIC]
        self.grids = OpenGrids(self.outcome.target, places, lambda sentence: self.observe(events.Said(sentence)))

    def run(self) -> None:
        anchor = Anchor(self.observe)
        for phases in self.file.groups:
            self._group(phases, anchor)
        anchor.visit()
        self._drifted(anchor.worst)
        if failed := self.outcome.failed:
            said = ", ".join(f"{why} ({count})" for why, count in failed.most_common())
            self.outcome.look_at.append(f"some did not run right: {said}; `tunesmith show` gives examples")
        self._write_logic()

    def _group(self, phases: Phases, anchor: Anchor) -> None:
        self.observe(events.GroupBegan(phases.problem_type, phases.group))
        judge = FamilyJudge(phases.problem_type, self.outcome.target, self.grids)
        measure = RecordedMeasure(
            judge, self.bench, self.store, policy_of(self.file), self.outcome.ledger, self.observe, self.deadline
        )
        steps = _Steps(self, phases, measure, anchor)
        result = run(phases, measure, judge, steps.ended)
        self._look_at(phases, result)
        table = table_of(result.steps[-1], measure)
        self.outcome.groups.append(Group(phases, result, measure, table, steps.csv))

    def _look_at(self, phases: Phases, result: Result) -> None:
        look_at = self.outcome.look_at
        look_at += [
            f"{group_name(phases)}: a lineage was dropped in {one.step}: {one.rejection}" for one in result.dropped
        ]
        final = result.steps[-1].step
        missing = [str(problem) for problem in getattr(final, "problems", ()) if problem not in result.decisions]
        if missing:
            look_at.append(f"{group_name(phases)}: nothing ran right on {len(missing)} sizes: {', '.join(missing[:5])}")

    def _drifted(self, drift: Drift | None) -> None:
        self.outcome.drift = drift
        if drift and drift.alarm:
            self.outcome.look_at.append(f"the anchor drifted to {drift.ratio:.2f} of its first time during the run")

    def _write_logic(self) -> None:
        by_type: dict[ProblemType, list[Group]] = defaultdict(list)
        for group in self.outcome.groups:
            if group.result.decisions:
                by_type[group.phases.problem_type].append(group)
        for problem_type, groups in by_type.items():
            logic = _logic(self.outcome.target, groups)
            path = self.outcome.folder / LOGIC / self.file.logic.file_name(problem_type.name)
            path.parent.mkdir(parents=True, exist_ok=True)
            reached("writing")
            write_logic(logic.document, path)
            self.outcome.logic.append((path, Logic.load(path)))
        self.outcome.look_at += watch([path for path, _ in self.outcome.logic], self.outcome.folder / CACHE)

    @property
    def _tables(self) -> Path:
        return self.outcome.folder / TABLES


@dataclass
class _Steps:
    """Follows one size group's steps: tells the observer, writes the CSV and the record of each as it ends.

    `csv` is what the last step wrote.
    """

    session: _Session
    phases: Phases
    measure: RecordedMeasure
    anchor: Anchor

    def __post_init__(self) -> None:
        self.csv: Path | None = None
        self._names = step_names(self.phases)
        self._number = 0
        self._next()

    def ended(self, result: StepResult) -> None:
        seconds = time.monotonic() - self._began
        self._number += 1
        session = self.session
        self.csv = write_step(session._tables, self.phases, result, self.measure)
        record = step_record(self.phases, self._number, result, self.measure, seconds)
        session.store.record_step(session.run_id, record)
        session.outcome.failed.update(record.failed)
        session.observe(events.StepEnded(result, seconds))
        self.anchor.after_step(result, self.measure)
        self._next()

    def _next(self) -> None:
        self._began = time.monotonic()
        self.measure.purpose = "".join(self._names[self._number : self._number + 1])


def _logic(target: Target, groups: list[Group]) -> Logic:
    """The logic of one problem type from all its size groups; a later group's winner of a size stands."""
    winners = {
        problem: group.measure.judge.solution(decision.winner)
        for group in groups
        for problem, decision in group.result.decisions.items()
    }
    toolchains = {group.measure.toolchain(config) for group in groups for config in group.result.survivors}
    origin = Origin.of(
        target, "; ".join(sorted(toolchains)), tunesmith.__version__, time.strftime("%Y-%m-%dT%H:%M:%S%z")
    )

    def runs_anywhere(solution: Solution) -> bool:
        tiny = Problem(solution.type, (1,) * len(solution.type.indices), scalars=next(iter(winners)).scalars)
        return not any(KERNELS[solution.kernel].rejections_for(with_a_grid(solution.configuration), tiny, target))

    return build([group.table for group in groups], origin, winners=winners, general=runs_anywhere)
