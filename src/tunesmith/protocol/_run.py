"""The benchmark protocol: lineages carried through the steps of one size group.

After Tensile's "Benchmark Protocol" (six phases, determined parameters, forks and joins), with each lineage tuned by
itself. Pure: no device, file or clock; the same answers of `measure` give the same result, so a run that was killed
goes on by being run again over what was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tunesmith.records import Configuration, Problem, Rejection, UserError

from ._candidates import Proposal, later_values, propose
from ._joins import best_of_each, check_names, key_of
from ._judge import Judge
from ._lineage import Lineage
from ._measure import Measure, Table
from ._results import NOTHING_RAN, Result, StepResult, Trial, step_names
from ._steps import Benchmark, Final, Fork, Join, Objective, Phases
from ._winners import Contest, Decision, choose

Observe = Callable[[StepResult], None]

AS_IT_IS = (Configuration(),)
"""The one choice of a step that measures lineages without varying anything."""


def run(
    phases: Phases,
    measure: Measure,
    judge: Judge,
    observe: Observe = lambda _: None,
    decided: Observe = lambda _: None,
) -> Result:
    """Carry out the steps of a size group; `observe` is told each as it ends, `decided` the final after each size that
    it decides.

    A lineage that cannot go on is dropped with its reason; when none is left, the remaining steps are empty. Raises
    UserError, before anything is measured, for what `check` finds.
    """
    check(phases, judge)
    lineages: tuple[Lineage, ...] = (Lineage(phases.start),)
    results: list[StepResult] = []
    for place, (name, step) in enumerate(zip(step_names(phases), phases.steps, strict=True)):
        bench = _Bench(name, phases, place, measure, judge)
        match step:
            case Fork(choices):
                result = StepResult(name, step, lineages, fork(lineages, choices))
            case Benchmark():
                result = bench.benchmark(step, lineages)
            case Join():
                result = bench.join(step, lineages)
            case Final():
                result = bench.final(step, lineages, decided)
        observe(result)
        results.append(result)
        lineages = result.after
    return Result(tuple(results), tuple(lineage.configuration for lineage in lineages))


def check(phases: Phases, judge: Judge) -> None:
    """Raise UserError for what would otherwise fail after hours: a join over an unknown name, `max` without work."""
    check_names(phases, judge)
    if phases.objective is not Objective.MAX:
        return
    for step in phases.steps:
        for problem in () if isinstance(step, Fork) else step.problems:
            if judge.work(problem) <= 0:
                raise UserError("objective", f"max compares FLOP/s, and {problem} has no FLOP", "take geomean or worst")


def fork(lineages: Sequence[Lineage], choices: Sequence[Configuration]) -> tuple[Lineage, ...]:
    return tuple(lineage | choice for lineage in lineages for choice in choices)


@dataclass(frozen=True)
class _Bench:
    """One step that measures, with everything that it asks of others."""

    name: str
    phases: Phases
    place: int
    measure: Measure
    judge: Judge

    def benchmark(self, step: Benchmark, lineages: tuple[Lineage, ...]) -> StepResult:
        """Every lineage takes the best of the step's choices for itself."""
        proposals = [self._propose(lineage, step.choices, step.problems) for lineage in lineages]
        table, cells = self._screen([proposal.configurations for proposal in proposals], step.problems, racing=True)
        trials = tuple(self._tried(proposal, step, table) for proposal in proposals)
        table = _with_pairs(table, [trial.decision for trial in trials if trial.decision])
        return StepResult(self.name, step, lineages, _going_on(trials), trials, table, cells)

    def join(self, step: Join, lineages: tuple[Lineage, ...]) -> StepResult:
        """The best lineage for each combination of values, measured first where nothing has been measured."""
        trials: tuple[Trial, ...] = ()
        table, cells, measured = Table(), 0, lineages
        if not all(lineage.times for lineage in lineages):
            proposals = [self._propose(lineage, AS_IT_IS, step.problems) for lineage in lineages]
            table, cells = self._screen(self._rivals(proposals, step.names), step.problems, racing=True)
            trials = tuple(self._tried(proposal, step, table) for proposal in proposals)
            measured = _going_on(trials)
        kept = best_of_each(measured, step, self.phases.objective, self.judge)
        return StepResult(self.name, step, lineages, kept, trials, table, cells)

    def final(self, step: Final, lineages: tuple[Lineage, ...], decided: Observe) -> StepResult:
        """Every distinct survivor on every problem, however slow it is; then the winner of each problem."""
        trials = self._distinct([self._propose(lineage, AS_IT_IS, step.problems) for lineage in lineages])
        survivors = [config for trial in trials for config in trial.proposal.configurations]
        table, cells = self._screen([survivors], step.problems, racing=False)
        result = StepResult(self.name, step, lineages, _going_on(trials), trials, table, cells)
        for problem in step.problems:
            contest = Contest(survivors, (problem,), table, Objective.GEOMEAN, self.judge.work)
            if decision := choose(contest, self.measure.confirm):
                decisions = {**result.decisions, problem: decision}
                result = replace(result, table=_with_pairs(table, list(decisions.values())), decisions=decisions)
                decided(result)
        return result

    def _propose(self, lineage: Lineage, choices: Sequence[Configuration], problems: Sequence[Problem]) -> Proposal:
        later = later_values(self.phases.steps[self.place + 1 :], self.phases.tuned, lineage)
        return propose(lineage, choices, problems, later, self.judge)

    def _screen(
        self, groups: Sequence[Sequence[Configuration]], problems: Sequence[Problem], racing: bool
    ) -> tuple[Table, int]:
        """First times of all groups from one call, so that they can be compiled together, and the cells asked for.

        A solution that occurs in several lineages is asked for once, under its first configuration.
        """
        first: dict[str, Configuration] = {}
        stands = {config: first.setdefault(self.judge.identity(config), config) for group in groups for config in group}
        asked = [list(dict.fromkeys(stands[config] for config in group)) for group in groups if group]
        if not asked:
            return Table(), 0
        measured = self.measure.screen(asked, problems, racing).cells
        cells = {
            (config, problem): measured[stand, problem]
            for config, stand in stands.items()
            for problem in problems
            if (stand, problem) in measured
        }
        return Table(cells), len(first) * len(problems)

    def _tried(self, proposal: Proposal, step: Benchmark | Join, table: Table) -> Trial:
        """What became of a lineage, given everybody's first times."""
        if proposal.refusal:
            return Trial(proposal, refusal=proposal.refusal)
        contest = Contest(
            proposal.configurations,
            step.problems,
            table,
            self.phases.objective,
            self.judge.work,
            proposal.incumbent,
            step.weights,
        )
        decision = choose(contest, self.measure.confirm)
        if decision is None:
            tried = f"none of {len(proposal.candidates)} legal candidates ran on any of {len(step.problems)} sizes"
            return Trial(proposal, refusal=Rejection(NOTHING_RAN, tried))
        settled = proposal.lineage | dict(proposal.candidates)[decision.winner]
        return Trial(proposal, decision, settled.timed(decision.times))

    def _rivals(self, proposals: Sequence[Proposal], names: Sequence[str]) -> list[list[Configuration]]:
        """The lineages that a join chooses between, together."""
        rivals: dict[Configuration, list[Configuration]] = defaultdict(list)
        for proposal in proposals:
            for config in proposal.configurations:
                rivals[key_of(config, names, self.judge)].append(config)
        return list(rivals.values())

    def _distinct(self, proposals: Sequence[Proposal]) -> tuple[Trial, ...]:
        """Lineages that go into the final step: of those that are one solution, the first."""
        first: dict[str, Configuration] = {}
        trials = []
        for proposal in proposals:
            stands = [
                (config, first.setdefault(self.judge.identity(config), config)) for config in proposal.configurations
            ]
            if all(config is stand for config, stand in stands):
                after = None if proposal.refusal else proposal.lineage
                trials.append(Trial(proposal, after=after, refusal=proposal.refusal))
            else:
                trials.append(Trial(replace(proposal, candidates=(), duplicates=tuple(stands))))
        return tuple(trials)


def _going_on(trials: Sequence[Trial]) -> tuple[Lineage, ...]:
    return tuple(trial.after for trial in trials if trial.after is not None)


def _with_pairs(table: Table, decisions: Sequence[Decision]) -> Table:
    paired = {cell: samples for decision in decisions for cell, samples in decision.paired.items()}
    return replace(table, paired=paired)
