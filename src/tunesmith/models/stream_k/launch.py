"""Grid and split tiles of solutions whose configurations leave them open: decided for each problem that is launched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from tunesmith.kernels import KERNELS
from tunesmith.kernels.gemm.parameters import GROUP_MAPPING
from tunesmith.problems.gemm import DATA_TYPES, Gemm
from tunesmith.records import Configuration, Problem, Solution, Target

from .costs import SPLITS
from .file import OtherFormatError, calibration_files, read
from .predict import Calibrations, Predictor, StreamKCalibration, StreamKOverride, Subject, data_type_of
from .records import MacroTile, Room, StreamKDecision

GRID, FULL_TILES, SPLIT = "StreamKGrid", "StreamKFullTiles", "GlobalSplitU"
"""The parameters that a decision sets."""

OPEN = -1
"""The grid of a configuration that leaves both to run time."""

CALIBRATION = "TUNESMITH_STREAMK_CALIBRATION"
"""A variable of the environment: a calibration file that goes before all others."""

REMEMBERED = 4096
"""Problems whose solutions are kept."""

SCHEDULE = "Schedule"
"""A compile-time parameter of families that have a program for each way to share tiles."""

_WHOLE_TILES = Configuration({GRID: 0, FULL_TILES: 0})


class Deciding:
    """Decides on one device, each product once for each kernel and tile. Not for several threads at once.

    A schedule that is compiled in stays, and split-K is only chosen where it acts at launch: for another program nobody
    waits at run time.
    """

    def __init__(self, target: Target, calibrations: Calibrations, override: StreamKOverride) -> None:
        self.target, self.override = target, override
        self._calibrations = calibrations
        self._predictor = lru_cache(maxsize=None)(self._predictor_of)
        self.solutions = lru_cache(REMEMBERED)(self._solutions)

    @staticmethod
    def of(
        target: Target, places: Iterable[Path], environment: Mapping[str, str], say: Callable[[str], None]
    ) -> Deciding:
        """With the calibrations in these folders and in the file that the environment names, and with its overrides.

        `say` hears once why one has to make do, also without a file of the folders that another version wrote. Raises
        UserError for files and variables that mean nothing.
        """
        override = StreamKOverride.of(environment)
        known: list[StreamKCalibration] = []
        for file in (file for location in dict.fromkeys(places) for file in calibration_files(location)):
            try:
                known += read(file)
            except OtherFormatError as error:
                say(str(error))
        if named := environment.get(CALIBRATION, "").strip():
            known += read(Path(named))
        # Of two of the same device, kernel and tile, the last one counts.
        return Deciding(target, Calibrations(known, say), override)

    def _solutions(self, solution: Solution, problem: Problem) -> tuple[Solution, ...]:
        """The solution as it is to be launched, then, for where that cannot run, with whole tiles. What a variable of
        the environment asks for has no such second."""
        decision, config = self.decide(solution, problem), solution.configuration
        decided = config | decision.parameters.only(config)
        configs = (decided,) if decision.overridden else dict.fromkeys((decided, config | _WHOLE_TILES))
        return tuple(replace(solution, configuration=one) for one in configs)

    def decide(self, solution: Solution, problem: Problem) -> StreamKDecision:
        """How to launch the problem with a solution of a family that has the parameters."""
        gemm = Gemm.of(problem)
        return self._predictor(solution).decide(gemm.m, gemm.n, gemm.batch, gemm.k)

    def _predictor_of(self, solution: Solution) -> Predictor:
        kernel, config, kind = KERNELS[solution.kernel], solution.configuration, solution.type
        tile, whole = tile_of(solution), Room(self.target.compute_units)
        subject = self._calibrations.widest(Subject.of(self.target, kernel.name, data_type_of(kind), tile, whole))
        splits = SPLIT in kernel.space(kind, self.target).launch_time(config) and SCHEDULE not in config
        model = self._calibrations.model(subject, self.target.driver, SPLITS if splits else ())
        return Predictor(tile, model, self.override)


def configured(config: Configuration, parameters: Configuration) -> Configuration:
    """A configuration of any family that splits tiles, with a decision's parameters; its schedule is theirs then."""
    whole = "SplitK" if parameters.integer(SPLIT) > 1 else "DataParallel"
    schedule = Configuration({SCHEDULE: "StreamK" if parameters.integer(GRID) else whole})
    return config | parameters.only(config) | schedule.only(config)


def tile_of(solution: Solution) -> MacroTile:
    """The macro tile of a solution of a tiled family, which says how deep it is in steps (DepthU) or in bytes."""
    derived = Configuration(KERNELS[solution.kernel].derived(solution.configuration))
    m, n = derived.integers("MacroTile")
    config = solution.configuration
    block = config.integer(GROUP_MAPPING.name) if GROUP_MAPPING.name in config else 1
    if "DepthU" in derived:
        return MacroTile(m, n, derived.integer("DepthU"), block)
    element = np.dtype(DATA_TYPES[solution.type.fields.word("DataType")].dtype).itemsize
    return MacroTile(m, n, derived.integer("DepthBytes") // element, block)
