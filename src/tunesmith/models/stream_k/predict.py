"""How to launch a stream-K kernel for each product: which grid, how many tiles are split, or none. One decision each.

Three models answer. `Calibrated` knows what launches cost on the device, with this tile and data type, and looks at
every grid that fits, every number of split tiles that makes sense, and split-K. `Portable` knows ratios that hold for
most devices, and is taken where nobody calibrated. `Published` is Tensile's, to compare with. A
`StreamKOverride` from the environment decides before any of them.
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
from .costs import COSTS, SPLITS, Scan, choices_on, counts
from .fit import FittedCost
from .override import StreamKOverride
from .records import MacroTile, Room, SharingMode, StreamKChoice, StreamKDecision, Work
from .runs import StreamKRun, calibration_runs

__all__ = [
    "COSTS",
    "SPLITS",
    "Calibrated",
    "CalibrationOrigin",
    "Calibrations",
    "FittedCost",
    "MacroTile",
    "Model",
    "Portable",
    "Predictor",
    "Published",
    "Room",
    "SharingMode",
    "StreamKCalibration",
    "StreamKChoice",
    "StreamKDecision",
    "StreamKOverride",
    "StreamKRun",
    "Subject",
    "Work",
    "calibration_runs",
    "choices_on",
    "data_type_of",
    "merged",
    "rivals",
]

REMEMBERED = 65_536
"""Products whose decisions are kept."""

REACH = 2.2
"""Standard deviations to either side that hold 95 %: Student's with ten degrees of freedom, as many as the median
deviation of some thirty runs is worth."""


class Model(ABC):
    """Decides for a kernel with one tile on a device with this room. Pure: the same product gets the same answer."""

    name: str
    room: Room

    @abstractmethod
    def choose(self, work: Work, grid: int | None = None, full_tiles: int | None = None) -> StreamKChoice:
        """The best choice; among those on `grid`, or with `full_tiles` waves beside the remainder, where given."""

    def expect(self, work: Work, choice: StreamKChoice) -> tuple[float | None, tuple[float, float] | None]:
        """Seconds and their 95 % interval, as far as the model knows."""
        return None, None

    def decide(self, work: Work, override: StreamKOverride | None = None) -> StreamKDecision:
        """The choice with what is expected of it; `override` goes before the model."""
        if override is None or not override.used:
            choice = self.choose(work)
        else:
            choice = self.choose(work, override.grid(work, self.room.multiprocessors), override.full_tiles)
        return StreamKDecision(work, choice, self.name, *self.expect(work, choice), override.used if override else ())


class Calibrated(Model):
    """The costs of a calibration over all choices; of split-K, those with as many parts as `parts` has."""

    name = "calibrated"

    def __init__(self, calibration: StreamKCalibration, parts: Sequence[int] = SPLITS) -> None:
        self.calibration, self.room = calibration, calibration.subject.room
        self._scan, self._doubt = Scan(calibration.values, self.room, parts), calibration.doubt

    def choose(self, work: Work, grid: int | None = None, full_tiles: int | None = None) -> StreamKChoice:
        if grid is None and full_tiles is None:
            return self._scan.best(work)[0]
        return self._scan.best_on(work, grid, full_tiles)[0]

    def expect(self, work: Work, choice: StreamKChoice) -> tuple[float, tuple[float, float]]:
        """The interval holds 95 % of runs: the doubt of the costs, and a run's own scatter."""
        features = counts(work, choice, self.room)
        seconds = float(features @ self._scan.costs)
        variance = float(features @ self._doubt @ features) + (self.calibration.scatter * seconds) ** 2
        # A covariance that was rounded for a file need not be one any more.
        reach = REACH * max(0.0, variance) ** 0.5
        return seconds, (max(0.0, seconds - reach), seconds + reach)

    def considered(self, work: Work) -> Iterator[StreamKChoice]:
        """The best choice of each kind: no tile split, the remainder, that and one full wave, and each split-K."""
        yield from (choice for choice, _ in (*self._scan.candidates(work), *self._scan.splits(work)))


class Portable(Model):
    """Dimensionless ratios and the rule of three iterations; expects no time."""

    name = "portable"

    def __init__(self, room: Room) -> None:
        self.room = room

    def choose(self, work: Work, grid: int | None = None, full_tiles: int | None = None) -> StreamKChoice:
        if full_tiles is not None:
            on = grid or self.room.groups
            return StreamKChoice(on, streamed_tiles(work.tiles, on, full_tiles))
        return portable.choice(work, grid or self.room.groups)


class Published(Model):
    """Tensile's predictor: as published, for 304 compute units alone, or with its gate lifted."""

    def __init__(self, room: Room, gated: bool = True) -> None:
        self.room, self.gated = room, gated
        self.name = "tensile" if gated else "tensile, gate lifted"

    def choose(self, work: Work, grid: int | None = None, full_tiles: int | None = None) -> StreamKChoice:
        units = self.room.multiprocessors
        on = grid or units
        if full_tiles is None:
            full_tiles = tensile.full_tiles(work.tiles % on, work.k, units, self.gated)
        return StreamKChoice(on, streamed_tiles(work.tiles, on, full_tiles))

    def expect(self, work: Work, choice: StreamKChoice) -> tuple[float | None, None]:
        """Their analytical model's time, which knows only grids on which everything is split."""
        if not work.tiles or choice.streamed < work.tiles:
            return None, None
        return 1e-6 * tensile.microseconds(work.tiles, work.iterations, choice.grid), None


def rivals(model: Model) -> tuple[Model, ...]:
    """The models that need no calibration, but for the one that is asked already."""
    others = (Portable(model.room), Published(model.room), Published(model.room, gated=False))
    return tuple(other for other in others if other.name != model.name)


class Predictor:
    """Decisions for a kernel with one tile, each made once. Not for several threads at once."""

    def __init__(self, tile: MacroTile, model: Model, override: StreamKOverride | None = None) -> None:
        self.tile, self.model, self.override = tile, model, override
        self.decide = lru_cache(REMEMBERED)(self._decide)

    def _decide(self, m: int, n: int, batch: int, k: int) -> StreamKDecision:
        """How to launch the product of these sizes, in elements."""
        return self.model.decide(self.tile.work(m, n, batch, k), self.override)


class Calibrations:
    """The calibrations at hand, and which model they give a kernel. `say` hears once why one has to make do."""

    def __init__(
        self, known: Iterable[StreamKCalibration] = (), say: Callable[[str], None] = lambda sentence: None
    ) -> None:
        self._known = {one.subject: one for one in known}
        self._say_once = lru_cache(maxsize=None)(say)

    def widest(self, whole: Subject) -> Subject:
        """The subject of a whole device, as it was calibrated: of several occupancies, with the largest."""
        known = [
            one
            for one in self._known
            if replace(one, room=whole.room) == whole and one.room.multiprocessors == whole.room.multiprocessors
        ]
        return max(known, key=lambda one: one.room.groups, default=whole)

    def model(self, subject: Subject, driver: str, parts: Sequence[int] = SPLITS) -> Model:
        """The calibrated model of a subject, or the portable one; `driver` is the device's own. `parts` as for
        `Calibrated`."""
        found = self._known.get(subject)
        if found is None:
            self._say_once(f"nothing is calibrated for {subject}: stream-K goes by rules of thumb")
            return Portable(subject.room)
        if found.origin.driver != driver:
            self._say_once(f"{subject} was calibrated with driver {found.origin.driver}, this is {driver}")
        return Calibrated(found, parts)
