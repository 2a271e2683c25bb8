"""The protocol's `measure`: the store answers for what was measured before, the bench measures the rest."""

from __future__ import annotations

import hashlib
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from tunesmith.bench import Bench, Bound, Job, Policy, over_rounds
from tunesmith.bench.faults import reached
from tunesmith.problems import OPERATIONS
from tunesmith.protocol import Cell, Table
from tunesmith.records import (
    CompiledFacts,
    Configuration,
    Cost,
    Measurement,
    Outcome,
    Problem,
    Rejection,
)
from tunesmith.store import FULL, RACE, RECHECK, Entry, Store, measurement_key
from tunesmith.toolchains import TOOLCHAINS

from . import events
from .oracle import FamilyJudge


class OutOfBudgetError(Exception):
    """The time that the user gave is spent; everything measured is committed."""


@dataclass
class Ledger:
    """What a run did: measurements newly made and found again, and what the new ones cost."""

    measured: int = 0
    reused: int = 0
    cost: Cost = field(default_factory=Cost)

    def add(self, cost: Cost) -> None:
        self.measured += 1
        mine = self.cost
        self.cost = Cost(mine.compile + cost.compile, mine.verify + cost.verify, mine.timing + cost.timing)


class RecordedMeasure:
    """Measures configurations of one problem type, each cell at most once in the life of a store.

    What was committed is never measured again, so a run that was killed goes on where it stood and, since the protocol
    is a function of the measurements, comes to the same winners.
    """

    def __init__(
        self,
        judge: FamilyJudge,
        bench: Bench,
        store: Store,
        policy: Policy,
        ledger: Ledger,
        observe: events.Observer = events.nobody,
        deadline: float | None = None,
    ) -> None:
        self.judge, self.bench, self.store, self.policy = judge, bench, store, policy
        self.ledger, self.observe, self.deadline = ledger, observe, deadline
        self.purpose = ""
        self._operation = OPERATIONS[judge.problem_type.operation]
        self._keys: dict[Cell, str] = {}

    def screen(self, groups: Sequence[Sequence[Configuration]], problems: Sequence[Problem], racing: bool) -> Table:
        """Every cell once; see `protocol.Measure`."""
        return self.screen_cells([list(_cells(group, problems)) for group in groups], racing)

    def screen_cells(self, groups: Sequence[Sequence[Cell]], racing: bool) -> Table:
        """Every cell once, where each group has problems of its own. What `screen` says of groups holds for these."""
        grouped = [self._legal(group) for group in groups]
        legal = list(dict.fromkeys(cell for group in grouped for cell in group))
        known = self.lookup(legal, racing)
        self.ledger.reused += len(known)
        self._begin(len(legal), len(known))
        if len(known) < len(legal):
            self._run(self._races(grouped, known), RACE if racing else FULL, racing)
            # The store has the last word, as it will have when this step is replayed: another run may write to it too.
            known = self.lookup(legal, racing)
        return Table({cell: m.estimate for cell, m in known.items() if m.ok and m.estimate})

    def confirm(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> Table:
        """Finalists again, interleaved; see `protocol.Measure`. The samples of one problem are committed together."""
        cells: dict[Cell, Measurement] = {}
        for problem in problems:
            cells.update(self._interleave([(config, problem) for config in configs]))
        ran = {cell: m for cell, m in cells.items() if m.ok and m.estimate}
        return Table(
            {cell: m.estimate for cell, m in ran.items() if m.estimate}, {cell: m.samples for cell, m in ran.items()}
        )

    def repeat(self, configs: Sequence[Configuration], problem: Problem, rounds: int) -> None:
        """Measure what ran before in more rounds, backwards and forwards by turns, so that a machine whose speed
        changes from minute to minute favours nobody."""
        legal = self._legal(_cells(configs, [problem]))
        ran = [cell for cell, known in self.lookup(legal, racing=False).items() if known.ok]
        for round_ in _repetitions(rounds):
            ran.reverse()
            known = self.store.find([self.key(cell) for cell in ran], round_)
            missing = tuple(cell for cell in ran if self.key(cell) not in known)
            self.ledger.reused += len(known)
            self._begin(len(ran), len(known))
            if missing:
                self._run([_Race(missing)], round_, racing=False)

    def over_rounds(self, cells: Iterable[Cell], rounds: int) -> dict[Cell, Measurement]:
        """What is known of cells, the samples of so many more rounds with those of the first."""
        known = self.lookup(list(cells), racing=False)
        samples = {self.key(cell): [one.samples] for cell, one in known.items() if one.ok}
        for round_ in _repetitions(rounds):
            for key, again in self.store.find(samples, round_).items():
                if again.ok:
                    samples[key].append(again.samples)
        return {
            cell: replace(one, samples=tuple(chain(*each)), estimate=over_rounds(each))
            if (each := samples.get(self.key(cell)))
            else one
            for cell, one in known.items()
        }

    def again(self, cell: Cell, round_: str) -> Measurement:
        """One cell once more under a round of its own (the anchor)."""
        found = self.store.find([self.key(cell)], round_)
        if not found:
            self._run([_Race((cell,))], round_, racing=False)
            found = self.store.find([self.key(cell)], round_)
        return found[self.key(cell)]

    def lookup(self, cells: Sequence[Cell], racing: bool = True) -> dict[Cell, Measurement]:
        """What the store knows of cells, a crash that came later above all.

        In a race the raced measurement answers before the full one, although it is the looser: a step that is replayed
        must see what it saw, not what the final measured since. Without `racing`, those that were stopped early do
        not count.
        """
        keys = dict.fromkeys(self.key(cell) for cell in cells)
        rounds = (FULL, RACE) if racing else (RACE, FULL)
        found: dict[str, Measurement] = {}
        for round_ in (*rounds, *(name + RECHECK for name in rounds)):
            serving = self.store.find(keys, round_)
            found.update({key: m for key, m in serving.items() if racing or not m.raced})
        return {cell: found[self.key(cell)] for cell in cells if self.key(cell) in found}

    def key(self, cell: Cell) -> str:
        """The store's key of a cell."""
        if cell not in self._keys:
            config, problem = cell
            family, solution, target = self.judge.family(config), self.judge.launched(*cell), self.judge.target
            self._keys[cell] = measurement_key(
                target=target,
                toolchain=self.toolchain(config),
                identity=self.judge.identity(solution.configuration),
                plan_digest=family.plan(solution.configuration, problem, target).digest(),
                problem=problem,
                policy=self.policy.key(),
            )
        return self._keys[cell]

    def toolchain(self, config: Configuration) -> str:
        return TOOLCHAINS[self.judge.family(config).language].version(self.judge.target)

    def _legal(self, cells: Iterable[Cell]) -> list[Cell]:
        return [(config, problem) for config, problem in cells if not self.judge.rejections_for(config, problem)]

    def _begin(self, cells: int, reused: int) -> None:
        self.observe(events.BatchBegan(self.purpose, cells, reused))

    def _races(self, groups: Sequence[Sequence[Cell]], known: Mapping[Cell, Measurement]) -> list[_Race]:
        """What is not known of each group, with what is known as its rivals.

        A cell of several groups, which may lose in one and win in another, goes by itself: it is measured once, and
        not stopped.
        """
        times = Counter(cell for group in groups for cell in set(group))
        shared = [_Race((cell,)) for cell, count in times.items() if count > 1 and cell not in known]
        races = [
            _Race(
                tuple(dict.fromkeys(cell for cell in group if times[cell] == 1 and cell not in known)),
                _fastest((cell[1], known[cell]) for cell in group if cell in known),
            )
            for group in groups
        ]
        return [replace(race, cells=self._in_order(race.cells)) for race in (*shared, *races) if race.cells]

    def _in_order(self, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        """On a device of its own those first that the family guesses to be the fastest, so that they stop the others
        early; the bench takes them problem by problem.

        On the host's CPU, where compiling takes turns with timing, one configuration after the other.
        """
        if self.judge.target.shares_the_host:
            return tuple(cells)
        return tuple(sorted(cells, key=lambda cell: self.judge.guess(*cell)))

    def _run(self, races: Sequence[_Race], round_: str, racing: bool) -> None:
        """Measure and commit; a second result for a cell (it broke the worker for another) is committed beside."""
        by_key = {self.key(cell): cell for race in races for cell in race.cells}
        jobs = [[self._job(cell) for cell in {self.key(cell): cell for cell in race.cells}.values()] for race in races]
        done: set[str] = set()
        for job, measurement in self.bench.run(jobs, racing, [race.rivals for race in races]):
            self._commit([(by_key[job.key], measurement)], round_ + RECHECK if job.key in done else round_)
            done.add(job.key)
            self._check_budget()

    def _interleave(self, cells: Sequence[Cell]) -> dict[Cell, Measurement]:
        by_key = {self.key(cell): cell for cell in cells}
        round_ = "confirm/" + hashlib.sha256("".join(sorted(by_key)).encode()).hexdigest()[:16]
        found = self.store.find(by_key, round_)
        self._begin(len(by_key), len(found))
        if len(found) == len(by_key):
            self.ledger.reused += len(found)
        else:
            self._check_budget()
            ordered = list(by_key.values())
            measured = self.bench.interleave([self._job(cell) for cell in ordered])
            self._commit(list(zip(ordered, measured, strict=True)), round_)
            found = self.store.find(by_key, round_)
        return {cell: found[self.key(cell)] for cell in cells}

    def _job(self, cell: Cell) -> Job:
        config, problem = cell
        family, target = self.judge.family(config), self.judge.target
        own = self.judge.launched(config, problem).configuration
        small = self._operation.small(problem)
        probe = problem if any(family.rejections_for(own, small, target)) else small

        def bind(facts: Sequence[CompiledFacts]) -> Bound | Rejection:
            refused = next(family.rejections_compiled(own, facts, target), None)
            if refused:
                return refused
            checks = family.checks(own, problem, self._operation.checks(problem))
            return Bound(
                family.plan(own, problem, target, facts),
                tuple((check, family.plan(own, check, target, facts)) for check in checks),
            )

        modules = family.modules(own, problem.type)
        return Job(self.key(cell), modules, problem, (probe, family.plan(own, probe, target)), bind)

    def _commit(self, done: Sequence[tuple[Cell, Measurement]], round_: str) -> None:
        entries = [
            Entry(
                key=self.key(cell),
                round=round_,
                identity=self.judge.identity(self.judge.launched(*cell).configuration),
                solution=self.judge.launched(*cell),
                problem=cell[1],
                target=self.judge.target,
                toolchain=self.toolchain(cell[0]),
                measurement=measurement,
            )
            for cell, measurement in done
        ]
        reached("committing")
        self.store.commit(entries)
        reached("committing")
        for (config, problem), measurement in done:
            self.ledger.add(measurement.cost)
            rate = self.judge.work(problem) / measurement.estimate.seconds if measurement.estimate else None
            self.observe(
                events.CellMeasured(self.judge.solution(config), problem, measurement, rate, self._operation.unit)
            )

    def _check_budget(self) -> None:
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfBudgetError


def _repetitions(rounds: int) -> list[str]:
    """The store's names of the rounds after the first."""
    return [f"{FULL}/{round_}" for round_ in range(2, rounds + 2)]


@dataclass(frozen=True)
class _Race:
    """Cells that compete, and what they have to beat: seconds by problem."""

    cells: tuple[Cell, ...]
    rivals: Mapping[Problem, float] = field(default_factory=dict)


def _cells(group: Sequence[Configuration], problems: Sequence[Problem]) -> Iterator[Cell]:
    return ((config, problem) for config in group for problem in problems)


def _fastest(known: Iterable[tuple[Problem, Measurement]]) -> dict[Problem, float]:
    """The smallest upper end of an interval for each problem that anything ran on."""
    best: dict[Problem, float] = {}
    for problem, measurement in known:
        if measurement.ok and measurement.estimate:
            best[problem] = min(best.get(problem, math.inf), measurement.estimate.high)
    return best


def failed(measurement: Measurement) -> bool:
    """It was tried and did not run right: something for a person to look at."""
    return measurement.outcome not in (Outcome.OK, Outcome.REJECTED)
