"""Calibrations: the fitted costs of one kernel with one tile on one device, and a person's adjustments to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tunesmith.records import Configuration, ProblemType, Target

from .costs import COSTS
from .fit import FittedCost, fit
from .memory_demand import Floats
from .records import DeviceCapacity, MacroTile
from .runs import StreamKRun

TF32 = "x"


def data_type_of(problem_type: ProblemType) -> str:
    """The letter of the type in which products are computed: the operands' type, or Tensile's x for float32 operands in
    TF32."""
    fields = problem_type.fields
    return TF32 if "F32XdlMathOp" in fields else fields.word("DataType")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a calibration describes. A newer calibration replaces an older one with an equal subject, even if driver or
    compiler have changed.

    `data_type` is a letter of `data_type_of`. `room` is part of the subject: the same device with fewer multiprocessors
    is another subject.
    """

    api: str
    device: str
    architecture: str
    kernel: str
    data_type: str
    tile: MacroTile
    room: DeviceCapacity

    @staticmethod
    def of(target: Target, kernel: str, data_type: str, tile: MacroTile, room: DeviceCapacity) -> Subject:
        """The subject, with the number of iterations whose operands fit into the device's last-level cache."""
        # Imported here because a program that only decides should not load YAML.
        from tunesmith.problems.gemm import DATA_TYPES

        element = np.dtype(DATA_TYPES["s" if data_type == TF32 else data_type].dtype).itemsize
        rows = target.last_level_cache_bytes // (tile.depth * element)
        with_cache = replace(room, cached=(rows // tile.m, rows // tile.n))
        return Subject(target.api, target.name, target.architecture, kernel, data_type, tile, with_cache)

    def __str__(self) -> str:
        return f"{self.kernel} {self.data_type} {self.tile} on {self.device}"


@dataclass(frozen=True, slots=True)
class CalibrationOrigin:
    """The driver, compiler, problem type and tunesmith version of the runs, and their date. `configuration` is the
    kernel's, without the parameters that runs vary."""

    driver: str
    compiler: str
    problem_type: str
    configuration: Configuration
    tunesmith: str
    date: str


@dataclass(frozen=True)
class StreamKCalibration:
    """Costs in the order of COSTS; their covariance in seconds squared; `scatter`, the relative standard deviation of a
    run around the model; and the runs, so that the fit can be repeated."""

    subject: Subject
    origin: CalibrationOrigin
    costs: tuple[FittedCost, ...]
    covariance: Floats
    scatter: float
    runs: tuple[StreamKRun, ...]

    @staticmethod
    def of(
        subject: Subject, origin: CalibrationOrigin, runs: Sequence[StreamKRun], random: np.random.Generator
    ) -> StreamKCalibration:
        """Fits the runs. Raises ValueError if there are too few (`fit`)."""
        return StreamKCalibration(subject, origin, *fit(runs, subject.room, random), tuple(runs))

    @property
    def values(self) -> Floats:
        return np.array([cost.value for cost in self.costs])

    @property
    def adjusted(self) -> dict[str, float]:
        """The costs that a person has adjusted, in seconds, by name."""
        return {name: cost.adjusted for name, cost in zip(COSTS, self.costs, strict=True) if cost.adjusted is not None}

    @property
    def doubt(self) -> Floats:
        """The covariance of the costs in use. An adjusted cost has none."""
        fixed = np.array([cost.adjusted is not None for cost in self.costs])
        return np.where(fixed[:, None] | fixed, 0.0, self.covariance)

    def keeping(self, older: StreamKCalibration) -> StreamKCalibration:
        """This calibration with the adjustments of the older one."""
        kept = (replace(new, adjusted=old.adjusted) for new, old in zip(self.costs, older.costs, strict=True))
        return replace(self, costs=tuple(kept))


def merged(older: Iterable[StreamKCalibration], newer: Iterable[StreamKCalibration]) -> list[StreamKCalibration]:
    """All calibrations; a newer one replaces the older one of its subject, and keeps its adjustments."""
    by_subject = {calibration.subject: calibration for calibration in older}
    for calibration in newer:
        replaced = by_subject.get(calibration.subject)
        by_subject[calibration.subject] = calibration.keeping(replaced) if replaced else calibration
    return list(by_subject.values())
