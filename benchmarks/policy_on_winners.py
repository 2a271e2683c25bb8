"""How near are the policies' tiles to those of tuned winners, on products that no policy was fitted to?

    python benchmarks/policy_on_winners.py WINNERS --type f16 [--matrix-only] [--json RESULT.json]

WINNERS is a table of Tensile's winners for gfx90a; rows with batch 1 and sizes of at least 16 count. A tree is fitted
to three quarters of the groups of equal M and N. On the last quarter, each policy chooses a configuration of
TritonGemm, and the area of its macro tile is compared with the winner's. The scores are R2 of ln(area), against the
mean of the scored winners; the geometric mean of the ratio of areas; and the share of choices within a factor of two.

The scores only say which policy chooses as Tensile's tuning did. A tile's area does not say how much time another tile
loses, and the winners are Tensile's kernels, not Triton's.
"""

from __future__ import annotations

import argparse
import json
import math
import zlib
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from tunesmith import __version__
from tunesmith.kernels import KERNELS
from tunesmith.models.intensity.fit.comparison import FitSettings
from tunesmith.models.intensity.fit.fitting import fit_tree
from tunesmith.models.intensity.fit.heuristic import FitOrigin
from tunesmith.models.intensity.fit.sample import TunedSample
from tunesmith.models.intensity.fit.tree import DEEPEST
from tunesmith.models.intensity.metrics import METRICS
from tunesmith.models.intensity.policies import POLICIES, PolicyChoice, TilePolicy
from tunesmith.models.intensity.policies.fitted import FittedPolicy
from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.models.intensity.policies.tuned_tile import TYPES
from tunesmith.records import Problem
from tunesmith.session.heuristics.sources import ReadSample, SourceTask, read_sample

ARCHITECTURE, FAMILY = "gfx90a", "TritonGemm"
HELD_OUT = 4
"""One group in four is held out."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("winners", type=Path)
    parser.add_argument("--type", default="f16", choices=sorted(TYPES))
    parser.add_argument("--matrix-only", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    keep = {"arch": (ARCHITECTURE,), "dtype": (options.type,), "batch": ("1",)}
    read = read_sample(SourceTask((options.winners,), keep, 16, options.matrix_only))
    held = np.array([zlib.crc32(group.encode()) % HELD_OUT == 0 for group in read.sample.groups])
    fitted = FittedPolicy(fit_tree(part(read.sample, ~held), settings(), origin(read)).heuristic, "the fit")
    scored = part(read.sample, held)
    policies: dict[str, TilePolicy] = {name: POLICIES[name] for name in POLICIES if name != "fitted"}
    rows = [summary(name, policy, scored, options.type) for name, policy in {**policies, "fitted": fitted}.items()]
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    shown = Table("policy", "products", "R2", "area / winner's", "within 2x", box=None)
    for row in rows:
        shown.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in row.values()))
    Console().print(shown)


def part(sample: TunedSample, rows: np.ndarray) -> TunedSample:
    numbers = np.flatnonzero(rows).tolist()
    assert sample.areas is not None
    return replace(
        sample,
        products=tuple(sample.products[row] for row in numbers),
        groups=tuple(sample.groups[row] for row in numbers),
        winners=tuple(sample.winners[row] for row in numbers),
        areas=sample.areas[numbers],
    )


def settings() -> FitSettings:
    return FitSettings(metrics=tuple(METRICS), depths=tuple(range(1, DEEPEST + 1)))


def origin(read: ReadSample) -> FitOrigin:
    today = datetime.now(UTC).date().isoformat()
    sizes = (len(read.sample.products), len(set(read.sample.groups)), read.operand_bytes, read.result_bytes)
    return FitOrigin(("winners",), "three quarters", read.device, read.data_type, *sizes, "tree", __version__, today)


def summary(name: str, policy: TilePolicy, sample: TunedSample, data_type: str) -> dict[str, str | int | float]:
    assert sample.areas is not None
    target, kernel = known_target(ARCHITECTURE), KERNELS[FAMILY]
    chosen, tuned = [], []
    for product, area in zip(sample.products, sample.areas, strict=True):
        answer = policy.choose(Problem(TYPES[data_type], (product.m, product.n, product.k)), target, kernel)
        # Two of the float32 products are larger than the memory of the MI210, and no policy has a configuration.
        if isinstance(answer, PolicyChoice):
            chosen.append(math.prod(answer.configuration.integers("MacroTile")))
            tuned.append(area)
    winners = np.log(np.array(tuned))
    log_ratios = np.log(np.array(chosen, dtype=float)) - winners
    return {
        "policy": name,
        "products": len(chosen),
        "r2": 1 - float((log_ratios**2).sum() / ((winners - winners.mean()) ** 2).sum()),
        "ratio": float(np.exp(log_ratios.mean())),
        "within_two": float((np.abs(log_ratios) <= np.log(2) + 1e-9).mean()),
    }


if __name__ == "__main__":
    main()
