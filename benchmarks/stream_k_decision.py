"""How long does a stream-K decision take on the host: the first for a product, and a repeated one?

    python benchmarks/stream_k_decision.py [--calibration FILE] [--units 132] [--occupancy 1] [--products 2000]

Products have M, N and K log-uniform from 128 to 16384. The calibrated model decides among all grids, all useful numbers
of split tiles, and split-K. Without a calibration file its costs are made up, which does not change the work. A
product's time is the shortest of a few attempts, since other load may slow a single attempt. The output has the median
and the 95th percentile over the products.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from tunesmith.models.stream_k.calibration_file import read
from tunesmith.models.stream_k.decision_models import (
    CalibratedModel,
    CalibrationOrigin,
    DeviceCapacity,
    FittedCost,
    MacroTile,
    Model,
    PortableModel,
    Predictor,
    StreamKCalibration,
    Subject,
    TensileModel,
)
from tunesmith.records import Configuration

ATTEMPTS = 5
REPEATS = 50
"""Cached decisions timed together, since a single decision takes no longer than a call of the clock."""
TILE = MacroTile(128, 128, 64)
CACHED = 3840, 3840
"""Iterations of this tile whose pieces of A and of B, in 16 bits, 60 MiB of cache hold."""
MADE_UP = (5.0, 0.6, 0.2, 0.5, 1.0, 2.0, 0.8, 0.02, 0.05)
"""Made-up costs in microseconds, in the model's order."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calibration", type=Path, help="what `tunesmith calibrate stream-k` wrote; its first entry")
    parser.add_argument("--units", type=int, default=132, help="compute units")
    parser.add_argument("--occupancy", type=int, default=1, help="work-groups of each")
    parser.add_argument("--products", type=int, default=2000)
    options = parser.parse_args()
    room = DeviceCapacity(options.units, options.occupancy, CACHED)
    calibration = read(options.calibration)[0] if options.calibration else _made_up(room)
    models: Sequence[Model] = (
        CalibratedModel(calibration),
        PortableModel(calibration.subject.room),
        TensileModel(room),
    )
    products = list(_products(options.products))
    print(f"{calibration.subject.room.groups} work-groups at once, {len(products)} products, microseconds")
    print(f"{'model':<12}{'cold':>10}{'95 %':>10}{'cached':>10}")
    for model in models:
        cold = [_shortest(partial(_first, model, sizes)) for sizes in products]
        predictor = Predictor(calibration.subject.tile, model)
        for sizes in products:
            predictor.decide(*sizes)
        again = partial(_again, predictor)
        cached = [_shortest(partial(again, sizes)) / REPEATS for sizes in products]
        worst = sorted(cold)[int(0.95 * len(cold))]
        print(f"{model.name:<12}{statistics.median(cold):>10.1f}{worst:>10.1f}{statistics.median(cached):>10.2f}")


def _first(model: Model, sizes: tuple[int, int, int, int]) -> float:
    predictor = Predictor(TILE, model)
    began = time.perf_counter()
    predictor.decide(*sizes)
    return time.perf_counter() - began


def _again(predictor: Predictor, sizes: tuple[int, int, int, int]) -> float:
    began = time.perf_counter()
    for _ in range(REPEATS):
        predictor.decide(*sizes)
    return time.perf_counter() - began


def _shortest(timed: Callable[[], float]) -> float:
    """The shortest of some attempts, in microseconds."""
    return 1e6 * min(timed() for _ in range(ATTEMPTS))


def _products(count: int) -> Iterator[tuple[int, int, int, int]]:
    random = np.random.default_rng(0)
    for m, n, k in np.exp(random.uniform(np.log(128), np.log(16384), (count, 3))).astype(int).tolist():
        yield m, n, 1, k


def _made_up(room: DeviceCapacity) -> StreamKCalibration:
    costs = tuple(FittedCost(1e-6 * micro, 0.9e-6 * micro, 1.1e-6 * micro) for micro in MADE_UP)
    subject = Subject("none", "no device", "none", "none", "s", TILE, room)
    origin = CalibrationOrigin("none", "none", "none", Configuration(), "none", "never")
    return StreamKCalibration(subject, origin, costs, np.diag([(0.05 * cost.value) ** 2 for cost in costs]), 0.01, ())


if __name__ == "__main__":
    main()
