"""Sweeping stream-K: every product of a list on many grids, with many tiles split or few: what do predictions lose?"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tunesmith.bench import Bench
from tunesmith.devices import choose
from tunesmith.logic import write_atomically
from tunesmith.models.stream_k import Calibration, Calibrations, Choice, Room, Subject
from tunesmith.models.stream_k_file import read
from tunesmith.problems.gemm_list import ListedGemm, read_gemm_list
from tunesmith.protocol import Cell
from tunesmith.records import Estimate, ProblemType, Target, UserError
from tunesmith.session.frame import events
from tunesmith.session.frame.health import HealthWatch
from tunesmith.session.frame.measure import Ledger, RecordedMeasure, failed
from tunesmith.session.frame.record import booked, run_start
from tunesmith.session.tune.tuning import CACHE, STORE
from tunesmith.store import RunState, Store

from .calibrate import POLICY as CALIBRATING
from .choices import GRIDS, SPLITS
from .kernels import StreamKernel, TileFilter, asked, languages, model_parts, room_of
from .planned import Planned, Planner
from .refit import Refit, refit
from .runs import FirstRun, origin_of
from .swept import BEST_SPLIT, Swept, as_csv

TABLE, CALIBRATION = "sweep.csv", "calibration.yaml"
"""What lies in a sweep's folder, beside its store."""

FINALISTS = 9
"""Of a product: what was chosen by any way, and the fastest of the others."""

POLICY = replace(CALIBRATING, sampling_seconds=0.05, warm_up_seconds=0.02, confirm_blocks=9)
"""Less time for a launch than calibrating takes, which has few runs, each measured by itself. A sweep compares launches
of a product with each other, dozens of them, and scores the finalists in alternating blocks: what disturbs the device
disturbs all of them alike."""

RACED_TOGETHER = 8
"""Products whose races the bench is given at a time: while one is measured, the host makes inputs and reference of the
next. What is made for so few mostly stays in memory until their finalists are measured."""


@dataclass(frozen=True, slots=True)
class SweepTask:
    """A list of products, of `families` alone where any are named; the kernel as `calibrate stream-k` takes it; and how
    many `grids` are tried. `calibration` is asked and, with `refit`, fitted anew; without one, that in the folder."""

    products: Path
    what: str = "s"
    tile: TileFilter | None = None
    kernel: str = ""
    families: tuple[str, ...] = ()
    calibration: Path | None = None
    refit: bool = False
    grids: int = GRIDS
    compute_units: int | None = None
    occupancy: int = 1


@dataclass
class SweepOutcome:
    """What came of it, as far as it came: `swept` of `products`. `judged` is the way to decide that a library has."""

    target: Target
    folder: Path
    subject: Subject
    judged: str
    products: int
    swept: list[Swept] = field(default_factory=list)
    refit: Refit | None = None
    state: RunState = RunState.FINISHED
    ledger: Ledger = field(default_factory=Ledger)
    failed: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    look_at: list[str] = field(default_factory=list)
    health: dict[str, float] = field(default_factory=dict)

    @property
    def room(self) -> Room:
        return self.subject.room


def sweep_stream_k(
    task: SweepTask,
    folder: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    observe: events.Observer = events.nobody,
) -> SweepOutcome:
    """Measure, compare, and write a table into `folder`; the same call goes on with a stopped run.

    Raises UserError for a task that means nothing and files that are none, KeyboardInterrupt after everything was put
    away.
    """
    listed = _listed(task)
    path = task.calibration or folder / CALIBRATION
    known = read(path) if task.calibration or path.exists() else ()
    target = choose(device, languages=languages())
    kernel = _only(asked(task.what, task.tile, target, task.kernel), task.what)
    room = room_of(target, task.compute_units, task.occupancy)
    subject = Subject.of(target, kernel.kernel.name, kernel.data_type, kernel.tile, room)
    calibrations = Calibrations(known, lambda sentence: observe(events.Said(sentence)))
    model = calibrations.model(
        target, subject.kernel, subject.data_type, subject.tile, room, model_parts(kernel, room, target)
    )
    outcome = SweepOutcome(target, folder, subject, model.name, len(listed))
    observe(events.RunBegan(target, 1))
    watch = HealthWatch(target)
    watched = watch.beside(observe)
    deadline = time.monotonic() + 60 * budget_minutes if budget_minutes else None
    with (
        Store.open(folder / STORE) as store,
        booked(outcome, store, run_start(target, task.products), watch),
        Bench(target, POLICY, folder / CACHE, watched) as bench,
    ):
        planner = Planner(kernel, target, room, model, task.grids)
        sweeper = _Sweeper(outcome, planner, store, bench, watched, deadline)
        sweeper.sweep(listed)
        if task.refit:
            sweeper.refit(path, known)
    if outcome.swept:
        write_atomically(folder / TABLE, as_csv(outcome.swept, room.groups))
    return outcome


@dataclass
class _Sweeper:
    """Takes a few products at a time: all their choices, raced; then the finalists of each side by side."""

    outcome: SweepOutcome
    planner: Planner
    store: Store
    bench: Bench
    observe: events.Observer
    deadline: float | None
    first: FirstRun = field(default_factory=FirstRun)
    measures: dict[ProblemType, RecordedMeasure] = field(default_factory=dict)
    progress: events.BatchBegan = events.BatchBegan("", 0, 0)

    def sweep(self, listed: Sequence[ListedGemm]) -> None:
        planned = [one for one in map(self.planner.plan, listed) if one]
        if left_out := len(listed) - len(planned):
            tile, name = self.planner.kernel.tile, self.outcome.target.name
            self.outcome.look_at.append(f"{left_out} products of the list cannot run in tiles of {tile} on {name}")
        self.progress = events.BatchBegan(f"{len(planned)} products", sum(map(_count, planned)), 0)
        self.observe(self.progress)
        for together in _raced_together(planned):
            raced = self._raced(together)
            for one in together:
                swept = self._confirmed(one, raced)
                if swept.finals:
                    self.outcome.swept.append(swept)
        if self.outcome.failed:
            said = ", ".join(f"{why} ({count})" for why, count in self.outcome.failed.most_common())
            self.outcome.look_at.append(
                f"some did not run right: {said}; `tunesmith show` on the folder gives examples"
            )
        self.outcome.look_at += filter(None, [self.first.again()])

    def refit(self, path: Path, known: Sequence[Calibration]) -> None:
        outcome, kernel = self.outcome, self.planner.kernel
        origin = origin_of(kernel, self._measure(kernel.type))
        try:
            outcome.refit = refit(path, known, outcome.subject, origin, outcome.swept, self.planner)
        except ValueError as error:
            outcome.look_at.append(f"{outcome.subject}: {error}; sweep more products")

    def _raced(self, together: Sequence[Planned]) -> Mapping[Cell, Estimate]:
        """Products of one type, each a race of its own: no launch is stopped for another product's sake."""
        measure = self._measure(together[0].problem.type)
        times = measure.screen_cells([_cells(one) for one in together], racing=True).cells
        known = measure.lookup([cell for one in together for cell in _cells(one)]).values()
        self.outcome.failed.update(f"{m.outcome.value}: {m.reason}" for m in known if failed(m))
        return times

    def _confirmed(self, one: Planned, raced: Mapping[Cell, Estimate]) -> Swept:
        """A product whose race is over: its finalists side by side."""
        measure, problem = self._measure(one.problem.type), one.problem
        screened = {
            choice: raced[config, problem] for choice, config in one.configs.items() if (config, problem) in raced
        }
        said = {**one.said, **_best_split(screened)}
        finalists = {choice: one.configs[choice] for choice in _finalists(said.values(), screened)}
        times = measure.confirm(list(finalists.values()), [problem]).cells
        finals = {choice: times[config, problem] for choice, config in finalists.items() if (config, problem) in times}
        if finals:
            self.first.ran(measure, (finalists[next(iter(finals))], problem))
        return Swept(one.listed, problem, one.work, said, screened, finals)

    def _measure(self, kind: ProblemType) -> RecordedMeasure:
        if kind not in self.measures:
            self.measures[kind] = RecordedMeasure(
                self.planner.judge(kind),
                self.bench,
                self.store,
                POLICY,
                self.outcome.ledger,
                self._observe_cells,
                self.deadline,
            )
        return self.measures[kind]

    def _observe_cells(self, event: events.Event) -> None:
        """The whole sweep is one batch, whatever pieces it is measured in.

        What a piece found in the store, the display has to be told; what is measured, it counts itself.
        """
        match event:
            case events.BatchBegan(reused=reused):
                self.progress = replace(self.progress, reused=self.progress.reused + reused)
                if reused:
                    self.observe(self.progress)
            case events.CellMeasured():
                self.progress = replace(self.progress, reused=self.progress.reused + 1)
                self.observe(event)
            case _:
                self.observe(event)


def _raced_together(planned: Iterable[Planned]) -> Iterator[list[Planned]]:
    """A few at a time, in their order, all of one type. What is listed twice comes again later, and is found."""
    together: list[Planned] = []
    for one in planned:
        same_type = all(one.problem.type == other.problem.type for other in together)
        if not same_type or len(together) == RACED_TOGETHER or any(one.problem == other.problem for other in together):
            yield together
            together = []
        together.append(one)
    if together:
        yield together


def _cells(one: Planned) -> list[Cell]:
    return [(config, one.problem) for config in one.configs.values()]


def _count(one: Planned) -> int:
    """How many measurements a product takes, if all of it runs."""
    return len(one.configs) + min(FINALISTS, len(one.configs))


def _best_split(screened: dict[Choice, Estimate]) -> dict[str, Choice]:
    among = [choice for choice in screened if choice.splits in SPLITS]
    return {BEST_SPLIT: min(among, key=lambda choice: screened[choice].seconds)} if among else {}


def _finalists(said: Iterable[Choice], screened: dict[Choice, Estimate]) -> list[Choice]:
    fastest = sorted(screened, key=lambda choice: screened[choice].seconds)
    return [choice for choice in dict.fromkeys([*said, *fastest]) if choice in screened][:FINALISTS]


def _listed(task: SweepTask) -> list[ListedGemm]:
    every = read_gemm_list(task.products)
    known = sorted({one.family for one in every})
    for family in task.families:
        if family not in known:
            what = f"no product of {task.products} is of the family {family!r}"
            raise UserError("--family", what, f"name one of {', '.join(known)}" if any(known) else "leave it out")
    return list(dict.fromkeys(one for one in every if not task.families or one.family in task.families))


def _only(kernels: Sequence[StreamKernel], what: str) -> StreamKernel:
    """The one kernel and tile that is meant; the first of its types. Raises UserError where there are several."""
    tiles = dict.fromkeys(f"{one.kernel.name} {one.tile}" for one in kernels)
    if len(tiles) > 1:
        raise UserError(what, f"means several kernels: {', '.join(tiles)}", "name one by --tile and --kernel")
    return kernels[0]
