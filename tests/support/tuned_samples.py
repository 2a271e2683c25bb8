"""Products that were tuned, made up so that the answer is known, and where the real tables of winners are."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tunesmith.models.intensity.fit.heuristic import FitOrigin
from tunesmith.models.intensity.fit.sample import TunedSample
from tunesmith.models.intensity.metrics import Product
from tunesmith.records import Configuration

ROOT = Path(__file__).parents[2]
WINNERS = Path(os.environ.get("TUNESMITH_DATA", ROOT.parent / "shared" / "data")) / "tuned_winners"
CONVOLUTIONS = WINNERS / "mi300x_tuned_convs_2025-06-17.csv"
TENSILE = WINNERS / "rocblas_winners_gfx90a_gfx906.csv.gz"
needs_winners = pytest.mark.skipif(not TENSILE.is_file(), reason="the tables of winners are not there (TUNESMITH_DATA)")

ORIGIN = FitOrigin(("made-up.csv",), "all", "gfx90a", "f16", 200, 50, 2.0, 2.0, "dp", "0.1.0", "2026-01-02")
TILES = ((16, 16), (64, 64), (128, 128))
BREAKS = (1e6, 1e9)
"""M N K where the made-up tiles change."""

TENSILE_HEADER = (
    "device,arch,cu,dtype,dest,hpa,ta,tb,m,n,batch,k,mt0,mt1,depthu,gsu,lsu,wgm,mi,wgthreads,pgr,vw,metric,value"
)


def products(count: int, seed: int = 0) -> list[Product]:
    """Sizes from 16 to 4096, evenly by logarithm; a few pairs M, N with several K each."""
    chance = np.random.default_rng(seed)
    pairs = [np.exp2(chance.uniform(4, 12, size=2)).astype(int) for _ in range(max(count // 4, 2))]
    depths = np.exp2(chance.uniform(4, 12, size=count)).astype(int)
    return [Product(*map(int, pairs[index % len(pairs)]), int(k), 1, 2.0, 2.0) for index, k in enumerate(depths)]


def tile_of(product: Product) -> tuple[int, int]:
    """The tile that the made-up tuning found, by M N K alone."""
    return TILES[int(np.searchsorted(BREAKS, product.mnk, side="right"))]


def sample(count: int = 200, seed: int = 0, seconds: np.ndarray | None = None, candidates: int = 0) -> TunedSample:
    made = products(count, seed)
    tiles = [tile_of(product) for product in made]
    return TunedSample(
        tuple(made),
        tuple(f"{product.m} x {product.n}" for product in made),
        tuple(Configuration({"MacroTile": tile}) for tile in tiles),
        np.array([float(rows * columns) for rows, columns in tiles]),
        100.0,
        104,
        tuple(Configuration({"Candidate": number}) for number in range(candidates)),
        seconds,
    )


def tensile_row(product: Product, tile: tuple[int, int], speed: float = 1.0, **cells: object) -> str:
    """A line of a table of Tensile's winners."""
    values: dict[str, object] = dict.fromkeys(TENSILE_HEADER.split(","), "")
    values |= {"device": "aldebaran", "arch": "gfx90a", "dtype": "f16", "dest": "f16", "ta": "N", "tb": "T"}
    values |= {"m": product.m, "n": product.n, "batch": product.batch, "k": product.k, "depthu": 32, "gsu": 1}
    values |= {"mt0": tile[0], "mt1": tile[1], "mi": "32x32x8x1", "value": speed} | cells
    return ",".join(map(str, values.values()))


def tensile_table(folder: Path, count: int = 120, seed: int = 0) -> Path:
    """A table of winners whose tiles change at BREAKS."""
    path = folder / "winners.csv"
    rows = [tensile_row(product, tile_of(product)) for product in products(count, seed)]
    path.write_text("\n".join([TENSILE_HEADER, *rows]) + "\n")
    return path
