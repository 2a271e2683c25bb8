"""The benchmark protocol: lineages carried through the steps of one size group.

After Tensile's "Benchmark Protocol" (six phases, determined parameters, forks and joins), with each lineage tuned by
itself. Pure: no device, file or clock; the same answers of `measure` give the same result, so a run that was killed
goes on by being run again over what was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tunesmith.records import Configuration, Problem, Rejection, UserError
from tunesmith.search import STRATEGIES, CandidateBatch, Candidates, MeasureMode, RaceThenConfirm, Told
from tunesmith.spaces import Combinations

from .candidates import Proposal, candidates_of, proposals
from .drive import Searched, carry_out
from .joins import best_of_each, check_names, key_of
from .lineage import Lineage
from .measure import Measure, TimeTable
from .oracle import Oracle
from .results import NOTHING_RAN, ProtocolResult, StepResult, StepTrial, step_names
from .steps import EXHAUSTIVE, Benchmark, Final, Fork, Join, Objective, Phases
from .winners import Confirm, Contest, choose, relative_costs

Observe = Callable[[StepResult], None]

AS_IT_IS = Combinations(())
"""The one choice of a step that measures lineages without varying anything."""


def run(
    phases: Phases,
    measure: Measure,
    oracle: Oracle,
    observe: Observe = lambda _: None,
    decided: Observe = lambda _: None,
) -> ProtocolResult:
    """Carry out the steps of a size group; `observe` is told each as it ends, `decided` the final after each size that
    it decides.

    A lineage that cannot go on is dropped with its reason; when none is left, the remaining steps are empty. Raises
    UserError, before anything is measured, for what `check` finds.
    """
    check(phases, oracle)
    lineages: tuple[Lineage, ...] = (Lineage(phases.start),)
    results: list[StepResult] = []
    for index, (name, step) in enumerate(zip(step_names(phases), phases.steps, strict=True)):
        bench = _Bench(name, phases, index, measure, oracle)
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
    return ProtocolResult(tuple(results), tuple(lineage.configuration for lineage in lineages))


def check(phases: Phases, oracle: Oracle) -> None:
    """Raise UserError for what would otherwise fail after hours: a join over an unknown name, a strategy that needs
    what is not installed, `max` without work."""
    check_names(phases, oracle)
    STRATEGIES[phases.search.strategy].start(Candidates.of_list(()), np.random.default_rng(0))
    if phases.objective is not Objective.MAX:
        return
    for step in phases.steps:
        for problem in () if isinstance(step, Fork) else step.problems:
            if oracle.work(problem) <= 0:
                raise UserError("objective", f"max compares FLOP/s, and {problem} has no FLOP", "take geomean or worst")


def fork(lineages: Sequence[Lineage], choices: Iterable[Configuration]) -> tuple[Lineage, ...]:
    return tuple(lineage | choice for lineage in lineages for choice in choices)


@dataclass(frozen=True)
class _Bench:
    """One step that measures, with everything that it asks of others."""

    name: str
    phases: Phases
    index: int
    measure: Measure
    oracle: Oracle

    def benchmark(self, step: Benchmark, lineages: tuple[Lineage, ...]) -> StepResult:
        """Every lineage takes the best of the step's choices for itself."""
        proposed = self._propose(lineages, step.choices, step.problems)
        searches = [self._search(proposal, step, number) for number, proposal in enumerate(proposed)]
        table, cells = carry_out(searches, self.measure, self.oracle.identity)
        told = table.rows()
        trials = tuple(
            self._tried(proposal.only(searched.search.told, self.oracle), step, told, searched.confirmed)
            for proposal, searched in zip(proposed, searches, strict=True)
        )
        return StepResult(self.name, step, lineages, _going_on(trials), trials, table, cells)

    def join(self, step: Join, lineages: tuple[Lineage, ...]) -> StepResult:
        """The best lineage for each combination of values, measured first where nothing has been measured."""
        trials: tuple[StepTrial, ...] = ()
        table, cells, measured = TimeTable(), 0, lineages
        if not all(lineage.times for lineage in lineages):
            proposed = self._propose(lineages, AS_IT_IS, step.problems)
            searches = [self._all_of(rivals, step) for rivals in self._rivals(proposed, step.names)]
            table, cells = carry_out(searches, self.measure, self.oracle.identity)
            told = table.rows()
            trials = tuple(self._tried(proposal, step, told, self.measure.confirm) for proposal in proposed)
            measured = _going_on(trials)
        kept = best_of_each(measured, step, self.phases.objective, self.oracle)
        return StepResult(self.name, step, lineages, kept, trials, table, cells)

    def final(self, step: Final, lineages: tuple[Lineage, ...], decided: Observe) -> StepResult:
        """All choices of every survivor on every problem, each solution once and however slow it is; then the winner of
        each problem."""
        proposed = self._propose(lineages, step.choices, step.problems)
        trials = self._distinct([part for proposal in proposed for part in _each_candidate(proposal)])
        survivors = [config for trial in trials for config in trial.proposal.configurations]
        searched = self._all_of(survivors, step, MeasureMode.FULL)
        table, cells = carry_out([searched], self.measure, self.oracle.identity)
        result, told = StepResult(self.name, step, lineages, _going_on(trials), trials, table, cells), table.rows()
        for problem in step.problems:
            contest = Contest(survivors, (problem,), told, Objective.GEOMEAN, self.oracle.work)
            if decision := choose(contest, self.measure.confirm):
                decisions = {**result.decisions, problem: decision}
                paired = {cell: samples for made in decisions.values() for cell, samples in made.paired.items()}
                result = replace(result, table=replace(table, paired=paired), decisions=decisions)
                decided(result)
        return result

    def _propose(
        self, lineages: Sequence[Lineage], choices: Combinations, problems: Sequence[Problem]
    ) -> list[Proposal]:
        return proposals(self.phases, self.index, lineages, choices, problems, self.oracle)

    def _search(self, proposal: Proposal, step: Benchmark, number: int) -> Searched:
        """Among one lineage's choices, by the file's strategy; then its finalists, where the times leave doubt."""

        def contest(told: Told) -> Contest:
            return self._contest(proposal.only(told, self.oracle), step, told)

        plan = self.phases.search
        candidates = candidates_of(proposal, step.choices, step.problems, self.oracle)
        candidates = replace(candidates, trials=plan.trials, costs=lambda told: relative_costs(contest(told)))
        strategy = RaceThenConfirm(lambda told: _finals(contest(told)), STRATEGIES[plan.strategy])
        search = strategy.start(candidates, np.random.default_rng((plan.seed, self.index, number)))
        return Searched(search, step.problems)

    def _all_of(
        self, configs: Sequence[Configuration], step: Join | Final, mode: MeasureMode = MeasureMode.RACED
    ) -> Searched:
        """All of a list, on which no strategy has a say."""
        candidates = replace(Candidates.of_list(configs), mode=mode)
        return Searched(STRATEGIES[EXHAUSTIVE].start(candidates, np.random.default_rng(0)), step.problems)

    def _contest(self, proposal: Proposal, step: Benchmark | Join, told: Told) -> Contest:
        objective, work = self.phases.objective, self.oracle.work
        configs, incumbent = proposal.configurations, proposal.incumbent
        return Contest(configs, step.problems, told, objective, work, incumbent, step.weights)

    def _tried(self, proposal: Proposal, step: Benchmark | Join, told: Told, confirm: Confirm) -> StepTrial:
        """What became of a lineage, given everybody's first times."""
        if proposal.refusal:
            return StepTrial(proposal, refusal=proposal.refusal)
        decision = choose(self._contest(proposal, step, told), confirm)
        if decision is None:
            tried = f"none of {len(proposal.candidates)} legal candidates ran on any of {len(step.problems)} sizes"
            return StepTrial(proposal, refusal=Rejection(NOTHING_RAN, tried))
        settled = proposal.lineage | dict(proposal.candidates)[decision.winner]
        return StepTrial(proposal, decision, settled.timed(decision.times))

    def _rivals(self, proposals: Sequence[Proposal], names: Sequence[str]) -> list[list[Configuration]]:
        """The lineages that a join chooses between, together."""
        rivals: dict[Configuration, list[Configuration]] = defaultdict(list)
        for proposal in proposals:
            for config in proposal.configurations:
                rivals[key_of(config, names, self.oracle)].append(config)
        return list(rivals.values())

    def _distinct(self, proposals: Sequence[Proposal]) -> tuple[StepTrial, ...]:
        """Lineages that go into the final step: of those that are one solution, the first."""
        first: dict[str, Configuration] = {}
        trials = []
        for proposal in proposals:
            stands = [
                (config, first.setdefault(self.oracle.identity(config), config)) for config in proposal.configurations
            ]
            if all(config is stand for config, stand in stands):
                chosen = [choice for _, choice in proposal.candidates]
                after = None if proposal.refusal else proposal.lineage | chosen[0] if chosen[0] else proposal.lineage
                trials.append(StepTrial(proposal, after=after, refusal=proposal.refusal))
            else:
                trials.append(StepTrial(replace(proposal, candidates=(), duplicates=tuple(stands))))
        return tuple(trials)


def _going_on(trials: Sequence[StepTrial]) -> tuple[Lineage, ...]:
    return tuple(trial.after for trial in trials if trial.after is not None)


def _each_candidate(proposal: Proposal) -> Iterator[Proposal]:
    """A proposal for each candidate; what was rejected and what is the same stays with the first."""
    for number, candidate in enumerate(proposal.candidates):
        only = replace(proposal, candidates=(candidate,))
        yield replace(only, rejected=(), duplicates=()) if number else only
    if not proposal.candidates:
        yield proposal


def _finals(contest: Contest) -> list[CandidateBatch]:
    """What a contest would confirm."""
    asked: list[CandidateBatch] = []

    def confirm(configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        asked.append(CandidateBatch(tuple(configs), MeasureMode.CONFIRMED, tuple(problems)))
        return TimeTable()

    choose(contest, confirm)
    return asked
