"""Benchmark files of generators, made up: speeds by generator, distribution and type, and launch shape."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tunesmith.logic.random.choice import choose_shapes
from tunesmith.logic.random.decision import RandomDecision, RandomObjective
from tunesmith.records import LaunchShape, RandomRow

ROOT = Path(__file__).parents[2]
GOLDEN = Path(os.environ.get("TUNESMITH_DATA", ROOT.parent / "shared" / "data")) / "rocrand"

Speeds = Mapping[str, Mapping[tuple[int, int], float]]
"""By `distribution/type`, then by block and grid, in GB/s."""


def rows(generator: str, speeds: Speeds, architecture: str = "gfx90a", **more: Any) -> tuple[RandomRow, ...]:
    """Records of the speeds; `more` are fields of all of them."""
    return tuple(
        RandomRow(generator, *pair.split("/"), LaunchShape(*shape), architecture, speed, "f.json", pair, **more)
        for pair, row in speeds.items()
        for shape, speed in row.items()
    )


def benchmark(name: str, gigabytes: float | None, **more: Any) -> dict[str, Any]:
    """A row of google-benchmark's file; without a speed, one that failed."""
    rate = (
        {"error_occurred": True, "error_message": "no"} if gigabytes is None else {"bytes_per_second": gigabytes * 1e9}
    )
    return {"name": f"{name}/manual_time", "run_type": "iteration", **rate, **more}


def benchmarks(generator: str, speeds: Speeds) -> list[dict[str, Any]]:
    return [
        benchmark(f"{generator}_{pair.replace('/', '_')}_t{block}_b{grid}", speed)
        for pair, row in speeds.items()
        for (block, grid), speed in row.items()
    ]


def write(path: Path, found: Iterable[dict[str, Any]], architecture: str | None = "gfx90a:sramecc+:xnack-") -> Path:
    """Write them as google-benchmark does, with rocRAND's context."""
    context = {"bytes": "536870912"} | ({"hdp_gcn_arch_name": architecture} if architecture is not None else {})
    path.write_text(json.dumps({"context": context, "benchmarks": list(found)}))
    return path


def decide(
    found: tuple[RandomRow, ...], objective: RandomObjective = RandomObjective.GEOMEAN, **more: Any
) -> RandomDecision:
    """The one decision about rows with which nothing is wrong."""
    selection = choose_shapes(found, objective, **more)
    assert not selection.complaints
    (decision,) = selection.decisions
    return decision


def pair(shape: LaunchShape) -> tuple[int, int]:
    return shape.block, shape.grid
