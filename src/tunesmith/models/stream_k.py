"""How to launch a stream-K kernel for each product: which grid, how many tiles are split, or none. One decision each.

Three models answer. `Calibrated` knows what launches cost on the device, with this tile and data type, and looks at
every grid that fits, every number of split tiles that makes sense, and split-K. `Portable` knows ratios that hold for
most devices, and is taken where nobody calibrated. `Published` is Tensile's, to compare with. An `Override` from the
environment decides before any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tunesmith.kernels.gemm.stream_k import streamed_tiles
from tunesmith.records import Target

from . import _stream_k_portable as portable
from . import _stream_k_tensile as tensile
from ._stream_k_calibration import Calibration, Cost, Origin, Subject, data_type_of, merged
from ._stream_k_costs import COSTS, SPLITS, Scan, choices_on, counts, row_on
from ._stream_k_records import Choice, Decision, Mode, Room, Tile, Work
from ._stream_k_runs import Run, calibration_runs
from .stream_k_override import Override

__all__ = [
    "COSTS",
    "SPLITS",
    "Calibrated",
    "Calibration",
    "Calibrations",
    "Choice",
    "Cost",
    "Decision",
    "Mode",
    "Model",
    "Origin",
    "Override",
    "Portable",
    "Predictor",
    "Published",
    "Room",
    "Run",
    "Subject",
    "Tile",
    "Work",
    "calibration_runs",
    "choices_on",
    "data_type_of",
    "merged",
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
    def choose(self, work: Work, grid: int | None = None, full_tiles: int | None = None) -> Choice:
        """The best choice; among those on `grid`, or with `full_tiles` waves beside the remainder, where given."""

    def expect(self, work: Work, choice: Choice) -> tuple[float | None, tuple[float, float] | None]:
        """Seconds and their 95 % interval, as far as the model knows."""
        return None, None

    def decide(self, work: Work, override: Override | None = None) -> Decision:
        """The choice with what is expected of it; `override` goes before the model."""
        if override is None or not override.used:
            choice = self.choose(work)
        else:
            choice = self.choose(work, override.grid(work, self.room.multiprocessors), override.full_tiles)
        return Decision(work, choice, self.name, *self.expect(work, choice), override.used if override else ())


class Calibrated(Model):
    """The costs of a calibration over all choices; of split-K, those with as many parts as `parts` has."""

    name = "calibrated"

    def __init__(self, calibration: Calibration, parts: Sequence[int] = SPLITS) -> None:
        self.calibration, self.room = calibration, calibration.subject.room
        self._scan, self._doubt = Scan(calibration.values, self.room, parts), calibration.doubt

    def choose(self, work: Work, grid: int | None = None, full_tiles: int | None = None) -> Choice:
        if grid is None and full_tiles is None:
            return self._scan.best(work)[0]
        return self._scan.best_on(work, grid, full_tiles)[0]

    def expect(self, work: Work, choice: Choice) -> tuple[float, tuple[float, float]]:
        """The interval holds 95 % of runs: the doubt of the costs, and a run's own scatter."""
        features = counts(work, choice, self.room)
        seconds = float(features @ self._scan.costs)
        variance = float(features @ self._doubt @ features) + (self.calibration.scatter * seconds) ** 2
        reach = REACH * variance**0.5
        return seconds, (max(0.0, seconds - reach), seconds + reach)

    def considered(self, work: Work) -> Iterator[Choice]:
        """The best choice of each kind: no tile split, the remainder, that and one full wave, and each split-K."""
        for _, row, column in self._scan.candidates(work):
            yield row_on(work, column + 1, row)
        yield from (self._scan.split(work, parts) for _, parts in self._scan.splits(work))


class Portable(Model):
    """Dimensionless ratios and the rule of three iterations; expects no time."""

    name = "portable"

    def __init__(self, room: Room) -> None:
        self.room = room

    def choose(self, work: Work, grid: int | None = None, full_tiles: int | None = None) -> Choice:
        if full_tiles is not None:
            on = grid or self.room.groups
            return Choice(on, streamed_tiles(work.tiles, on, full_tiles))
        return portable.choice(work, self.room if grid is None else Room(grid))


class Published(Model):
    """Tensile's predictor: as published, for 304 compute units alone, or with its gate lifted."""

    def __init__(self, room: Room, gated: bool = True) -> None:
        self.room, self.gated = room, gated
        self.name = "tensile" if gated else "tensile, gate lifted"

    def choose(self, work: Work, grid: int | None = None, full_tiles: int | None = None) -> Choice:
        units = self.room.multiprocessors
        on = grid or units
        if full_tiles is None:
            full_tiles = tensile.full_tiles(work.tiles % on, work.k, units, self.gated)
        return Choice(on, streamed_tiles(work.tiles, on, full_tiles))

    def expect(self, work: Work, choice: Choice) -> tuple[float | None, None]:
        """Their analytical model's time, which knows only grids on which everything is split."""
        if not work.tiles or choice.streamed < work.tiles:
            return None, None
        return tensile.seconds(work.tiles, work.iterations, choice.grid), None


class Predictor:
    """Decisions for a kernel with one tile, each made once. Not for several threads at once."""

    def __init__(self, tile: Tile, model: Model, override: Override | None = None) -> None:
        self.tile, self.model, self.override = tile, model, override
        self._made: dict[tuple[int, int, int, int], Decision] = {}

    def decide(self, m: int, n: int, batch: int, k: int) -> Decision:
        """How to launch the product of these sizes, in elements."""
        made = self._made.get((m, n, batch, k))
        return made if made is not None else self._decide(m, n, batch, k)

    def _decide(self, m: int, n: int, batch: int, k: int) -> Decision:
        if len(self._made) >= REMEMBERED:
            self._made.clear()
        made = self.model.decide(self.tile.work(m, n, batch, k), self.override)
        self._made[m, n, batch, k] = made
        return made


class Calibrations:
    """The calibrations at hand, and which model they give a kernel. `say` hears once why one has to make do."""

    def __init__(self, known: Iterable[Calibration] = (), say: Callable[[str], None] = lambda sentence: None) -> None:
        self._known = {one.subject: one for one in known}
        self._say = say
        self._said: set[str] = set()

    def room(self, target: Target, kernel: str, data_type: str, tile: Tile) -> Room:
        """The whole device, as it was calibrated: where that was done for several, with most work-groups at once."""
        whole = Room(target.compute_units)
        wanted = Subject.of(target, kernel, data_type, tile, whole)
        rooms = [one.room for one in self._known if replace(one, room=whole) == wanted]
        known = [room for room in rooms if room.multiprocessors == whole.multiprocessors]
        return max(known, key=lambda room: room.groups, default=whole)

    def model(
        self, target: Target, kernel: str, data_type: str, tile: Tile, room: Room, parts: Sequence[int] = SPLITS
    ) -> Model:
        """The calibrated model of this kernel on this device, or the portable one. `parts` as for `Calibrated`."""
        subject = Subject.of(target, kernel, data_type, tile, room)
        found = self._known.get(subject)
        if found is None:
            self._once(f"nothing is calibrated for {subject}: stream-K goes by rules of thumb")
            return Portable(room)
        if found.origin.driver != target.driver:
            self._once(f"{subject} was calibrated with driver {found.origin.driver}, this is {target.driver}")
        return Calibrated(found, parts)

    def _once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._say(sentence)
