"""Fitting a calibration again, to its own runs and the finalists of a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tunesmith.models.stream_k.calibration_file import dump
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    CalibrationOrigin,
    StreamKCalibration,
    StreamKRun,
    merged,
)

from .calibrate import SEED
from .planned import Planner
from .swept import Swept


@dataclass(frozen=True)
class Refit:
    """The calibration before (None if there was none) and after the fit.

    `text` is the new content of the file `path`, with all its calibrations. `changed` is the number of the sweep's
    products that the calibrated model now launches differently.
    """

    before: StreamKCalibration | None
    after: StreamKCalibration
    path: Path
    text: str
    changed: int


def refit(
    path: Path,
    known: Sequence[StreamKCalibration],
    origin: CalibrationOrigin,
    swept: Sequence[Swept],
    planner: Planner,
) -> Refit:
    """Fit the costs of the planner's kernel to its own runs and the finalists of a sweep.

    Other `known` calibrations stay as they are, and so do a person's adjustments of this one. Raises ValueError if the
    runs do not determine the costs.
    """
    subject = planner.kernel.subject
    before = next((calibration for calibration in known if calibration.subject == subject), None)
    runs = _with_finalists(before.runs if before else (), swept)
    fitted = StreamKCalibration.of(subject, origin, runs, np.random.default_rng(SEED))
    calibrations = merged(known, [fitted])
    after = next(calibration for calibration in calibrations if calibration.subject == subject)
    library_model, refitted = planner.models[0].name, CalibratedModel(after, planner.kernel.parts)
    changed = sum(product.choices[library_model] != planner.launched(refitted, product.work) for product in swept)
    return Refit(before, after, path, dump(calibrations), changed)


def _with_finalists(known: Iterable[StreamKRun], swept: Iterable[Swept]) -> list[StreamKRun]:
    """The known runs and the finalists of a sweep, one run for each launch; a finalist replaces a known run.

    Only finalists count. All choices of a sweep would outweigh the known runs, which tell the costs apart, with
    launches that are never chosen.
    """
    runs = {(run.work, run.choice): run for run in known}
    for product in swept:
        # In the file and in the model, the tiles of a batch are like any other tiles.
        work = replace(product.work, batch=1)
        for choice, estimate in product.finals.items():
            runs[work, choice] = StreamKRun(work, choice, estimate.seconds)
    return list(runs.values())
