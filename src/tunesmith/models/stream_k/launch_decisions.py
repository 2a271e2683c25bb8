"""Decides at run time the grid of a solution, and how many tiles run stream-K, for each problem that is launched.

`LaunchDecisions.solutions` is the entry, for solutions whose configuration leaves the grid open (`StreamKGrid: -1`) or
has a grid that was tuned for another size. `LaunchDecisions.decide` returns the decision with its reasons. The numbers
come from the models in `decision_models.py`.
"""

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

from .calibration_file import OtherVersionError, calibration_files, read
from .costs import SPLITS
from .decision_models import Calibrations, Predictor, StreamKCalibration, StreamKOverride, Subject, data_type_of
from .records import DeviceCapacity, MacroTile, StreamKDecision

GRID, FULL_TILES, SPLIT = "StreamKGrid", "StreamKFullTiles", "GlobalSplitU"
"""The parameters that a decision sets."""

OPEN = -1
"""The value of GRID that leaves grid and split tiles to run time."""

CALIBRATION = "TUNESMITH_STREAMK_CALIBRATION"
"""The environment variable that names a calibration file. This file takes priority over all others."""

REMEMBERED = 4096
"""How many decided solutions are kept (least recently used)."""

SCHEDULE = "Schedule"
"""A compile-time parameter of families that have one program for each mode of sharing tiles."""

_WHOLE_TILES = Configuration({GRID: 0, FULL_TILES: 0})


class LaunchDecisions:
    """Decides for one device, once for each product, kernel and tile. Not thread-safe.

    A decision never needs another program, since nobody waits for a compiler at run time: a compiled-in schedule stays,
    and split-K is chosen only if it is a launch-time parameter of the family.
    """

    def __init__(self, target: Target, calibrations: Calibrations, override: StreamKOverride) -> None:
        self.target, self.override = target, override
        self._calibrations = calibrations
        self._predictor = lru_cache(maxsize=None)(self._predictor_of)
        self.solutions = lru_cache(REMEMBERED)(self._solutions)

    @staticmethod
    def of(
        target: Target, folders: Iterable[Path], environment: Mapping[str, str], warn: Callable[[str], None]
    ) -> LaunchDecisions:
        """With the overrides of the environment, the calibrations in these folders, and those in the file that the
        environment names. The latter take priority.

        `warn` gets a sentence for each file of the folders that another version wrote (that file is skipped), and later
        for each kernel without a calibration of its own. Raises UserError for invalid files and variables.
        """
        override = StreamKOverride.of(environment)
        calibrations: list[StreamKCalibration] = []
        for file in (file for folder in dict.fromkeys(folders) for file in calibration_files(folder)):
            try:
                calibrations += read(file)
            except OtherVersionError as error:
                warn(str(error))
        if named_file := environment.get(CALIBRATION, "").strip():
            calibrations += read(Path(named_file))
        # If two have the same subject, the later one counts.
        return LaunchDecisions(target, Calibrations(calibrations, warn), override)

    def _solutions(self, solution: Solution, problem: Problem) -> tuple[Solution, ...]:
        """The solution with the decided parameters, then the same with whole tiles, as a fallback if the first cannot
        run. A decision that the environment overrides has no fallback."""
        decision, config = self.decide(solution, problem), solution.configuration
        decided = config | decision.parameters.only(config)
        configs = (decided,) if decision.overridden else dict.fromkeys((decided, config | _WHOLE_TILES))
        return tuple(replace(solution, configuration=config) for config in configs)

    def decide(self, solution: Solution, problem: Problem) -> StreamKDecision:
        """How to launch the problem with this solution, whose family must have the parameters."""
        gemm = Gemm.of(problem)
        return self._predictor(solution).decide(gemm.m, gemm.n, gemm.batch, gemm.k)

    def _predictor_of(self, solution: Solution) -> Predictor:
        kernel, config, problem_type = KERNELS[solution.kernel], solution.configuration, solution.type
        tile, whole_device = tile_of(solution), DeviceCapacity(self.target.compute_units)
        subject = Subject.of(self.target, kernel.name, data_type_of(problem_type), tile, whole_device)
        subject = self._calibrations.widest(subject)
        splits = SPLIT in kernel.space(problem_type, self.target).launch_time(config) and SCHEDULE not in config
        model = self._calibrations.model(subject, self.target.driver, SPLITS if splits else ())
        return Predictor(tile, model, self.override)


def with_decision(config: Configuration, parameters: Configuration) -> Configuration:
    """The configuration with a decision's parameters, as far as its family has them; a schedule is set to match."""
    unstreamed = "SplitK" if parameters.integer(SPLIT) > 1 else "DataParallel"
    schedule = Configuration({SCHEDULE: "StreamK" if parameters.integer(GRID) else unstreamed})
    return config | parameters.only(config) | schedule.only(config)


def tile_of(solution: Solution) -> MacroTile:
    """The macro tile of a solution. Its family gives the depth in steps along K (DepthU) or in bytes (DepthBytes)."""
    derived = Configuration(KERNELS[solution.kernel].derived(solution.configuration))
    m, n = derived.integers("MacroTile")
    config = solution.configuration
    block = config.integer(GROUP_MAPPING.name) if GROUP_MAPPING.name in config else 1
    if "DepthU" in derived:
        return MacroTile(m, n, derived.integer("DepthU"), block)
    element = np.dtype(DATA_TYPES[solution.type.fields.word("DataType")].dtype).itemsize
    return MacroTile(m, n, derived.integer("DepthBytes") // element, block)
