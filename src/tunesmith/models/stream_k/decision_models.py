"""The models that decide how to launch a product with a stream-K kernel: on which grid, and how many tiles are split.

`launch_decisions.py` asks them at run time. `Model.decide` returns a `StreamKDecision`; a `StreamKOverride` from the
environment takes priority over the model. There are three models:

- `CalibratedModel` knows the costs of launches on the device, with this tile and data type. It evaluates every grid
  that fits, every useful number of split tiles, and split-K.
- `PortableModel` uses ratios that hold for most devices. It is used if there is no calibration.
- `TensileModel` is Tensile's predictor, to compare with.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

from tunesmith.kernels.gemm.stream_k import streamed_tiles

from . import portable as portable
from . import tensile as tensile
from .calibration import CalibrationOrigin, StreamKCalibration, Subject, data_type_of, merged
from .costs import COSTS, SPLITS, Scan, choices_on_grid, counts
from .fit import FittedCost
from .override import StreamKOverride
from .records import DeviceCapacity, MacroTile, SharingMode, StreamKChoice, StreamKDecision, TiledProduct
from .runs import StreamKRun, calibration_runs

__all__ = [
    "COSTS",
    "SPLITS",
    "CalibratedModel",
    "CalibrationOrigin",
    "Calibrations",
    "DeviceCapacity",
    "FittedCost",
    "MacroTile",
    "Model",
    "PortableModel",
    "Predictor",
    "SharingMode",
    "StreamKCalibration",
    "StreamKChoice",
    "StreamKDecision",
    "StreamKOverride",
    "StreamKRun",
    "Subject",
    "TensileModel",
    "TiledProduct",
    "calibration_runs",
    "choices_on_grid",
    "data_type_of",
    "merged",
    "models_to_compare",
]

REMEMBERED = 65_536
"""How many decisions are kept (least recently used)."""

REACH = 2.2
"""Half width of a 95 % interval in standard deviations: Student's t with ten degrees of freedom, which is what the
median deviation of some thirty runs is worth."""


class Model(ABC):
    """Decides for a kernel with one tile on a device with this room. The same product always gets the same answer."""

    name: str
    room: DeviceCapacity

    @abstractmethod
    def choose(self, work: TiledProduct, grid: int | None = None, full_tiles: int | None = None) -> StreamKChoice:
        """The best choice; if given, only among those on `grid`, or with `full_tiles` waves beside the remainder."""

    def expect(self, work: TiledProduct, choice: StreamKChoice) -> tuple[float | None, tuple[float, float] | None]:
        """Expected seconds and their 95 % interval; None for what the model cannot predict."""
        return None, None

    def decide(self, work: TiledProduct, override: StreamKOverride | None = None) -> StreamKDecision:
        """The choice with its expected time. `override` takes priority over the model."""
        if override is None or not override.used:
            choice = self.choose(work)
        else:
            choice = self.choose(work, override.grid(work, self.room.multiprocessors), override.full_tiles)
        return StreamKDecision(work, choice, self.name, *self.expect(work, choice), override.used if override else ())


class CalibratedModel(Model):
    """Takes the choice with the least expected time, by the costs of a calibration. Split-K is among the choices with
    each number of parts in `parts`."""

    name = "calibrated"

    def __init__(self, calibration: StreamKCalibration, parts: Sequence[int] = SPLITS) -> None:
        self.calibration, self.room = calibration, calibration.subject.room
        self._scan, self._doubt = Scan(calibration.values, self.room, parts), calibration.doubt

    def choose(self, work: TiledProduct, grid: int | None = None, full_tiles: int | None = None) -> StreamKChoice:
        if grid is None and full_tiles is None:
            return self._scan.best(work)[0]
        return self._scan.best_on(work, grid, full_tiles)[0]

    def expect(self, work: TiledProduct, choice: StreamKChoice) -> tuple[float, tuple[float, float]]:
        """The interval covers 95 % of runs. It includes the uncertainty of the costs and the scatter of a run."""
        features = counts(work, choice, self.room)
        seconds = float(features @ self._scan.costs)
        variance = float(features @ self._doubt @ features) + (self.calibration.scatter * seconds) ** 2
        # A covariance that was rounded for a file may have lost its positive semidefiniteness.
        reach = REACH * max(0.0, variance) ** 0.5
        return seconds, (max(0.0, seconds - reach), seconds + reach)

    def considered(self, work: TiledProduct) -> Iterator[StreamKChoice]:
        """The best choice of each kind: no tile streamed, the remainder streamed, the remainder and one full wave, and
        each number of parts of split-K."""
        yield from (choice for choice, _ in (*self._scan.candidates(work), *self._scan.splits(work)))


class PortableModel(Model):
    """Decides by dimensionless ratios and the rule of three iterations (`portable.py`). Predicts no times."""

    name = "portable"

    def __init__(self, room: DeviceCapacity) -> None:
        self.room = room

    def choose(self, work: TiledProduct, grid: int | None = None, full_tiles: int | None = None) -> StreamKChoice:
        if full_tiles is not None:
            grid = grid or self.room.groups
            return StreamKChoice(grid, streamed_tiles(work.tiles, grid, full_tiles))
        return portable.choice(work, grid or self.room.groups)


class TensileModel(Model):
    """Tensile's predictor: as published, with its curve for 304 compute units only, or not `gated`: the curve for
    all."""

    def __init__(self, room: DeviceCapacity, gated: bool = True) -> None:
        self.room, self.gated = room, gated
        self.name = "tensile" if gated else "tensile, gate lifted"

    def choose(self, work: TiledProduct, grid: int | None = None, full_tiles: int | None = None) -> StreamKChoice:
        units = self.room.multiprocessors
        grid = grid or units
        if full_tiles is None:
            full_tiles = tensile.full_tiles(work.tiles % grid, work.k, units, self.gated)
        return StreamKChoice(grid, streamed_tiles(work.tiles, grid, full_tiles))

    def expect(self, work: TiledProduct, choice: StreamKChoice) -> tuple[float | None, None]:
        """The time of Tensile's analytical model, which covers only choices with all tiles streamed."""
        if not work.tiles or choice.streamed < work.tiles:
            return None, None
        return 1e-6 * tensile.microseconds(work.tiles, work.iterations, choice.grid), None


def models_to_compare(model: Model) -> tuple[Model, ...]:
    """The models to compare with: all that need no calibration, except `model` itself."""
    others = (PortableModel(model.room), TensileModel(model.room), TensileModel(model.room, gated=False))
    return tuple(other for other in others if other.name != model.name)


class Predictor:
    """Decides for a kernel with one tile, once for each product. Not thread-safe."""

    def __init__(self, tile: MacroTile, model: Model, override: StreamKOverride | None = None) -> None:
        self.tile, self.model, self.override = tile, model, override
        self.decide = lru_cache(REMEMBERED)(self._decide)

    def _decide(self, m: int, n: int, batch: int, k: int) -> StreamKDecision:
        """How to launch the product of these sizes, in elements."""
        return self.model.decide(self.tile.work(m, n, batch, k), self.override)


class Calibrations:
    """Chooses the model for a kernel from the available calibrations. `warn` gets a sentence, once each, if a kernel
    has no calibration or one of another driver."""

    def __init__(
        self, calibrations: Iterable[StreamKCalibration] = (), warn: Callable[[str], None] = lambda sentence: None
    ) -> None:
        self._calibrations = {calibration.subject: calibration for calibration in calibrations}
        self._warn_once = lru_cache(maxsize=None)(warn)

    def widest(self, whole: Subject) -> Subject:
        """The calibrated subject that equals `whole` but for its occupancy; the one with the largest occupancy if there
        are several, `whole` itself if there is none."""
        calibrated = [
            subject
            for subject in self._calibrations
            if replace(subject, room=whole.room) == whole and subject.room.multiprocessors == whole.room.multiprocessors
        ]
        return max(calibrated, key=lambda subject: subject.room.groups, default=whole)

    def model(self, subject: Subject, driver: str, parts: Sequence[int] = SPLITS) -> Model:
        """The calibrated model of a subject; the portable one if there is no calibration. `driver` is the driver in
        use; `parts` as for `CalibratedModel`."""
        calibration = self._calibrations.get(subject)
        if calibration is None:
            self._warn_once(f"nothing is calibrated for {subject}: stream-K goes by rules of thumb")
            return PortableModel(subject.room)
        if calibration.origin.driver != driver:
            self._warn_once(f"{subject} was calibrated with driver {calibration.origin.driver}, this is {driver}")
        return CalibratedModel(calibration, parts)
