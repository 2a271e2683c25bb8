"""Known costs, runs with these costs, and a calibration from the runs; strategies for any work on any room."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from tunesmith.models.stream_k import calibration as calibration_module
from tunesmith.models.stream_k.costs import SPLITS, counts
from tunesmith.models.stream_k.decision_models import (
    CalibrationOrigin,
    DeviceCapacity,
    MacroTile,
    StreamKCalibration,
    StreamKRun,
    Subject,
    TiledProduct,
    calibration_runs,
)
from tunesmith.records import Configuration

COSTLY = np.array([5.0, 0.6, 0.2, 0.5, 1.0, 2.0, 0.8, 0.02, 0.03]) * 1e-6
"""Start, iteration, busy, wave, tile, partial, peer, misaligned, apart: about a 128 x 128 x 64 tile on a large GPU."""

ORIGIN = CalibrationOrigin(
    "1.0", "a compiler 1", "Cij_Aik_Bjk_SB", Configuration({"WorkGroup": (8, 8, 1)}), "0.1.0", "2026-11-01"
)
TILE = MacroTile(128, 128, 64, block=4)
H200, MI300X = DeviceCapacity(132), DeviceCapacity(304)

works = st.builds(
    TiledProduct,
    tiles=st.integers(1, 90),
    iterations=st.integers(1, 60),
    depth=st.just(32),
    down=st.integers(0, 90),
    block=st.integers(1, 9),
)
rooms = st.builds(
    DeviceCapacity, st.integers(1, 30), st.integers(1, 3), st.sampled_from(((0, 0), (3, 1), (40, 90), (900, 999)))
)


def runs_on(room: DeviceCapacity, noise: float = 0.0, tile: MacroTile = TILE) -> list[StreamKRun]:
    """The calibration runs with times by the known costs, with relative noise."""
    random = np.random.default_rng(1)
    runs = []
    for work, choice in calibration_runs(room, tile, SPLITS):
        factor = 1 + noise * random.standard_normal()
        runs.append(StreamKRun(work, choice, float(counts(work, choice, room) @ COSTLY * factor)))
    return runs


_CALIBRATIONS: dict[str, StreamKCalibration] = {}
"""What was fitted in this process. The keys are texts, since rooms with different caches are equal."""


def calibration(
    room: DeviceCapacity, subject: Subject | None = None, noise: float = 0.01, driver: str = ORIGIN.driver
) -> StreamKCalibration:
    """Fitted to runs with the known costs, once for the same arguments."""
    tile = subject.tile if subject else TILE
    subject = subject or Subject("CUDA", "a GPU", "sm_90", "SomeGemm", "s", tile, room)
    # Some tests fit with fewer resamples, which others must not get.
    key = repr((room, subject, noise, driver, getattr(calibration_module.fit, "keywords", None)))
    if key not in _CALIBRATIONS:
        origin = replace(ORIGIN, driver=driver, configuration=ORIGIN.configuration | {"WorkGroupMapping": tile.block})
        runs = runs_on(room, noise, tile)
        _CALIBRATIONS[key] = StreamKCalibration.of(subject, origin, runs, np.random.default_rng(0))
    return _CALIBRATIONS[key]
