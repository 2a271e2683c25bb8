"""Sweeping stream-K: every product of a list on many grids, with many tiles split or few: what do predictions lose?"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.bench import Bench
from tunesmith.devices import choose
from tunesmith.logic import write_atomically
from tunesmith.models.stream_k import Calibration, Calibrations, Choice, Room, Subject
from tunesmith.models.stream_k_file import read
from tunesmith.problems.gemm_list import ListedGemm, read_gemm_list
from tunesmith.protocol import Cell
from tunesmith.records import Estimate, ProblemType, Target, UserError
from tunesmith.store import RunState, Store

from . import events
from ._booked import booked, run_start
from ._health import HealthWatch
from ._recorded import Ledger, RecordedMeasure, failed
from ._run import CACHE, STORE
from .stream_k_calibrate import POLICY
from .stream_k_choices import GRIDS, SPLITS
from .stream_k_kernels import StreamKernel, TileFilter, asked, languages, model_parts, room_of
from .stream_k_plans import Planned, Planner
from .stream_k_refit import Refit, refit
from .stream_k_runs import FirstRun, origin_of
from .stream_k_swept import BEST_SPLIT, Swept, as_csv

TABLE, CALIBRATION = "sweep.csv", "calibration.yaml"
"""What lies in a sweep's folder, beside its store."""

FINALISTS = 9
"""Of a product: what was chosen by any way, and the fastest of the others."""


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
    """Takes one product after the other: all its choices, raced; then the finalists side by side."""

    outcome: SweepOutcome
    planner: Planner
    store: Store
    bench: Bench
    observe: events.Observer
    deadline: float | None
    first: FirstRun = field(default_factory=FirstRun)
    measures: dict[ProblemType, RecordedMeasure] = field(default_factory=dict)

    def sweep(self, listed: Sequence[ListedGemm]) -> None:
        planned = [one for one in map(self.planner.plan, listed) if one]
        if left_out := len(listed) - len(planned):
            tile, name = self.planner.kernel.tile, self.outcome.target.name
            self.outcome.look_at.append(f"{left_out} products of the list cannot run in tiles of {tile} on {name}")
        total, done, reused = sum(map(_cells, planned)), 0, -1
        for one in planned:
            # Only where something was found in the store has the display to be told how far it is.
            if reused != self.outcome.ledger.reused:
                reused = self.outcome.ledger.reused
                self.observe(events.BatchBegan(f"{len(planned)} products", total, done))
            swept = self._product(one)
            if swept.finals:
                self.outcome.swept.append(swept)
            done += _cells(one)
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

    def _product(self, one: Planned) -> Swept:
        measure, problem = self._measure(one.problem.type), one.problem
        measure.purpose = str(problem)
        table = measure.screen([list(one.configs.values())], [problem], racing=True).cells
        screened = {
            choice: table[config, problem] for choice, config in one.configs.items() if (config, problem) in table
        }
        self._failures(measure, [(config, problem) for config in one.configs.values()])
        said = {**one.said, **_best_split(screened)}
        finalists = {choice: one.configs[choice] for choice in _finalists(said.values(), screened)}
        times = measure.confirm(list(finalists.values()), [problem]).cells
        finals = {choice: times[config, problem] for choice, config in finalists.items() if (config, problem) in times}
        if finals:
            self.first.ran(measure, (finalists[next(iter(finals))], problem))
        return Swept(one.listed, problem, one.work, said, screened, finals)

    def _failures(self, measure: RecordedMeasure, cells: Sequence[Cell]) -> None:
        known = measure.lookup(cells).values()
        self.outcome.failed.update(f"{m.outcome.value}: {m.reason}" for m in known if failed(m))

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
        """The whole sweep is one batch, whatever pieces it is measured in."""
        if not isinstance(event, events.BatchBegan):
            self.observe(event)


def _cells(one: Planned) -> int:
    """What is measured of a product, if all of it runs."""
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
