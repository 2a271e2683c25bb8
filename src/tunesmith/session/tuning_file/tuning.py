"""The plan of a tuning file: its size groups go through the protocol's steps and become tables and library logic.

Winners are decided by the protocol (`protocol.choose`), which this plan hands the run's `RecordedMeasure`.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from tunesmith.logic import FinalTable
from tunesmith.protocol import ContestDecision, Final, Phases, ProtocolResult, StepResult, TuningFile, run, step_names
from tunesmith.records import Problem, ProblemType, Target
from tunesmith.session.frame import events
from tunesmith.session.frame.logic import logic_output
from tunesmith.session.frame.many_devices import BenchFactory
from tunesmith.session.frame.measure import RecordedMeasure
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.order import Rank
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .file import policy_of, ready, refuse_empty
from .order import AS_IN_FILE, checked_order, rank_of
from .steps import group_name, step_record, table_of, table_output


def tune(
    path: Path,
    folder: Path,
    *,
    device: str | Target | None = None,
    max_size: int | None = None,
    sizes: Path | None = None,
    budget_minutes: float | None = None,
    order: str | None = None,
    reuse: Reuse = Reuse.ALL,
    checks_logic: bool = True,
    store: str | None = None,
    wait: bool = False,
    observe: events.Observer = events.nobody,
    benches: BenchFactory | None = None,
) -> RunOutcome[TuningPlan]:
    """Carry out a tuning file: measure, write a CSV for every step, build and write library logic.

    Everything goes into `folder`. The same call measures only what is missing there; another `reuse` also measures
    failures again, or everything.
    `sizes` is the sizes file of a file in Tensile's split form.
    `order` names the policy whose best guesses are measured first (the default policy if None); `file` asks none.
    Without `checks_logic` the written logic is not launched at the end, for a caller that does not load it.
    `device` may be the target of `benches`, which make benches of several devices (`frame.many_devices`).
    When `budget_minutes` (else the file's BudgetMinutes) are spent, the run stops and keeps all measurements. `store`
    is the path or URL of the folder's store, if that is no file in it. With `wait`, the call waits for another run
    that works in the folder.
    Raises UserError for a mistake in the file or the arguments, KeyboardInterrupt after everything is written.
    """
    order = checked_order(order)
    made_ready = ready(path, max_size, device, sizes)
    file, target, imported = made_ready.file, made_ready.target, made_ready.imported
    refuse_empty(path, file, imported)
    for note in (*(imported.sentences() if imported else ()), *file.notes):
        observe(events.Message(note))
    minutes = budget_minutes if budget_minutes is not None else file.globals.budget_minutes
    plan = TuningPlan(path, file, target, order)
    plan.checks_logic = checks_logic
    return carry_out(
        plan,
        folder,
        budget_minutes=minutes,
        reuse=reuse,
        store=store,
        wait=wait,
        observe=observe,
        benches=benches,
    )


@dataclass
class Group:
    """A size group: its last step as far as it got, and the protocol's result once the group is done."""

    phases: Phases
    measure: RecordedMeasure
    last: StepResult | None = None
    result: ProtocolResult | None = None

    @property
    def decisions(self) -> Mapping[Problem, ContestDecision]:
        """The winner of each size that is decided."""
        return self.last.decisions if self.last else {}

    @property
    def table(self) -> FinalTable | None:
        """The final's table of the decided sizes, or of all sizes once the group is done; None if nothing ran."""
        if self.last is None or not self.last.trials:
            return None
        return table_of(self.last, self.measure, None if self.result else list(self.decisions))

    @property
    def undecided(self) -> int:
        """The number of the final's sizes that are not decided yet."""
        return 0 if self.result else len(_sizes(self.phases)) - len(self.decisions)


class TuningPlan(RunPlan):
    """`order` is the policy whose best guesses are measured first, or `file`.

    If there are several devices when the run begins, the groups of all problem types are carried out together. With a
    budget they are not, so that some types are decided when it ends, rather than none.
    """

    may_share = True

    def __init__(self, path: Path, file: TuningFile, target: Target, order: str = AS_IN_FILE) -> None:
        self.file, self.target, self.policy = path, target, policy_of(file)
        self.steps = sum(len(phases.steps) for phases in file.groups)
        self._begun: dict[int, Group] = {}
        self.order = order
        self._tuning = file

    def rank(self, oracle: ConfigurationOracle) -> Rank | None:
        return rank_of(self.order, oracle)

    def carry_out(self, run_: Run) -> None:
        by_type: dict[ProblemType, list[int]] = defaultdict(list)
        for number, phases in enumerate(self._tuning.groups):
            by_type[phases.problem_type].append(number)
        if run_.device_count > 1 and len(by_type) > 1 and run_.deadline is None:
            for problem_type in by_type:
                run_.measure(problem_type)
            run_.say(f"{len(by_type)} problem types go through their steps together")
            run_.carry_out_together(
                [partial(self._carry_out, run_, numbers, together=True) for numbers in by_type.values()]
            )
        else:
            self._carry_out(run_, range(len(self._tuning.groups)))

    def _carry_out(self, run_: Run, numbers: Iterable[int], together: bool = False) -> None:
        """Carry out size groups, one after another; `together` with those of other types."""
        for number in numbers:
            phases = self._tuning.groups[number]
            run_.observe(events.GroupBegan(phases.problem_type, phases.group))
            group = Group(phases, run_.measure(phases.problem_type))
            self._begun[number] = group
            steps = _Steps(run_, group, phases.problem_type.name if together else "")
            group.result = run(phases, group.measure, group.measure.oracle, steps.ended, steps.decided)
            run_.decided()

    @property
    def groups(self) -> list[Group]:
        """The size groups begun so far, in the file's order."""
        return [group for _, group in sorted(self._begun.items())]

    @property
    def unfinished(self) -> str:
        waiting = (phases for number, phases in enumerate(self._tuning.groups) if number not in self._begun)
        not_begun = sum(map(len, map(_sizes, waiting)))
        undecided = not_begun + sum(group.undecided for group in self.groups)
        total = sum(len(_sizes(phases)) for phases in self._tuning.groups)
        return f"{total - undecided} of {total} sizes are decided" if undecided else ""

    def outputs(self, run: Run) -> Iterator[Output]:
        tables = [(group, table) for group in self.groups if (table := group.table) and table.problems]
        by_type: dict[ProblemType, list[FinalTable]] = defaultdict(list)
        for group, table in tables:
            if group.decisions:
                by_type[group.phases.problem_type].append(table)
        logics = []
        for kind, decided in by_type.items():
            chosen = {problem: solutions for table in decided for problem, solutions in table.decided.items()}
            logics.append(logic_output(run, self._tuning.logic.file_name(kind.name), kind, chosen, decided))
        names = {solution: name for logic in logics for solution, name in logic.names.items()}
        for group, table in tables:
            assert group.last is not None
            are_named = all(solution in names for solution in table.solutions)
            yield table_output(run, group.phases, group.last, replace(table, named=names) if are_named else table)
        yield from logics

    @property
    def left_out(self) -> Counter[str]:
        """The number of configurations, lineages included, that the user's own constraints ruled out, by reason."""
        results = (group.result for group in self.groups if group.result)
        return sum((step.asked_for for result in results for step in result.steps), Counter())

    def remarks(self) -> Iterator[str]:
        for group in self.groups:
            if group.result is None:
                continue
            name = group_name(group.phases)
            for first, count in chain(*(step.dropped_by_reason for step in group.result.steps)):
                # A user's own constraint may rule lineages out, as long as something is left.
                if not (first.rejection.is_asked_for and group.decisions):
                    who = f"{count} lineages were" if count > 1 else "a lineage was"
                    yield f"{name}: {who} dropped in {first.step}: {first.rejection}"
            if missing := [str(problem) for problem in _sizes(group.phases) if problem not in group.decisions]:
                yield f"{name}: nothing ran right on {len(missing)} sizes: {', '.join(missing[:5])}"


@dataclass
class _Steps:
    """Follows the steps of one size group. When a step ends, its table is written, it is recorded, and the observer
    gets the event."""

    run: Run
    group: Group
    type_name: str = ""

    def __post_init__(self) -> None:
        self._names = step_names(self.group.phases)
        self._number = 0
        self._next()

    def decided(self, result: StepResult) -> None:
        """The final has decided one more size; `result` is the final as far as it got."""
        self.group.last = result
        self.run.decided()

    def ended(self, result: StepResult) -> None:
        phases, measure = self.group.phases, self.group.measure
        seconds = time.monotonic() - self._began
        self._number += 1
        self.group.last = result if self._number == len(phases.steps) else None
        if result.trials and self.group.last is None:
            self.run.write(table_output(self.run, phases, result, table_of(result, measure)))
        self.run.record_step(step_record(phases, self._number, result, measure, seconds))
        self.run.observe(events.StepEnded(result, seconds, self.type_name))
        self.run.anchor.decided(measure)
        self.run.anchor.visit_if_due(measure, result.table.cells)
        self._next()

    def _next(self) -> None:
        self._began = time.monotonic()
        self.group.measure.purpose = "".join(self._names[self._number : self._number + 1])


def _sizes(phases: Phases) -> tuple[Problem, ...]:
    """The sizes for which the group's final chooses winners."""
    last = phases.steps[-1] if phases.steps else None
    return last.problems if isinstance(last, Final) else ()
