"""`carry_out` runs a command's plan in a folder. Whatever ends the run, all that was decided is written.

A `RunPlan` decides which cells are measured, who wins and what is written. The `Run` has the store, the benches and the
deadline.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from tunesmith.bench import Bench, Policy, Spawner
from tunesmith.bench.injected_faults import pass_point
from tunesmith.devices import environment
from tunesmith.models.stream_k.open_grids import OpenGrids
from tunesmith.records import ProblemType, Solution, Target, UserError
from tunesmith.store import VARIABLE, FolderStore, RunState, StepRecord, Store, StoreLocation, remember, store_for

from . import events
from .ahead import Questions
from .drift import Anchor
from .earlier import SizeKey
from .health import HealthWatch
from .ledger import OutOfBudgetError
from .lock import held_folder
from .logic_check import check_logic, checker_count, started_checker
from .many_devices import BenchFactory, DeviceShare, ManyDevices
from .measure import RecordedMeasure
from .oracle import ConfigurationOracle
from .order import Rank
from .outputs import CACHE, LOGIC, Output
from .record import RunOutcome, recorded_run
from .reuse import Reuse, ReuseRule
from .together import Part, Together

IN_MEMORY = Path(":memory:")
"""SQLite's name for a database that lives in memory until it is closed."""

WRITING_SHARE = 0.05
"""The share of a run's time that writing interim results may take."""


class RunPlan(ABC):
    """What a command hands to a run: which cells are measured in which order, who wins, and which files are written.

    A plan opens nothing, times nothing and writes nothing itself: it asks the `Run`. The plan keeps its decisions, so
    that `outputs` has an answer whenever the run ends.
    """

    target: Target
    policy: Policy
    file: Path | None = None
    """The file that describes the work, for the store's record of the run."""
    steps: int = 1
    """The number of measuring steps, for the display."""
    loads_the_host: bool = True
    """Whether the plan's own work keeps most of the host's processors busy. If so, and if the device is the host's CPU,
    the host's load does not show other processes: only the anchor does."""
    measures: bool = True
    """A plan that measures nothing leaves no store in the folder."""
    checks_logic: bool = True
    """Whether the written logic is loaded and launched at the end. It need not be if no program will load it."""
    may_share: bool = False
    """Whether the measurements of a new folder go into the store that the environment names, if there is one."""

    def rank(self, oracle: ConfigurationOracle) -> Rank | None:
        """The rank by which a step's cells are measured, lowest first; None leaves them in their order."""
        return None

    @abstractmethod
    def carry_out(self, run: Run) -> None:
        """Measure and decide, and call `run.decided` after each decision. Exceptions of the run are passed on."""

    @property
    def unfinished(self) -> str:
        """What is still undecided, in words; empty when everything is decided."""
        return ""

    def outputs(self, run: Run) -> Iterator[Output]:
        """The files that hold all decisions so far, marked if they are unfinished; none without a decision."""
        yield from ()

    def remarks(self) -> Iterator[str]:
        """Sentences about what a person should look at when the run has ended."""
        yield from ()


PlanT = TypeVar("PlanT", bound=RunPlan)


def carry_out(
    plan: PlanT,
    folder: Path,
    *,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    store: str | None = None,
    wait: bool = False,
    observe: events.Observer = events.nobody,
    benches: BenchFactory | None = None,
) -> RunOutcome[PlanT]:
    """Carry out a plan; everything goes into `folder`, and the same call resumes a run that was stopped.

    The run ends when `budget_minutes` are spent. `reuse` says which measurements in the folder's store are used again.
    `store` is the path or URL of the folder's store; without it, that is the store that the folder has, or a file in
    it. One run at a time works in a folder: if another does, UserError says who, or this run waits (`wait`).
    `benches` makes benches of several devices, which may be on other hosts; without it a bench here measures.
    Raises UserError and KeyboardInterrupt, after all decisions are written.
    """
    held = held_folder(folder, wait, lambda sentence: observe(events.Message(sentence)))
    with held if plan.measures else nullcontext():
        return _carried_out(plan, folder, budget_minutes, reuse, store, observe, benches)


def _carried_out(
    plan: PlanT,
    folder: Path,
    budget_minutes: float | None,
    reuse: Reuse,
    named: str | None,
    observe: events.Observer,
    benches: BenchFactory | None,
) -> RunOutcome[PlanT]:
    outcome = RunOutcome(plan, plan.target, folder)
    health = HealthWatch(plan.target)
    own_load_only = plan.target.shares_the_host and plan.loads_the_host
    # With several devices the plan's device need not be on this host.
    watching = observe if own_load_only or benches else health.watching(observe)
    deadline = time.monotonic() + 60 * budget_minutes if budget_minutes else None
    observe(events.RunBegan(plan.target, plan.steps))
    default = os.environ.get(VARIABLE) if plan.may_share else None
    kept = store_for(folder, named, default) if plan.measures else FolderStore(StoreLocation(IN_MEMORY))
    with Store.open(kept) as store, ExitStack() as opened:
        remember(folder, kept)
        reuse_rule = ReuseRule.of(store, reuse)
        number = opened.enter_context(recorded_run(outcome, store, plan.file, reuse is Reuse.NONE))
        run = Run(outcome, store, number, events.BatchMerger(watching), deadline, opened, reuse_rule)
        run.health, run.benches = health, benches
        try:
            try:
                plan.carry_out(run)
            except OutOfBudgetError:
                outcome.state = RunState.INTERRUPTED
                outcome.look_at.append("the budget is spent; the same command with more goes on")
            run.close()
        except BaseException:
            # The caller must get the exception that ended the run, not a second one from writing.
            with suppress(UserError):
                run.write_decided()
            raise
        finally:
            outcome.drift, outcome.health = run.anchor.worst, health.facts()
            outcome.devices = run.devices()
            outcome.cautions = run.cautions()
            outcome.look_at += [*plan.remarks(), *run.remarks(), *health.sentences()]
    return outcome


@dataclass
class Run:
    """What a plan may ask for while it is carried out. `number` identifies the run in the store."""

    outcome: RunOutcome[Any]
    store: Store
    number: str
    observe: events.BatchMerger
    deadline: float | None
    opened: ExitStack
    reuse_rule: ReuseRule = field(default_factory=ReuseRule)
    _benches: dict[Target, Bench] = field(default_factory=dict)
    _measures: dict[tuple[ProblemType, Target], RecordedMeasure] = field(default_factory=dict)
    _write_from: float = 0.0
    found: dict[Path, Mapping[SizeKey, tuple[Solution, ...]]] = field(default_factory=dict)
    """The solutions in the folder's logic files when the run began, by the file's path within the folder."""
    notes: dict[Path, str] = field(default_factory=dict)
    """A sentence about each logic file, said when the run closes."""
    health: HealthWatch | None = None
    benches: BenchFactory | None = None
    _complaints: dict[str, None] = field(default_factory=dict)
    _written_cautions: list[str] = field(default_factory=list)
    """The cautions that the files last written contain."""

    def __post_init__(self) -> None:
        self.plan: RunPlan = self.outcome.plan
        self.anchor = Anchor(self.observe, complain=self.complain, series=self.store.folder)
        self.grids = OpenGrids(self.outcome.target, [self.outcome.folder / LOGIC], self.say)

    def measure(self, kind: ProblemType, target: Target | None = None) -> RecordedMeasure:
        """The `RecordedMeasure` for problems of a type. `target` may name another API of the plan's device."""
        device = target or self.outcome.target
        if (kind, device) not in self._measures:
            oracle = ConfigurationOracle(kind, device, self.grids)
            self._measures[kind, device] = RecordedMeasure(
                oracle,
                self.bench(device),
                self.store,
                self.plan.policy,
                self.outcome.ledger,
                self.observe,
                self.deadline,
                self.reuse_rule,
                self.anchor.visit_if_due,
                self.plan.rank(oracle),
                self.anchor.before_screening,
            )
        return self._measures[kind, device]

    @cached_property
    def spawner(self) -> Spawner:
        """Starts all child processes of the run, which share the folder's cache; the run closes it."""
        return self.opened.enter_context(Spawner(environment(self.outcome.folder / CACHE)))

    def bench(self, target: Target) -> Bench:
        """The run's bench on a device; the run closes it."""
        if target not in self._benches:
            policy, cache = self.plan.policy, self.outcome.folder / CACHE
            bench = self.benches(target, policy, cache, self.observe) if self.benches else None
            own = bench or Bench(target, policy, cache, self.observe, self.spawner)
            self._benches[target] = self.opened.enter_context(own)
        return self._benches[target]

    @property
    def device_count(self) -> int:
        """How many devices measure at once for the plan's target."""
        bench = self.bench(self.outcome.target)
        return max(1, len(bench.devices)) if isinstance(bench, ManyDevices) else 1

    def carry_out_together(self, parts: Sequence[Part]) -> None:
        """Carry out parts of the plan whose measures have been made, so that what they ask for is measured at once. No
        two parts may have the same measure."""
        together, measures = Together(), tuple(self._measures.values())
        for measure in measures:
            measure.questions = together
        try:
            together.carry_out(parts)
        finally:
            for measure in measures:
                measure.questions = Questions()

    def devices(self) -> tuple[DeviceShare, ...]:
        """What each device did, with its time of the anchor beside its siblings'; nothing with one device."""
        relative = self.anchor.relative_times()
        shares = (
            share for bench in self._benches.values() if isinstance(bench, ManyDevices) for share in bench.shares()
        )
        return tuple(replace(share, anchor=relative.get(share.device)) for share in shares)

    def say(self, sentence: str) -> None:
        self.observe(events.Message(sentence))

    def complain(self, sentence: str) -> None:
        """Add a sentence to those that a person should look at in the end; each is kept once."""
        self._complaints[sentence] = None

    @contextmanager
    def batch(self, purpose: str, cells: int) -> Iterator[None]:
        """A context in which everything that is measured is reported as one batch of so many cells."""
        with self.observe.together(events.BatchBegan(purpose, cells, 0)):
            yield

    def record_step(self, step: StepRecord) -> None:
        """Store a step's record, for `tunesmith show`."""
        self.store.record_step(self.number, step)

    def write(self, output: Output) -> tuple[Path, ...]:
        """Write one output now; the paths that were written. Raises UserError if a file cannot be written."""
        path = self.outcome.folder / output.path
        pass_point("writing")
        written = output.write(path)
        return written if isinstance(written, tuple) else (path,)

    def decided(self) -> None:
        """To be called after each decision: write all decisions, unless writing took too large a share of the time."""
        began = time.monotonic()
        if began >= self._write_from:
            self.write_decided()
            self._write_from = time.monotonic() + (time.monotonic() - began) / WRITING_SHARE
        pass_point("decided")

    def write_decided(self) -> None:
        """Write all files of the plan that hold decisions."""
        outcome = self.outcome
        outcome.written, outcome.logic_files, self._written_cautions = [], [], self.cautions()
        for output in self.plan.outputs(self):
            paths = self.write(output)
            outcome.written += paths
            outcome.logic_files += paths if output.is_logic else ()

    def close(self) -> None:
        """After the last decision: write, visit the anchor to see whether the machine has changed, check the logic."""
        self.write_decided()
        for note in filter(None, self.notes.values()):
            self.say(note)
        for measure in self._measures.values():
            measure.deadline = None  # the budget does not limit the anchor
        pass_point("closing")
        checks = self.plan.checks_logic and self.outcome.logic_files
        # They import while the anchor is measured, which must have a CPU for itself.
        ahead = checker_count() if checks and not self.outcome.target.shares_the_host else 0
        checkers = [started_checker(self.spawner) for _ in range(ahead)]
        for checker in checkers:
            self.opened.callback(checker.end)
        self.anchor.visit()
        if self.cautions() != self._written_cautions:
            self.write_decided()
        if checks:
            self.outcome.look_at += check_logic(self.outcome.logic_files, self.spawner, checkers=checkers)

    def remarks(self) -> Iterator[str]:
        """Sentences for a person that any command's run may have."""
        yield from self._complaints
        if self.plan.unfinished and not self.outcome.written:
            yield "nothing is decided yet, so no results are written"
        elif self.plan.unfinished:
            yield f"the results are unfinished: {self.plan.unfinished}"
        yield from self._drifted()
        if unmeasured := Counter(self.outcome.ledger.unmeasured.values()):
            reasons = ", ".join(f"{why} ({count})" for why, count in unmeasured.most_common())
            yield f"some could not be measured because of this machine: {reasons}; the same command measures them"
        if failed := self.outcome.failed:
            reasons = ", ".join(f"{why} ({count})" for why, count in failed.most_common())
            yield f"some did not run right: {reasons}; `tunesmith show` on the folder gives examples"

    def cautions(self) -> list[str]:
        """Reasons to trust the times less than their intervals say. They are also written into result files."""
        return [*self._drifted(), *(self.health.sentences() if self.health else ())]

    def _drifted(self) -> Iterator[str]:
        if (drift := self.anchor.worst) and drift.alarm:
            yield f"the anchor drifted to {drift.ratio:.2f} of its first time during the run"
