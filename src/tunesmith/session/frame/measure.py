"""The protocol's `measure` (`RecordedMeasure`): cells come from the store if it has them, else the bench measures them.

A stored measurement is used if `reuse.ReuseRule` says so. All results of the bench are committed to the store at once.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tunesmith.bench import Bench, Job, Policy
from tunesmith.bench.injected_faults import pass_point
from tunesmith.bench.machine_failures import machine_failure
from tunesmith.problems import OPERATIONS
from tunesmith.protocol import Cell, TimeTable
from tunesmith.records import Configuration, Estimate, Measurement, Problem
from tunesmith.store import (
    RECHECK,
    RenewedKey,
    Store,
    StoreEntry,
    answering,
    combined_rounds,
    confirm_round,
    full_round_name,
    measurement_key,
)
from tunesmith.toolchains import TOOLCHAINS

from . import events
from .ahead import InterleavedCells, Questions, first_round
from .firsts import with_firsts
from .ledger import Ledger, OutOfBudgetError
from .many_devices import Confirmation, ManyDevices, host_of
from .oracle import ConfigurationOracle
from .order import CellRace, Rank, in_order
from .reuse import ReuseRule, failed

AfterScreening = Callable[["RecordedMeasure"], None]
"""Called when a screening has measured some of its cells for the first time."""

BeforeScreening = Callable[["RecordedMeasure", Sequence[Cell], bool, bool], None]
"""Called with the legal cells of a screening, whether they race, and whether some are about to be measured."""


class RecordedMeasure:
    """Measures configurations of one problem type, each cell at most once in the life of a store.

    A committed measurement that `ReuseRule` accepts is never made again. So a run that was killed resumes where it
    stood and, since the protocol is a function of the measurements, comes to the same winners. A failure that the
    machine caused is remembered in this run only: it is not committed, so the next run measures the cell.
    """

    def __init__(
        self,
        oracle: ConfigurationOracle,
        bench: Bench,
        store: Store,
        policy: Policy,
        ledger: Ledger,
        observe: events.Observer = events.nobody,
        deadline: float | None = None,
        reuse_rule: ReuseRule | None = None,
        after_screening: AfterScreening = lambda measure: None,
        rank: Rank | None = None,
        before_screening: BeforeScreening = lambda measure, cells, racing, measures: None,
    ) -> None:
        self.oracle, self.bench, self.store, self.policy = oracle, bench, store, policy
        self.ledger, self.observe, self.deadline = ledger, observe, deadline
        self.reuse_rule = reuse_rule or ReuseRule()
        self._before_screening, self._after_screening, self._rank = before_screening, after_screening, rank
        self.purpose, self.questions = "", Questions()
        self._operation = OPERATIONS[oracle.problem_type.operation]
        self._keys: dict[Cell, str] = {}
        self._versions: dict[str, str] = {}
        self._remembered: dict[str, Mapping[str, Measurement]] = {}
        self._replaced: set[tuple[str, str]] = set()
        self._stored: list[Problem] | None = None
        self._unstored: dict[str, dict[str, Measurement]] = {}
        self.firsts: dict[Problem, Cell] = {}  # see `firsts.with_firsts`
        self.ahead: set[tuple[str, str]] = set()
        """Keys and rounds that were measured before the plan asked: they do not count as reused."""

    def screen(self, groups: Sequence[Sequence[Configuration]], problems: Sequence[Problem], racing: bool) -> TimeTable:
        """The times of every legal configuration on every problem, each measured once; see `protocol.Measure`."""
        return self.screen_cells([list(_cells(group, problems)) for group in groups], racing)

    def screen_cells(self, groups: Sequence[Sequence[Cell]], racing: bool) -> TimeTable:
        """As `screen`, for groups of cells: the groups may have different problems."""
        grouped = [self._legal(group) for group in groups]
        legal = list(dict.fromkeys(cell for group in grouped for cell in group))
        known = self.lookup(legal, racing)
        self._reuse(known, first_round(racing))
        self._begin(len(legal), len(known))
        self._before_screening(self, legal, racing, len(known) < len(legal))
        known = with_firsts(self, legal, known, racing)
        if len(known) < len(legal):
            self._run(self._races(grouped, known), first_round(racing), racing)
            self._after_screening(self)
            known = self.lookup(legal, racing)
        self.ledger.failures |= {
            self.key(cell): f"{m.outcome.value}: {m.reason}"
            for cell, m in known.items()
            if failed(m.outcome) and not machine_failure(m)
        }
        return TimeTable(_times(known))

    def missing(self, groups: Sequence[Sequence[Cell]], racing: bool) -> list[CellRace]:
        """The races that `screen_cells` would have measured now. They count as the plan's when it asks for them."""
        grouped = [self._legal(group) for group in groups]
        legal = list(dict.fromkeys(cell for group in grouped for cell in group))
        known = self.lookup(legal, racing)
        self._before_screening(self, legal, racing, len(known) < len(legal))
        races = self._races(grouped, with_firsts(self, legal, known, racing))
        self.ahead |= {(self.key(cell), first_round(racing)) for race in races for cell in race.cells}
        return races

    def times(self, cells: Sequence[Cell], racing: bool) -> dict[Cell, Estimate]:
        """The times of the cells that ran."""
        return _times(self.lookup(cells, racing))

    def renew(self, cells: Sequence[Cell], racing: bool) -> None:
        """Measure cells again, without racing, after the machine has changed since their first times."""
        round_ = first_round(racing) + RECHECK
        stale = tuple(cell for cell in cells if round_ not in self.rounds(cell))
        if stale:
            self.observe(events.BatchBegan(f"{self.purpose}, again after a change of speed", len(stale), 0))
            self._run([CellRace(stale)], round_, racing=False)

    def confirm(self, configs: Sequence[Configuration], problems: Sequence[Problem]) -> TimeTable:
        """Measure finalists again, interleaved; see `protocol.Measure`. Samples of one problem are committed together.

        This is what decides between finalists: `protocol.choose` compares the interleaved samples.
        """
        cells: dict[Cell, Measurement] = {}
        for problem in problems:
            # Over several problems blocks are added up, so all problems need equally many blocks.
            cells.update(self._interleave([(config, problem) for config in configs], until_clear=len(problems) == 1))
        ran = {cell: m for cell, m in cells.items() if m.ok and m.estimate}
        return TimeTable(
            {cell: m.estimate for cell, m in ran.items() if m.estimate}, {cell: m.samples for cell, m in ran.items()}
        )

    def repeat(self, configs: Sequence[Configuration], problem: Problem, rounds: int) -> None:
        """Measure the configurations that ran in more rounds, in alternating order, so that a machine whose speed
        changes from minute to minute favours none of them."""
        legal = self._legal(_cells(configs, [problem]))
        ran = [cell for cell, known in self.lookup(legal, racing=False).items() if known.ok]
        for round_ in _repetitions(rounds):
            ran.reverse()
            missing = tuple(cell for cell in ran if round_ not in self.rounds(cell))
            self.ledger.reused += len(ran) - len(missing)
            self._begin(len(ran), len(ran) - len(missing))
            if missing:
                self._run([CellRace(missing)], round_, racing=False)

    def over_rounds(self, cells: Iterable[Cell], rounds: int) -> dict[Cell, Measurement]:
        """The measurements of cells, with the samples of the first round and of so many further rounds."""
        known, among = self.lookup(list(cells), racing=False), _repetitions(rounds)

        def later(cell: Cell) -> dict[str, Measurement]:
            return {name: taken for name, taken in self.rounds(cell).items() if name in among}

        return {cell: combined_rounds(first, later(cell)) for cell, first in known.items()}

    def again(self, cell: Cell, round_: str) -> Measurement:
        """One cell measured under a named round of its own (a visit of the anchor), or found there."""
        if round_ not in self.rounds(cell):
            self._run([CellRace((cell,))], round_, racing=False)
        return self.rounds(cell)[round_]

    def everywhere(self, cell: Cell, round_of: Callable[[str], str]) -> dict[str, Measurement]:
        """One cell measured on each device, by the device's name, under the round that `round_of` gives the device. A
        bench of one device has no name for it."""
        if not isinstance(self.bench, ManyDevices):
            return {"": self.again(cell, round_of(""))}
        measured: dict[str, Measurement] = {}
        for measurement in self.bench.everywhere(self.job(cell)):
            self.commit([(cell, measurement)], round_of(measurement.device))
            measured[measurement.device] = measurement
        return measured

    def lookup(self, cells: Sequence[Cell], racing: bool = True) -> dict[Cell, Measurement]:
        """The stored measurements that answer for cells (`answering`)."""
        self._recall(cells)
        found = {cell: answering(self.rounds(cell), racing) for cell in cells}
        return {cell: answer for cell, answer in found.items() if answer}

    def rounds(self, cell: Cell) -> Mapping[str, Measurement]:
        """All usable measurements of a cell, by round. The store is asked once, for all cells of a step."""
        self._recall([cell])
        return self._remembered[self.key(cell)]

    def key(self, cell: Cell) -> str:
        """The store's key of a cell."""
        if cell not in self._keys:
            self._keys[cell] = self._key(cell, cell[1])
        return self._keys[cell]

    def _key(self, cell: Cell, written: Problem) -> str:
        """A cell's key, with the problem in the form `written`."""
        config, problem = cell
        family, solution, target = self.oracle.family(config), self.oracle.launched(*cell), self.oracle.target
        plan = family.timed(family.plan(solution.configuration, problem, target))
        return measurement_key(
            target=target,
            toolchain=self.toolchain(config),
            identity=self.oracle.identity(solution.configuration),
            plan_digest=plan.digest(),
            problem=written,
            policy=self.policy.key(),
        )

    def toolchain(self, config: Configuration) -> str:
        language = self.oracle.family(config).language
        if language not in self._versions:
            self._versions[language] = TOOLCHAINS[language].version(self.oracle.target)
        return self._versions[language]

    def _recall(self, cells: Iterable[Cell]) -> None:
        missing = {key: cell for cell in cells if (key := self.key(cell)) not in self._remembered}
        if missing:
            self.store.ask_for(missing)
            self._carry_over(missing.values())
            self.reuse_rule.measured_now |= self.store.made_by(self.reuse_rule.resumed, missing)
            for key, rounds in self.store.rounds(missing).items():
                reused = {name: stored for name, stored in rounds.items() if self.reuse_rule.reuses(key, name, stored)}
                self._replaced |= {(key, name) for name in rounds.keys() - reused.keys()}
                self._remembered[key] = reused | self._unstored.get(key, {})

    def _carry_over(self, cells: Iterable[Cell]) -> None:
        """Copy measurements of these cells that earlier versions stored under other keys to today's keys."""
        renewed = {
            self._key(cell, former): RenewedKey(self.key(cell), self.oracle.launched(*cell), cell[1])
            for cell in cells
            for former in self._former(cell[1])
        }
        if renewed:
            self.store.carry_over(renewed)

    def _former(self, problem: Problem) -> Iterator[Problem]:
        """A problem in the forms in which an earlier version may have stored it."""
        for former in self._operation.former(problem):
            yield former
            self._stored = self.store.problems(problem.type.name) if self._stored is None else self._stored
            yield from (stored for stored in self._stored if self._operation.was_moved(former, stored))

    def _legal(self, cells: Iterable[Cell]) -> list[Cell]:
        return [(config, problem) for config, problem in cells if not self.oracle.rejections_for(config, problem)]

    def _begin(self, cells: int, reused: int) -> None:
        self.observe(events.BatchBegan(self.purpose, cells, reused))

    def _races(self, groups: Sequence[Sequence[Cell]], known: Mapping[Cell, Measurement]) -> list[CellRace]:
        """The cells of each group that are not measured yet, with the fastest known times as rivals.

        A cell of several groups may lose in one and win in another. It is a race by itself: measured once, not stopped.
        """
        times = Counter(cell for group in groups for cell in set(group))
        shared = [CellRace((cell,)) for cell, count in times.items() if count > 1 and cell not in known]
        races = [
            CellRace(
                tuple(dict.fromkeys(cell for cell in group if times[cell] == 1 and cell not in known)),
                _fastest((cell[1], known[cell]) for cell in group if cell in known),
            )
            for group in groups
        ]
        return in_order([race for race in (*shared, *races) if race.cells], self.oracle, self._rank)

    def _run(self, races: Sequence[CellRace], round_: str, racing: bool) -> None:
        self.questions.measure_races(self, races, round_, racing)

    def _interleave(self, cells: Sequence[Cell], until_clear: bool) -> dict[Cell, Measurement]:
        interleaved = self.unconfirmed(cells, until_clear)
        self._begin(len(interleaved.cells), interleaved.known)
        pass_point("confirming")
        round_ = interleaved.round
        if interleaved.known == len(interleaved.cells):
            self._reuse(interleaved.cells, round_)
        else:
            self.check_budget()
            measured = self.bench.interleave(interleaved.asked.jobs, until_clear)
            self.commit(list(zip(interleaved.cells, measured, strict=True)), round_)
        return {cell: self.rounds(cell)[round_] for cell in cells}

    def unconfirmed(self, cells: Sequence[Cell], until_clear: bool) -> InterleavedCells:
        """The cells of one problem as they are to be interleaved, and how many of them have the samples already."""
        by_key = {self.key(cell): cell for cell in cells}
        round_ = confirm_round(by_key)
        self._recall(cells)
        found = [key for key, cell in by_key.items() if round_ in self.rounds(cell)]
        if len(found) < len(by_key):
            # Samples of one block belong together, so all of them are taken again if any is missing.
            self._replaced |= {(key, round_) for key in found}
        jobs = tuple(map(self.job, by_key.values()))
        return InterleavedCells(tuple(by_key.values()), round_, len(found), Confirmation(jobs, until_clear))

    def announce(self, confirmations: Iterable[tuple[Sequence[Configuration], Sequence[Problem]]]) -> None:
        """Measure finalists that `confirm` will be asked about, if there are several devices."""
        if isinstance(self.bench, ManyDevices):
            self.questions.interleave([(self, configs, problems) for configs, problems in confirmations])

    def job(self, cell: Cell) -> Job:
        """A cell as the bench is asked for it."""
        first = self.firsts.get(cell[1])
        return Job(self.key(cell), self.oracle.launched(*cell), cell[1], first and self.oracle.launched(*first))

    def _reuse(self, cells: Iterable[Cell], round_: str) -> None:
        """Count cells as found in the store, unless this run measured them ahead."""
        for cell in cells:
            ahead = (self.key(cell), round_)
            self.ledger.reused += ahead not in self.ahead
            self.ahead.discard(ahead)

    def commit(self, done: Sequence[tuple[Cell, Measurement]], round_: str) -> None:
        """Commit measurements of one round, those of one interleaved problem together."""
        entries: list[StoreEntry] = []
        for cell, measurement in done:
            key = self.key(cell)
            if reason := machine_failure(measurement):
                self.ledger.unmeasured[key] = f"{measurement.outcome.value}: {reason}"
                # A second result that the machine caused does not invalidate the first.
                if not round_.endswith(RECHECK):
                    self._unstored.setdefault(key, {})[round_] = measurement
                continue
            self.ledger.unmeasured.pop(key, None)
            entries.append(self._entry(cell, round_, measurement))
        pass_point("committing")
        committed = {(entry.key, round_) for entry in entries}
        base = round_.removesuffix(RECHECK)
        replacing = {(key, round_) for key, _ in committed if {(key, round_), (key, base)} & self._replaced}
        self.store.commit(entries, **({"replacing": replacing} if replacing else {}))
        self.reuse_rule.measured_now |= committed
        for cell, _ in done:
            # The store has the last word: another run may have committed the same cell before.
            self._remembered.pop(self.key(cell), None)
        pass_point("committing")
        for (config, problem), measurement in done:
            self.ledger.add(measurement.cost)
            rate = self.oracle.work(problem) / measurement.estimate.seconds if measurement.estimate else None
            self.observe(
                events.CellMeasured(self.oracle.solution(config), problem, measurement, rate, self._operation.unit)
            )

    def _entry(self, cell: Cell, round_: str, measurement: Measurement) -> StoreEntry:
        solution, target = self.oracle.launched(*cell), self.oracle.target
        identity, toolchain = self.oracle.identity(solution.configuration), self.toolchain(cell[0])
        measured = replace(measurement, host=host_of(measurement, target))
        return StoreEntry(self.key(cell), round_, identity, solution, cell[1], target, toolchain, measured)

    def check_budget(self) -> None:
        """Raises OutOfBudgetError when the time is spent."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise OutOfBudgetError


ROUNDS_MORE = {"CPU": 2, "GPU": 0}
"""The number of further rounds, by the kind of device, for cells that are compared over minutes. A CPU shares its
clock, caches and cores with other processes: two runs a minute apart put 16 % of the pairs of kernels that their
intervals told apart into opposite orders (256 squares on 2 cores of a virtual machine, 2026-11-21)."""


def _times(known: Mapping[Cell, Measurement]) -> dict[Cell, Estimate]:
    return {cell: m.estimate for cell, m in known.items() if m.ok and m.estimate}


def _repetitions(rounds: int) -> list[str]:
    """The store's names of the rounds after the first."""
    return [full_round_name(round_) for round_ in range(2, rounds + 2)]


def _cells(group: Sequence[Configuration], problems: Sequence[Problem]) -> Iterator[Cell]:
    return ((config, problem) for config in group for problem in problems)


def _fastest(known: Iterable[tuple[Problem, Measurement]]) -> dict[Problem, float]:
    """For each problem on which a cell ran, the smallest upper end of an interval, in seconds."""
    best: dict[Problem, float] = {}
    for problem, measurement in known:
        if measurement.ok and measurement.estimate:
            best[problem] = min(best.get(problem, math.inf), measurement.estimate.high)
    return best
