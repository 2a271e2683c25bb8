"""Sweeping stream-K: how much time do predictions lose against the best of many launches of each product of a list?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tunesmith.devices import choose
from tunesmith.logic import write_atomically
from tunesmith.models.stream_k.calibration_file import read
from tunesmith.models.stream_k.decision_models import Calibrations, StreamKChoice
from tunesmith.problems.gemm.listed import ListedGemm, read_gemm_list
from tunesmith.protocol import Cell
from tunesmith.records import Configuration, Estimate, Target, UserError
from tunesmith.session.frame import events
from tunesmith.session.frame.earlier import write_table
from tunesmith.session.frame.many_devices import BenchFactory
from tunesmith.session.frame.outputs import Output
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.reuse import Reuse
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .calibrate import POLICY as CALIBRATING
from .choices import GRIDS, SPLITS
from .kernels import StreamKernel, TileFilter, kernels_named, languages, origin_of, room_of
from .planned import PlannedProduct, Planner
from .refit import Refit, refit
from .swept import BEST_SPLIT, Swept, as_csv, product_of, product_text, products_in

TABLE, PLOT, CALIBRATION = "sweep.csv", "sweep.svg", "calibration.yaml"
"""The files in a sweep's folder, beside its store."""

FINALISTS = 9
"""The most finalists of a product: the choices of all methods, then the fastest others."""

POLICY = replace(CALIBRATING, sampling_seconds=0.05, warm_up_seconds=0.02, confirm_blocks=9)
"""Less time for a launch than in a calibration, which has few runs, each measured by itself. A sweep compares dozens of
launches of a product with each other, and scores the finalists in alternating blocks: a disturbance of the device
affects all of them alike."""

RACED_TOGETHER = 8
"""The number of products for each device whose races the bench gets at a time: while one product is measured, the host
makes inputs and reference of the next. For so few products, these mostly stay in memory until the finalists are
measured."""


@dataclass(frozen=True, slots=True)
class SweepTask:
    """A list of products (only of the named `families`, if any), the kernel as in `calibrate stream-k`, and the number
    of `grids` to try.

    `calibration` is the file that predictions come from, by default the one in the sweep's folder. With `refit`, it is
    fitted again.
    """

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
    device: str | Target | None = None,
    budget_minutes: float | None = None,
    reuse: Reuse = Reuse.ALL,
    store: str | None = None,
    wait: bool = False,
    draw: Callable[[SweepPlan], str] | None = None,
    observe: events.Observer = events.nobody,
    benches: BenchFactory | None = None,
) -> RunOutcome[SweepPlan]:
    """Measure, compare, and write a table into `folder`; the same call resumes a stopped run.

    `reuse` says which earlier measurements are used again. `draw` makes the picture (SVG) that is written beside the
    table. Raises UserError for a task that makes no sense and for files that cannot be read, KeyboardInterrupt after
    everything is written.
    """
    plan = SweepPlan(task, folder, device, draw, lambda sentence: observe(events.Message(sentence)))
    return carry_out(
        plan,
        folder,
        budget_minutes=budget_minutes,
        reuse=reuse,
        store=store,
        wait=wait,
        observe=observe,
        benches=benches,
    )


class SweepPlan(RunPlan):
    """Measures a few products at a time: all their choices race; then the choices next to the fastest searched one
    race; then the finalists of each product are measured interleaved.

    `swept` has the products that are done; `products` is the number of products of the list. `judged` is the name of
    the model that the library would ask.
    """

    policy = POLICY
    may_share = True

    def __init__(
        self,
        task: SweepTask,
        folder: Path,
        device: str | Target | None,
        draw: Callable[[SweepPlan], str] | None,
        say: Callable[[str], None],
    ) -> None:
        self.file, self._task, self._draw = task.products, task, draw
        self._listed = _listed(task)
        self._path = task.calibration or folder / CALIBRATION
        self._known = read(self._path) if task.calibration or self._path.exists() else ()
        self.target = target = choose(device, languages=languages())
        room = room_of(target, task.compute_units, task.occupancy)
        kernel = _only(kernels_named(task.what, task.tile, target, task.kernel, room), task.what)
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
            for together in _raced_together(self._planned, RACED_TOGETHER * run.device_count):
                raced = dict(self._raced(run, together))
                refined = [(product, self._neighbours(product, raced)) for product in together]
                # The second race has new choices only: the times of the others are in the first.
                raced |= self._raced(run, [replace(product, configs=new) for product, new in refined if new])
                extended = [replace(product, configs={**product.configs, **new}) for product, new in refined]
                run.measure(together[0].problem.type).announce(
                    (list(_finalists_of(product, raced)[1].values()), [product.problem]) for product in extended
                )
                for product in extended:
                    swept = self._confirmed(run, product, raced)
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

    def _raced(self, run: Run, together: Sequence[PlannedProduct]) -> Mapping[Cell, Estimate]:
        """The times of a race for each of some products of one type: launches of different products do not compete."""
        if not together:
            return {}
        measure = run.measure(together[0].problem.type)
        races = [[(config, product.problem) for config in product.configs.values()] for product in together]
        return measure.screen_cells(races, racing=True).cells

    def _neighbours(
        self, product: PlannedProduct, raced: Mapping[Cell, Estimate]
    ) -> dict[StreamKChoice, Configuration]:
        """The untried choices next to the fastest searched choice of a product."""
        times = {
            choice: raced[config, product.problem].seconds
            for choice, config in product.configs.items()
            if choice in product.searched and (config, product.problem) in raced
        }
        return self._planner.untried_neighbours(product, min(times, key=times.__getitem__)) if times else {}

    def _confirmed(self, run: Run, product: PlannedProduct, raced: Mapping[Cell, Estimate]) -> Swept:
        """The product's result, with its finalists measured interleaved."""
        measure, problem = run.measure(product.problem.type), product.problem
        screened = _screened(product, raced)
        chosen, finalists = _finalists_of(product, raced)
        times = measure.confirm(list(finalists.values()), [problem]).cells
        finals = {choice: times[config, problem] for choice, config in finalists.items() if (config, problem) in times}
        run.anchor.visit_if_due(measure, ((finalists[choice], problem) for choice in finals))
        return Swept(product.listed, problem, product.work, chosen, screened, finals)


def _screened(product: PlannedProduct, raced: Mapping[Cell, Estimate]) -> dict[StreamKChoice, Estimate]:
    """The first times of a product's choices that ran."""
    cells = {choice: (config, product.problem) for choice, config in product.configs.items()}
    return {choice: raced[cell] for choice, cell in cells.items() if cell in raced}


def _finalists_of(
    product: PlannedProduct, raced: Mapping[Cell, Estimate]
) -> tuple[dict[str, StreamKChoice], dict[StreamKChoice, Configuration]]:
    """What each method chose for a product, and the configurations to measure interleaved."""
    screened = _screened(product, raced)
    chosen = {**product.chosen, **_best_split(screened)}
    return chosen, {choice: product.configs[choice] for choice in _finalists(chosen.values(), screened)}


def _raced_together(products: Iterable[PlannedProduct], most: int) -> Iterator[list[PlannedProduct]]:
    """Groups of at most `most` products of one type, in their order. A product that is listed twice is in a later group
    again, where its times are found in the store."""
    together: list[PlannedProduct] = []
    for product in products:
        same_type = all(product.problem.type == other.problem.type for other in together)
        is_repeated = any(product.problem == other.problem for other in together)
        if not same_type or len(together) == most or is_repeated:
            yield together
            together = []
        together.append(product)
    if together:
        yield together


def _count(product: PlannedProduct) -> int:
    """The number of measurements that a product takes if all its choices run."""
    return len(product.configs) + min(FINALISTS, len(product.configs))


def _best_split(screened: dict[StreamKChoice, Estimate]) -> dict[str, StreamKChoice]:
    splits = [choice for choice in screened if choice.splits in SPLITS]
    return {BEST_SPLIT: min(splits, key=lambda choice: screened[choice].seconds)} if splits else {}


def _finalists(chosen: Iterable[StreamKChoice], screened: dict[StreamKChoice, Estimate]) -> list[StreamKChoice]:
    fastest = sorted(screened, key=lambda choice: screened[choice].seconds)
    return [choice for choice in dict.fromkeys([*chosen, *fastest]) if choice in screened][:FINALISTS]


def _listed(task: SweepTask) -> list[ListedGemm]:
    rows = read_gemm_list(task.products)
    known = sorted({row.family for row in rows})
    for family in task.families:
        if family not in known:
            what = f"no product of {task.products} is of the family {family!r}"
            raise UserError("--family", what, f"name one of {', '.join(known)}" if any(known) else "leave it out")
    return list(dict.fromkeys(row for row in rows if not task.families or row.family in task.families))


def _only(kernels: Sequence[StreamKernel], what: str) -> StreamKernel:
    """The first of the kernels, which have one family and tile. Raises UserError if there are several."""
    tiles = dict.fromkeys(f"{kernel.kernel.name} {kernel.tile}" for kernel in kernels)
    if len(tiles) > 1:
        raise UserError(what, f"means several kernels: {', '.join(tiles)}", "name one by --tile and --kernel")
    return kernels[0]
