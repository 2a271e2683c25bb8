"""What was calibrated: the costs of one kernel with one tile on one device, and what a person has put right in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tunesmith.records import Configuration, ProblemType, Target

from .cache import Floats
from .costs import COSTS
from .fit import FittedCost, fit
from .records import MacroTile, Room
from .runs import StreamKRun

TF32 = "x"


def data_type_of(problem_type: ProblemType) -> str:
    """The letter of the type that products are made in: the operands', or Tensile's x for float32 operands in TF32."""
    fields = problem_type.fields
    return TF32 if "F32XdlMathOp" in fields else fields.word("DataType")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a calibration is of. Two with the same subject are one at two times: driver and compiler may have changed.

    `data_type` is what `data_type_of` says. `room` belongs to it: part of a device's multiprocessors are another one.
    """

    api: str
    device: str
    architecture: str
    kernel: str
    data_type: str
    tile: MacroTile
    room: Room

    @staticmethod
    def of(target: Target, kernel: str, data_type: str, tile: MacroTile, room: Room) -> Subject:
        """With what the device's last-level cache holds of such operands."""
        # Imported here since a program that only decides reads no YAML.
        from tunesmith.problems.gemm import DATA_TYPES

        element = np.dtype(DATA_TYPES["s" if data_type == TF32 else data_type].dtype).itemsize
        held = target.last_level_cache_bytes // (tile.depth * element)
        known = replace(room, cached=(held // tile.m, held // tile.n))
        return Subject(target.api, target.name, target.architecture, kernel, data_type, tile, known)

    def __str__(self) -> str:
        return f"{self.kernel} {self.data_type} {self.tile} on {self.device}"


@dataclass(frozen=True, slots=True)
class CalibrationOrigin:
    """With what and when the runs were made; `configuration` is the kernel's, without what the runs vary."""

    driver: str
    compiler: str
    problem_type: str
    configuration: Configuration
    tunesmith: str
    date: str


@dataclass(frozen=True)
class StreamKCalibration:
    """Costs in the order of COSTS; their covariance in seconds squared; `scatter`, the relative standard deviation of a
    run around the model; and the runs, so that a fit can be made again."""

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
        """Raises ValueError for runs that say too little (`fit`)."""
        return StreamKCalibration(subject, origin, *fit(runs, subject.room, random), tuple(runs))

    @property
    def values(self) -> Floats:
        return np.array([cost.value for cost in self.costs])

    @property
    def adjusted(self) -> dict[str, float]:
        """What a person has put right, by the cost's name."""
        return {name: cost.adjusted for name, cost in zip(COSTS, self.costs, strict=True) if cost.adjusted is not None}

    @property
    def doubt(self) -> Floats:
        """The covariance of what is used: nobody's guess has any."""
        fixed = np.array([cost.adjusted is not None for cost in self.costs])
        return np.where(fixed[:, None] | fixed, 0.0, self.covariance)

    def keeping(self, older: StreamKCalibration) -> StreamKCalibration:
        """This one with the older one's adjustments."""
        kept = (replace(new, adjusted=old.adjusted) for new, old in zip(self.costs, older.costs, strict=True))
        return replace(self, costs=tuple(kept))


def merged(older: Iterable[StreamKCalibration], newer: Iterable[StreamKCalibration]) -> list[StreamKCalibration]:
    """Both: a newer one takes the place of the older one of its subject, and keeps what a person has adjusted there."""
    by_subject = {one.subject: one for one in older}
    for one in newer:
        known = by_subject.get(one.subject)
        by_subject[one.subject] = one.keeping(known) if known else one
    return list(by_subject.values())
