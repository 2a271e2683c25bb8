"""Sweeping stream-K: every product of a list on many grids, with many tiles split or few: what do predictions lose?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tunesmith.devices import choose
from tunesmith.logic import write_atomically
from tunesmith.models.stream_k.file import read
from tunesmith.models.stream_k.predict import Calibrations, StreamKChoice
from tunesmith.problems.gemm.listed import ListedGemm, read_gemm_list
from tunesmith.protocol import Cell
from tunesmith.records import Configuration, Estimate, UserError
from tunesmith.session.frame import events
from tunesmith.session.frame.earlier import write_table
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .calibrate import POLICY as CALIBRATING
from .choices import GRIDS, SPLITS
from .kernels import StreamKernel, TileFilter, asked, languages, origin_of, room_of
from .planned import Planned, Planner
from .refit import Refit, refit
from .swept import BEST_SPLIT, Swept, as_csv, product_of, product_text, products_in

TABLE, PLOT, CALIBRATION = "sweep.csv", "sweep.svg", "calibration.yaml"
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


def sweep_stream_k(
    task: SweepTask,
    folder: Path,
    *,
    device: str | None = None,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    draw: Callable[[SweepPlan], str] | None = None,
    observe: events.Observer = events.nobody,
) -> RunOutcome[SweepPlan]:
    """Measure, compare, and write a table into `folder`; the same call goes on with a stopped run.

    `reuse` says what of an earlier run counts. `draw` makes the picture (SVG) that is written beside the table. Raises
    UserError for a task that means nothing and files that are none, KeyboardInterrupt after everything was put away.
    """
    plan = SweepPlan(task, folder, device, draw, lambda sentence: observe(events.Said(sentence)))
    return carry_out(plan, folder, budget_minutes=budget_minutes, reuse=reuse, observe=observe)


class SweepPlan(RunPlan):
    """Takes a few products at a time: all their choices, raced; then what is next to the fastest of those that were
    searched whatever was predicted; then the finalists of each side by side.

    `swept` has the products that are done, of `products`. `judged` is the way to decide that a library has.
    """

    policy = POLICY

    def __init__(
        self,
        task: SweepTask,
        folder: Path,
        device: str | None,
        draw: Callable[[SweepPlan], str] | None,
        say: Callable[[str], None],
    ) -> None:
        self.file, self._task, self._draw = task.products, task, draw
        self._listed = _listed(task)
        self._path = task.calibration or folder / CALIBRATION
        self._known = read(self._path) if task.calibration or self._path.exists() else ()
        self.target = target = choose(device, languages=languages())
        room = room_of(target, task.compute_units, task.occupancy)
        kernel = _only(asked(task.what, task.tile, target, task.kernel, room), task.what)
        self.subject, self.room = kernel.subject, room
        model = Calibrations(self._known, say).model(self.subject, target.driver, kernel.parts)
        self.judged, self.products = model.name, len(self._listed)
        self._planner = Planner(kernel, model, task.grids)
        self._planned = [planned for planned in map(self._planner.plan, self._listed) if planned]
        self.swept: list[Swept] = []
        self.refit: Refit | None = None
        self._done = 0
        self._failures: list[str] = []

    @property
    def unfinished(self) -> str:
        count = len(self._planned)
        return f"{self._done} of {count} products are swept" if self._done < count else ""

    def carry_out(self, run: Run) -> None:
        with run.batch(f"{len(self._planned)} products", sum(map(_count, self._planned))):
            for together in _raced_together(self._planned):
                raced = dict(self._raced(run, together))
                refined = [self._refined(one, raced) for one in together]
                # Each race is of what is new: what is known of the others is in the first.
                raced |= self._raced(run, [replace(one, configs=new) for one, new in refined if new])
                for planned in (replace(one, configs={**one.configs, **new}) for one, new in refined):
                    swept = self._confirmed(run, planned, raced)
                    self.swept += [swept] if swept.finals else []
                    self._done += 1
                    run.decided()
        if self._task.refit:
            self._refit(run)

    def outputs(self, run: Run) -> Iterator[Output]:
        if not self.swept:
            return
        own = [product_text(product_of(planned.listed, planned.problem)) for planned in self._planned]
        text = as_csv(self.swept, self.room.groups)
        yield Output(Path(TABLE), partial(write_table, own, products_in, run.say, text=text))
        if self._draw:
            yield Output(Path(PLOT), partial(write_atomically, text=self._draw(self)))
        if self.refit:
            yield Output(self.refit.path.absolute(), partial(write_atomically, text=self.refit.text))

    def remarks(self) -> Iterator[str]:
        if left_out := self.products - len(self._planned):
            tile = self._planner.kernel.tile
            yield f"{left_out} products of the list cannot run in tiles of {tile} on {self.target.name}"
        yield from self._failures

    def _refit(self, run: Run) -> None:
        kernel = self._planner.kernel
        origin = origin_of(kernel, run.measure(kernel.type))
        try:
            self.refit = refit(self._path, self._known, origin, self.swept, self._planner)
        except ValueError as error:
            self._failures.append(f"{self.subject}: {error}; sweep more products")

    def _raced(self, run: Run, together: Sequence[Planned]) -> Mapping[Cell, Estimate]:
        """Products of one type, each a race of its own: no launch is stopped for another product's sake."""
        if not together:
            return {}
        measure = run.measure(together[0].problem.type)
        races = [[(config, one.problem) for config in one.configs.values()] for one in together]
        return measure.screen_cells(races, racing=True).cells

    def _refined(
        self, one: Planned, raced: Mapping[Cell, Estimate]
    ) -> tuple[Planned, dict[StreamKChoice, Configuration]]:
        """A product whose race is over, and what is next to the fastest that was searched."""
        times = {
            choice: raced[config, one.problem].seconds
            for choice, config in one.configs.items()
            if choice in one.searched and (config, one.problem) in raced
        }
        return one, self._planner.closer(one, min(times, key=times.__getitem__)) if times else {}

    def _confirmed(self, run: Run, one: Planned, raced: Mapping[Cell, Estimate]) -> Swept:
        """A product whose race is over: its finalists side by side."""
        measure, problem = run.measure(one.problem.type), one.problem
        screened = {
            choice: raced[config, problem] for choice, config in one.configs.items() if (config, problem) in raced
        }
        said = {**one.said, **_best_split(screened)}
        finalists = {choice: one.configs[choice] for choice in _finalists(said.values(), screened)}
        times = measure.confirm(list(finalists.values()), [problem]).cells
        finals = {choice: times[config, problem] for choice, config in finalists.items() if (config, problem) in times}
        run.anchor.visit_if_due(measure, ((finalists[choice], problem) for choice in finals))
        return Swept(one.listed, problem, one.work, said, screened, finals)


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


def _count(one: Planned) -> int:
    """How many measurements a product takes, if all of it runs."""
    return len(one.configs) + min(FINALISTS, len(one.configs))


def _best_split(screened: dict[StreamKChoice, Estimate]) -> dict[str, StreamKChoice]:
    among = [choice for choice in screened if choice.splits in SPLITS]
    return {BEST_SPLIT: min(among, key=lambda choice: screened[choice].seconds)} if among else {}


def _finalists(said: Iterable[StreamKChoice], screened: dict[StreamKChoice, Estimate]) -> list[StreamKChoice]:
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
