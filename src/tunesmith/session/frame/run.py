"""One command's work in one folder: a plan is carried out, and whatever ends it, all that was decided is written."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tunesmith.bench import Bench, Policy
from tunesmith.bench.injected_faults import reached
from tunesmith.models.stream_k.open import OpenGrids
from tunesmith.records import ProblemType, Solution, Target, UserError
from tunesmith.store import RunState, StepRecord, Store

from . import events
from .drift import Anchor
from .earlier import Where
from .health import HealthWatch
from .logic_check import watch
from .measure import OutOfBudgetError, RecordedMeasure
from .oracle import ConfigurationOracle
from .order import Rank
from .outputs import CACHE, LOGIC, STORE, Output
from .record import RunOutcome, recorded
from .reuse import Counting, Reuse

IN_MEMORY = Path(":memory:")
"""SQLite's name for a database that is gone when it is closed."""

WRITING_SHARE = 0.05
"""Of a run's time that writing what is decided so far may take."""


class RunPlan(ABC):
    """What a command hands to a run: which cells are measured in which order, how winners are settled, what is written.

    A plan opens nothing, times nothing and writes nothing itself: it asks the run. It keeps what it decided, so that
    `outputs` can be asked for whenever the run ends.
    """

    target: Target
    policy: Policy
    file: Path | None = None
    """What describes the work, for the store's record of the run."""
    steps: int = 1
    """Measuring steps, for the display."""
    loads_the_host: bool = True
    """Whether its own work keeps more of the host's processors busy than a device has that is the host's CPU: then the
    host's load says nothing of other work, and only the anchor does."""
    measures: bool = True
    """A plan that measures nothing leaves no store in the folder."""

    def rank(self, oracle: ConfigurationOracle) -> Rank | None:
        """What is measured first among the cells of a step; None leaves them in their order."""
        return None

    @abstractmethod
    def carry_out(self, run: Run) -> None:
        """Measure and decide; tell the run of each decision. What the run raises is passed on."""

    @property
    def unfinished(self) -> str:
        """What is still undecided, in words; empty when everything is decided."""
        return ""

    def outputs(self, run: Run) -> Iterator[Output]:
        """The files that say all that is decided so far, marked where they are unfinished; none without a decision."""
        yield from ()

    def remarks(self) -> Iterator[str]:
        """Sentences about what a person should look at, in the end."""
        yield from ()


PlanT = TypeVar("PlanT", bound=RunPlan)


def carry_out(
    plan: PlanT,
    folder: Path,
    *,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    observe: events.Observer = events.nobody,
) -> RunOutcome[PlanT]:
    """Carry out a plan; everything goes into `folder`, and the same call goes on with a run that was stopped.

    `budget_minutes` end the run when they are spent; `reuse` says what counts of what the folder's store has. Raises
    UserError and KeyboardInterrupt, after what was decided is written.
    """
    outcome = RunOutcome(plan, plan.target, folder)
    health = HealthWatch(plan.target)
    watched = observe if plan.target.shares_the_host and plan.loads_the_host else health.beside(observe)
    deadline = time.monotonic() + 60 * budget_minutes if budget_minutes else None
    observe(events.RunBegan(plan.target, plan.steps))
    location = folder / STORE if plan.measures else IN_MEMORY
    with Store.open(location) as store, ExitStack() as opened:
        counting = Counting.of(store, reuse)
        number = opened.enter_context(recorded(outcome, store, plan.file, reuse is Reuse.NONE))
        run = Run(outcome, store, number, events.Batches(watched), deadline, opened, counting)
        run.health = health
        try:
            try:
                plan.carry_out(run)
            except OutOfBudgetError:
                outcome.state = RunState.INTERRUPTED
                outcome.look_at.append("the budget is spent; the same command with more goes on")
            run.close()
        except BaseException:
            # The caller has to hear of what ended the run, not of what stands in the way of writing too.
            with suppress(UserError):
                run.write_decided()
            raise
        finally:
            outcome.drift, outcome.health = run.anchor.worst, health.facts()
            outcome.cautions = run.cautions()
            outcome.look_at += [*plan.remarks(), *run.remarks(), *health.sentences()]
    return outcome


@dataclass
class Run:
    """What a plan may ask for while it is carried out. `number` is the run's in the store."""

    outcome: RunOutcome[Any]
    store: Store
    number: str
    observe: events.Batches
    deadline: float | None
    opened: ExitStack
    counting: Counting = field(default_factory=Counting)
    _benches: dict[Target, Bench] = field(default_factory=dict)
    _measures: dict[tuple[ProblemType, Target], RecordedMeasure] = field(default_factory=dict)
    _write_from: float = 0.0
    found: dict[Path, Mapping[Where, tuple[Solution, ...]]] = field(default_factory=dict)
    """What the logic files of the folder had when the run began, by path within it."""
    notes: dict[Path, str] = field(default_factory=dict)
    """What is said of files in the end."""
    health: HealthWatch | None = None
    _complaints: dict[str, None] = field(default_factory=dict)
    _told: list[str] = field(default_factory=list)
    """The cautions that what was written tells."""

    def __post_init__(self) -> None:
        self.plan: RunPlan = self.outcome.plan
        self.anchor = Anchor(self.observe)
        self.grids = OpenGrids(self.outcome.target, [self.outcome.folder / LOGIC], self.say)

    def measure(self, kind: ProblemType, target: Target | None = None) -> RecordedMeasure:
        """Measures problems of a type; `target` is another way to the same device, where it is not the plan's."""
        where = target or self.outcome.target
        if (kind, where) not in self._measures:
            oracle = ConfigurationOracle(kind, where, self.grids)
            self._measures[kind, where] = RecordedMeasure(
                oracle,
                self.bench(where),
                self.store,
                self.plan.policy,
                self.outcome.ledger,
                self.observe,
                self.deadline,
                self.counting,
                self.anchor.screened,
                self.plan.rank(oracle),
            )
        return self._measures[kind, where]

    def bench(self, target: Target) -> Bench:
        """The run's bench on a device; it is closed with the run."""
        if target not in self._benches:
            bench = Bench(target, self.plan.policy, self.outcome.folder / CACHE, self.observe)
            self._benches[target] = self.opened.enter_context(bench)
        return self._benches[target]

    def say(self, sentence: str) -> None:
        self.observe(events.Said(sentence))

    def complain(self, sentence: str) -> None:
        """Something for a person to look at in the end, once."""
        self._complaints[sentence] = None

    @contextmanager
    def batch(self, purpose: str, cells: int) -> Iterator[None]:
        """Within it, whatever is measured counts as one batch of so many cells."""
        with self.observe.together(events.BatchBegan(purpose, cells, 0)):
            yield

    def record_step(self, step: StepRecord) -> None:
        """For `tunesmith show`."""
        self.store.record_step(self.number, step)

    def write(self, output: Output) -> tuple[Path, ...]:
        """Write one file at once; the paths that were written. Raises UserError where the place cannot be written."""
        path = self.outcome.folder / output.path
        reached("writing")
        written = output.write(path)
        return written if isinstance(written, tuple) else (path,)

    def decided(self) -> None:
        """Something more is decided: write what there is, unless writing would take too large a share of the time."""
        began = time.monotonic()
        if began >= self._write_from:
            self.write_decided()
            self._write_from = time.monotonic() + (time.monotonic() - began) / WRITING_SHARE
        reached("decided")

    def write_decided(self) -> None:
        """Write the files that say what is decided."""
        outcome = self.outcome
        outcome.written, outcome.logic_files, self._told = [], [], self.cautions()
        for output in self.plan.outputs(self):
            paths = self.write(output)
            outcome.written += paths
            outcome.logic_files += paths if output.is_logic else ()

    def close(self) -> None:
        """Nothing more will be decided: write it, then look whether the machine has changed, and launch the logic."""
        self.write_decided()
        for note in filter(None, self.notes.values()):
            self.say(note)
        for measure in self._measures.values():
            measure.deadline = None  # the budget was for deciding
        reached("closing")
        self.anchor.visit()
        if self.cautions() != self._told:
            self.write_decided()
        self.outcome.look_at += watch(self.outcome.logic_files, self.outcome.folder / CACHE)

    def remarks(self) -> Iterator[str]:
        """What is to be said of every run."""
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
        """Why the times are less to be trusted than their intervals say; for what is written of them, too."""
        return [*self._drifted(), *(self.health.sentences() if self.health else ())]

    def _drifted(self) -> Iterator[str]:
        if (drift := self.anchor.worst) and drift.alarm:
            yield f"the anchor drifted to {drift.ratio:.2f} of its first time during the run"
