"""A calibration that has learnt from a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tunesmith.models.stream_k.file import dump
from tunesmith.models.stream_k.predict import Calibrated, CalibrationOrigin, StreamKCalibration, StreamKRun, merged

from .calibrate import SEED
from .planned import Planner
from .swept import Swept


@dataclass(frozen=True)
class Refit:
    """The calibration that was (None: there was none) and the one that takes its place in `path`, whose `text` has all
    calibrations; `changed` of the sweep's products are launched otherwise now."""

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

    The others that are `known` stay as they are, and so do a person's adjustments of its costs. Raises ValueError for
    runs that say too little.
    """
    subject = planner.kernel.subject
    before = next((one for one in known if one.subject == subject), None)
    runs = _learnt(before.runs if before else (), swept)
    made = StreamKCalibration.of(subject, origin, runs, np.random.default_rng(SEED))
    every = merged(known, [made])
    after = next(one for one in every if one.subject == subject)
    asked, now = planner.models[0].name, Calibrated(after, planner.kernel.parts)
    changed = sum(one.said[asked] != planner.launched(now, one.work) for one in swept)
    return Refit(before, after, path, dump(every), changed)


def _learnt(known: Iterable[StreamKRun], swept: Iterable[Swept]) -> list[StreamKRun]:
    """A run for each launch; what is newer takes the place of what is known of it.

    Of a sweep, only finalists count: all choices would drown the others, which are there to tell costs apart, in
    launches that nobody takes.
    """
    runs = {(run.work, run.choice): run for run in known}
    for one in swept:
        # To a file, and to the model, the tiles of a batch are like any others.
        work = replace(one.work, batch=1)
        for choice, estimate in one.finals.items():
            runs[work, choice] = StreamKRun(work, choice, estimate.seconds)
    return list(runs.values())
