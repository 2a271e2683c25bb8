"""Why one product is launched as it is: the models' choices, the choices that were considered, and their times."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith.devices import choose
from tunesmith.models.stream_k.calibration_file import read
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    Calibrations,
    DeviceCapacity,
    MacroTile,
    Model,
    PortableModel,
    StreamKCalibration,
    StreamKChoice,
    StreamKDecision,
    TiledProduct,
    data_type_of,
    models_to_compare,
)
from tunesmith.models.stream_k.override import StreamKOverride
from tunesmith.protocol import Cell
from tunesmith.records import Configuration, Estimate, Problem, Target, UserError
from tunesmith.session.frame import events
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.run import Run, RunPlan, carry_out

from .calibrate import POLICY
from .kernels import StreamKernel, TileFilter, kernels_named, languages, type_named


@dataclass(frozen=True, slots=True)
class ExplainTask:
    """A product with sizes M, N, batch, K; a tile; and the device that the answer is for.

    The device is one that is here, the one of a calibration file, or just a number of compute units with `occupancy`
    work-groups each. `type` is a data type or a problem type's name.
    """

    sizes: tuple[int, int, int, int]
    tile: TileFilter
    type: str = "s"
    calibration: Path | None = None
    device: str | None = None
    compute_units: int | None = None
    occupancy: int = 1
    measure: bool = False


@dataclass(frozen=True, slots=True)
class ExplainedLaunch:
    """One launch of the product: why it is listed, the decision with its expected time, and the measured time, or why
    it has none."""

    why: str
    decision: StreamKDecision
    measured: Estimate | None = None
    failed: str = ""


@dataclass(frozen=True)
class Explanation:
    """The first of the `lines` is the launch that is chosen. `notes` are sentences on what the choice rests on."""

    tile: MacroTile
    work: TiledProduct
    room: DeviceCapacity
    model: str
    lines: tuple[ExplainedLaunch, ...]
    notes: tuple[str, ...]


def explain_stream_k(
    task: ExplainTask, environment: Mapping[str, str], observe: events.Observer = events.nobody
) -> Explanation:
    """The launch that is chosen for a product, and the other launches considered; with `measure`, all are timed
    interleaved.

    Variables in `environment` may override the choice. Raises UserError for a task that makes no sense or that fits
    several calibrations, and for variables with values that make no sense.
    """
    override = StreamKOverride.of(environment)
    notes: list[str] = []
    tile, model, kernel = _subject(task, notes)
    work = tile.work(*task.sizes)
    lines = tuple(_lines(work, model, override))
    if kernel and task.measure:
        lines = _measured(lines, kernel, task.sizes, observe)
    if isinstance(model, CalibratedModel):
        adjusted = model.calibration.adjusted
        notes += [f"{name} was put right by hand: {1e6 * value:.4g} µs" for name, value in adjusted.items()]
    return Explanation(tile, work, model.room, model.name, lines, tuple(notes))


def _lines(work: TiledProduct, model: Model, override: StreamKOverride) -> Iterator[ExplainedLaunch]:
    """The launch that is chosen; then the model's own choice if it was overridden, the choices that the model
    considered, and the other models' choices."""
    predicted = model.decide(work)
    if override.used:
        yield ExplainedLaunch("overridden", model.decide(work, override))
    yield ExplainedLaunch("predicted" if override.used else "chosen", predicted)
    whole = StreamKChoice.whole_tiles(work, model.room)
    for choice in model.considered(work) if isinstance(model, CalibratedModel) else (whole,):
        if choice != predicted.choice:
            yield ExplainedLaunch("considered", StreamKDecision(work, choice, model.name, *model.expect(work, choice)))
    for other in models_to_compare(model):
        yield ExplainedLaunch(other.name, other.decide(work))


def _measured(
    lines: Sequence[ExplainedLaunch], kernel: StreamKernel, sizes: tuple[int, int, int, int], observe: events.Observer
) -> tuple[ExplainedLaunch, ...]:
    """The lines with their times, taken in alternating blocks; lines with the same launch are timed once."""
    problem, oracle = kernel.problem(*sizes), ConfigurationOracle(kernel.type, kernel.target)
    cells: list[Cell] = [(kernel.configured(line.decision), problem) for line in lines]
    rejections = {cell: (*oracle.rejections(cell[0]), *oracle.rejections_for(*cell)) for cell in cells}
    configs = dict.fromkeys(config for config, _ in cells if not rejections[config, problem])
    plan = SideBySide(kernel.target, list(configs), problem, f"{kernel.tile} on {problem}")
    with tempfile.TemporaryDirectory() as scratch:
        times = carry_out(plan, Path(scratch), observe=observe).plan.times
    return tuple(
        replace(line, measured=times[cell])
        if cell in times
        else replace(line, failed=str(rejections[cell][0]) if rejections[cell] else "did not run")
        for line, cell in zip(lines, cells, strict=True)
    )


class SideBySide(RunPlan):
    """Times configurations of one problem in alternating blocks."""

    policy = POLICY

    def __init__(self, target: Target, configs: Sequence[Configuration], problem: Problem, purpose: str) -> None:
        self.target, self._configs, self._problem, self._purpose = target, configs, problem, purpose
        self.times: Mapping[Cell, Estimate] = {}

    def carry_out(self, run: Run) -> None:
        measure = run.measure(self._problem.type)
        measure.purpose = self._purpose
        self.times = measure.confirm(self._configs, [self._problem]).cells


def _subject(task: ExplainTask, notes: list[str]) -> tuple[MacroTile, Model, StreamKernel | None]:
    """The tile, the model to ask, and the kernel to measure; without a device there is no kernel."""
    known = read(task.calibration) if task.calibration else ()
    is_default_device = task.calibration is None and task.compute_units is None
    if task.measure or task.device is not None or is_default_device:
        target = choose(task.device, languages=languages())
        room = DeviceCapacity(task.compute_units or target.compute_units, task.occupancy)
        kernel = kernels_named(task.type, task.tile, target, room=room)[0]
        model = Calibrations(known, notes.append).model(kernel.subject, target.driver, kernel.parts)
        return kernel.tile, model, kernel
    if task.calibration:
        calibration = _matching_calibration(known, task, task.calibration)
        return calibration.subject.tile, CalibratedModel(calibration), None
    notes.append("no calibration is given: stream-K goes by rules of thumb")
    if task.tile.depth is None:
        raise UserError("--tile", f"{task.tile} has no depth", "write rows, columns and depth, such as 128x128x64")
    tile = MacroTile(task.tile.m, task.tile.n, task.tile.depth)
    return tile, PortableModel(DeviceCapacity(task.compute_units or 1, task.occupancy)), None


def _matching_calibration(known: Sequence[StreamKCalibration], task: ExplainTask, path: Path) -> StreamKCalibration:
    """The calibration of a file that fits the task. Raises UserError if none fits, or several do."""
    letter = data_type_of(type_named(task.type))
    matching = [c for c in known if task.tile.takes(c.subject.tile) and c.subject.data_type == letter]
    if task.compute_units is not None:
        matching = [c for c in matching if c.subject.room.multiprocessors == task.compute_units]
    if len(matching) == 1:
        return matching[0]
    listed = "; ".join(f"{c.subject} ({c.subject.room.multiprocessors} units)" for c in matching or known)
    count = "several calibrations" if matching else "no calibration"
    what = f"it has {count} for {letter} and a tile of {task.tile}"
    raise UserError(str(path), what, f"tell by --tile, --type, --device or --compute-units which of: {listed}")
