"""The benchmark protocol: `run` takes lineages through the steps of one size group.

After Tensile's "Benchmark Protocol" (six phases, determined parameters, forks and joins), but each lineage is tuned by
itself. Pure: no device, file or clock. The same answers of `measure` give the same result, so a run that was killed
continues when it is run again over the stored measurements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tunesmith.records import Configuration, Problem, Rejection, UserError
from tunesmith.search import STRATEGIES, CandidateBatch, Candidates, MeasuredTimes, MeasureMode, RaceThenConfirm
from tunesmith.spaces import Combinations

from .candidates import Proposal, candidates_of, proposals
from .drive import SearchRun, carry_out
from .joins import best_of_each, check_names, key_of
from .lineage import Lineage
from .measure import Measure, TimeTable
from .oracle import Oracle
from .results import NOTHING_RAN, ProtocolResult, StepResult, StepTrial, step_names
from .steps import EXHAUSTIVE, Benchmark, Final, Fork, Join, Objective, Phases
from .winners import Confirm, Contest, choose, relative_costs

Observe = Callable[[StepResult], None]

AS_IT_IS = Combinations(())
"""The only choice of a step that measures lineages without varying anything."""


def run(
    phases: Phases,
    measure: Measure,
    oracle: Oracle,
    observe: Observe = lambda _: None,
    decided: Observe = lambda _: None,
) -> ProtocolResult:
    """Carry out the steps of a size group. `observe` gets the result of each step when it ends, `decided` the final
    step's result after each size that it decides.

    A lineage that cannot go on is dropped, with its reason. If none is left, the remaining steps are empty. Before
    anything is measured, raises UserError for the mistakes that `check` finds.
    """
    check(phases, oracle)
    lineages: tuple[Lineage, ...] = (Lineage(phases.start),)
    results: list[StepResult] = []
    for index, (name, step) in enumerate(zip(step_names(phases), phases.steps, strict=True)):
        measured_step = _MeasuredStep(name, phases, index, measure, oracle)
        match step:
            case Fork(choices):
                result = StepResult(name, step, lineages, fork(lineages, choices))
            case Benchmark():
                result = measured_step.benchmark(step, lineages)
            case Join():
                result = measured_step.join(step, lineages)
            case Final():
                result = measured_step.final(step, lineages, decided)
        observe(result)
        results.append(result)
        lineages = result.after
    return ProtocolResult(tuple(results), tuple(lineage.configuration for lineage in lineages))


def check(phases: Phases, oracle: Oracle) -> None:
    """Raise UserError for mistakes that would otherwise show after hours: a join over an unknown name, a strategy whose
    packages are not installed, the objective `max` for problems without FLOP."""
    check_names(phases, oracle)
    STRATEGIES[phases.search.strategy].start(Candidates.of_list(()), np.random.default_rng(0))
    if phases.objective is not Objective.MAX:
        return
    for step in phases.steps:
        for problem in () if isinstance(step, Fork) else step.problems:
            if oracle.work(problem) <= 0:
                raise UserError("objective", f"max compares FLOP/s, and {problem} has no FLOP", "take geomean or worst")


def fork(lineages: Sequence[Lineage], choices: Iterable[Configuration]) -> tuple[Lineage, ...]:
    """A lineage for each lineage and choice."""
    return tuple(lineage | choice for lineage in lineages for choice in choices)


@dataclass(frozen=True)
class _MeasuredStep:
    """Carries out one step that measures."""

    name: str
    phases: Phases
    index: int
    measure: Measure
    oracle: Oracle

    def benchmark(self, step: Benchmark, lineages: tuple[Lineage, ...]) -> StepResult:
        """Every lineage takes the best of the step's choices for it."""
        proposed = self._propose(lineages, step.choices, step.problems)
        searches = [self._search(proposal, step, number) for number, proposal in enumerate(proposed)]
        table, cells = carry_out(searches, self.measure, self.oracle.identity)
        times = table.rows()
        trials = tuple(
            self._tried(proposal.only(searched.search.told, self.oracle), step, times, searched.confirmed)
            for proposal, searched in zip(proposed, searches, strict=True)
        )
        return StepResult(self.name, step, lineages, _lineages_after(trials), trials, table, cells)

    def join(self, step: Join, lineages: tuple[Lineage, ...]) -> StepResult:
        """Keep the best lineage for each combination of values. Lineages are measured first if they were not since they
        were forked."""
        trials: tuple[StepTrial, ...] = ()
        table, cells, measured = TimeTable(), 0, lineages
        if not all(lineage.times for lineage in lineages):
            proposed = self._propose(lineages, AS_IT_IS, step.problems)
            searches = [self._all_of(rivals, step) for rivals in self._rivals(proposed, step.names)]
            table, cells = carry_out(searches, self.measure, self.oracle.identity)
            times = table.rows()
            self._announce(self._contest(proposal, step, times) for proposal in proposed if not proposal.refusal)
            trials = tuple(self._tried(proposal, step, times, self.measure.confirm) for proposal in proposed)
            measured = _lineages_after(trials)
        kept = best_of_each(measured, step, self.phases.objective, self.oracle)
        return StepResult(self.name, step, lineages, kept, trials, table, cells)

    def final(self, step: Final, lineages: tuple[Lineage, ...], decided: Observe) -> StepResult:
        """Measure all choices of every survivor on every problem, each solution once and without racing. Then decide
        the winner of each problem."""
        proposed = self._propose(lineages, step.choices, step.problems)
        trials = self._distinct([part for proposal in proposed for part in _each_candidate(proposal)])
        survivors = [config for trial in trials for config in trial.proposal.configurations]
        searched = self._all_of(survivors, step, MeasureMode.FULL)
        table, cells = carry_out([searched], self.measure, self.oracle.identity)
        times = table.rows()
        result = StepResult(self.name, step, lineages, _lineages_after(trials), trials, table, cells)
        contests = [
            Contest(survivors, (problem,), times, Objective.GEOMEAN, self.oracle.work) for problem in step.problems
        ]
        self._announce(contests)
        for problem, contest in zip(step.problems, contests, strict=True):
            if decision := choose(contest, self.measure.confirm):
                decisions = {**result.decisions, problem: decision}
                paired = {cell: samples for each in decisions.values() for cell, samples in each.paired.items()}
                result = replace(result, table=replace(table, paired=paired), decisions=decisions)
                decided(result)
        return result

    def _announce(self, contests: Iterable[Contest]) -> None:
        """Announce the finalists of all contests that will be decided next."""
        batches = (batch for contest in contests for batch in _finalist_batches(contest))
        self.measure.announce((batch.configurations, batch.problems) for batch in batches)

    def _propose(
        self, lineages: Sequence[Lineage], choices: Combinations, problems: Sequence[Problem]
    ) -> list[Proposal]:
        return proposals(self.phases, self.index, lineages, choices, problems, self.oracle)

    def _search(self, proposal: Proposal, step: Benchmark, number: int) -> SearchRun:
        """The search of one lineage among its choices, by the file's strategy. At its end the finalists are measured
        again if the first times leave doubt."""

        def contest(times: MeasuredTimes) -> Contest:
            return self._contest(proposal.only(times, self.oracle), step, times)

        plan = self.phases.search
        candidates = candidates_of(proposal, step.choices, step.problems, self.oracle)
        candidates = replace(candidates, trials=plan.trials, costs=lambda times: relative_costs(contest(times)))
        strategy = RaceThenConfirm(lambda times: _finalist_batches(contest(times)), STRATEGIES[plan.strategy])
        search = strategy.start(candidates, np.random.default_rng((plan.seed, self.index, number)))
        return SearchRun(search, step.problems)

    def _all_of(
        self, configs: Sequence[Configuration], step: Join | Final, mode: MeasureMode = MeasureMode.RACED
    ) -> SearchRun:
        """A search that measures all of a list, whatever the file's strategy."""
        candidates = replace(Candidates.of_list(configs), mode=mode)
        return SearchRun(STRATEGIES[EXHAUSTIVE].start(candidates, np.random.default_rng(0)), step.problems)

    def _contest(self, proposal: Proposal, step: Benchmark | Join, times: MeasuredTimes) -> Contest:
        objective, work = self.phases.objective, self.oracle.work
        configs, incumbent = proposal.configurations, proposal.incumbent
        return Contest(configs, step.problems, times, objective, work, incumbent, step.weights)

    def _tried(self, proposal: Proposal, step: Benchmark | Join, times: MeasuredTimes, confirm: Confirm) -> StepTrial:
        """The trial of a lineage: its winner from the first times, or its refusal."""
        if proposal.refusal:
            return StepTrial(proposal, refusal=proposal.refusal)
        decision = choose(self._contest(proposal, step, times), confirm)
        if decision is None:
            tried = f"none of {len(proposal.candidates)} legal candidates ran on any of {len(step.problems)} sizes"
            return StepTrial(proposal, refusal=Rejection(NOTHING_RAN, tried))
        settled = proposal.lineage | dict(proposal.candidates)[decision.winner]
        return StepTrial(proposal, decision, settled.timed(decision.times))

    def _rivals(self, proposals: Sequence[Proposal], names: Sequence[str]) -> list[list[Configuration]]:
        """Groups of configurations between which a join chooses."""
        rivals: dict[Configuration, list[Configuration]] = defaultdict(list)
        for proposal in proposals:
            for config in proposal.configurations:
                rivals[key_of(config, names, self.oracle)].append(config)
        return list(rivals.values())

    def _distinct(self, proposals: Sequence[Proposal]) -> tuple[StepTrial, ...]:
        """The trials of the final step. Only the first of several lineages that are the same solution goes on."""
        first: dict[str, Configuration] = {}
        trials = []
        for proposal in proposals:
            originals = [
                (config, first.setdefault(self.oracle.identity(config), config)) for config in proposal.configurations
            ]
            if all(config is original for config, original in originals):
                chosen = [choice for _, choice in proposal.candidates]
                after = None if proposal.refusal else proposal.lineage | chosen[0] if chosen[0] else proposal.lineage
                trials.append(StepTrial(proposal, after=after, refusal=proposal.refusal))
            else:
                trials.append(StepTrial(replace(proposal, candidates=(), duplicates=tuple(originals))))
        return tuple(trials)


def _lineages_after(trials: Sequence[StepTrial]) -> tuple[Lineage, ...]:
    return tuple(trial.after for trial in trials if trial.after is not None)


def _each_candidate(proposal: Proposal) -> Iterator[Proposal]:
    """A proposal for each candidate. The rejections and duplicates stay with the first proposal."""
    for number, candidate in enumerate(proposal.candidates):
        only = replace(proposal, candidates=(candidate,))
        yield replace(only, rejected=(), duplicates=()) if number else only
    if not proposal.candidates:
        yield proposal


def _finalist_batches(contest: Contest) -> list[CandidateBatch]:
    """The finalists that a contest would measure again, as batches for a search."""
    batches: list[CandidateBatch] = []

    def confirm(configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        batches.append(CandidateBatch(tuple(configs), MeasureMode.CONFIRMED, tuple(problems)))
        return TimeTable()

    choose(contest, confirm)
    return batches
