"""A problem on a target, in the numbers by which policies decide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tunesmith.models.intensity.metrics import Product
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Problem, Target

from .chips import ChipFigures, figures_of, published_ridge


@dataclass(frozen=True, slots=True)
class UnitTile:
    """The product that a sub-group computes at once: m x n elements of D, k elements along K."""

    m: int
    n: int
    k: int


NVIDIA_UNITS = {
    "float64": UnitTile(8, 8, 4),
    "float32": UnitTile(16, 16, 4),
    "tf32": UnitTile(16, 16, 8),
    "int8": UnitTile(16, 16, 32),
    "float8_e4m3fn": UnitTile(16, 16, 32),
    "float8_e5m2": UnitTile(16, 16, 32),
}
"""Two adjacent 16 x 8 products of `mma.sync` (PTX ISA). There is no instruction for exact float32; its tile is a
stand-in."""
AMD_UNITS = {
    "float64": UnitTile(16, 16, 4),
    "float32": UnitTile(16, 16, 4),
    "int8": UnitTile(16, 16, 16),
    "float8_e4m3fn": UnitTile(16, 16, 32),
    "float8_e5m2": UnitTile(16, 16, 32),
}
"""The 16 x 16 forms of the MFMA instructions (AMD's CDNA ISA guides)."""
HALF_UNIT = UnitTile(16, 16, 16)
"""The unit tile of half precision and bfloat16, for both vendors."""
CPU_UNIT = UnitTile(16, 4, 4)
"""A vector of 16 elements by four columns: a stand-in, since a CPU core has no matrix instruction."""


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """`gemm` on `target`: the product's sizes and element sizes, the unit tile, and the chip's figures.

    `arithmetic` is the type for the chip's rate: NumPy's name, or `tf32`.
    """

    gemm: Gemm
    target: Target
    product: Product
    unit: UnitTile
    chip: ChipFigures
    arithmetic: str
    element_bytes: int
    dest_bytes: int

    @staticmethod
    def of(problem: Problem, target: Target) -> PolicyInput:
        """The situation of a GEMM problem. Raises ValueError for another operation and for a size of zero."""
        gemm = Gemm.of(problem)
        element, dest = _bytes(gemm.dtype), _bytes(gemm.dest)
        arithmetic = "tf32" if gemm.tf32 and target.kind == "GPU" else gemm.dtype
        return PolicyInput(
            gemm=gemm,
            target=target,
            product=Product(gemm.m, gemm.n, gemm.k, gemm.batch, element, dest),
            unit=_unit(target.kind, target.architecture.startswith("gfx"), arithmetic),
            chip=_figures(target),
            arithmetic=arithmetic,
            element_bytes=element,
            dest_bytes=dest,
        )

    @property
    def units(self) -> int:
        """Compute units of the target, at least one."""
        return max(1, self.target.compute_units)

    @property
    def lanes(self) -> int:
        """Work-items of a sub-group, at least one."""
        return max(1, self.target.sub_group_size)

    @property
    def ridge(self) -> float | None:
        """The ridge in FLOP per byte by the chip's data sheet; None if the data sheet does not give it."""
        return _ridge(self.target, self.arithmetic)

    @property
    def is_vector(self) -> bool:
        """Whether D is one column or one row."""
        return min(self.gemm.m, self.gemm.n) == 1

    @property
    def capability(self) -> int:
        """NVIDIA's compute capability (90 for sm_90); 0 for other vendors."""
        digits = self.target.architecture.removeprefix("sm_").rstrip("af")
        return int(digits) if self.target.architecture.startswith("sm_") and digits.isdecimal() else 0

    @property
    def reads(self) -> int:
        """Elements of the widest load of A and of B, at most 16 bytes: a power of two that divides the contiguous sizes
        and the strides of both."""
        gemm = self.gemm
        a = gemm.k if gemm.transpose_a else gemm.m
        b = gemm.n if gemm.transpose_b else gemm.k
        return _widest(self.element_bytes, a, b, gemm.lda, gemm.ldb, *self._strides(gemm.stride_a, gemm.stride_b))

    @property
    def writes(self) -> int:
        """Elements of the widest access to C and D, as `reads` for A and B."""
        gemm = self.gemm
        return _widest(self.dest_bytes, gemm.m, gemm.ldc, gemm.ldd, *self._strides(gemm.stride_c, gemm.stride_d))

    def _strides(self, *strides: int) -> tuple[int, ...]:
        return strides if self.gemm.batch > 1 else ()


def _widest(element_bytes: int, *extents: int) -> int:
    return math.gcd(16 // element_bytes, *extents)


@lru_cache(maxsize=64)
def _bytes(dtype: str) -> int:
    return int(np.dtype(dtype).itemsize)


@lru_cache(maxsize=64)
def _unit(kind: str, is_amd: bool, arithmetic: str) -> UnitTile:
    if kind == "CPU":
        return CPU_UNIT
    return (AMD_UNITS if is_amd else NVIDIA_UNITS).get(arithmetic, HALF_UNIT)


@lru_cache(maxsize=64)
def _figures(target: Target) -> ChipFigures:
    return figures_of(target)


@lru_cache(maxsize=64)
def _ridge(target: Target, arithmetic: str) -> float | None:
    return published_ridge(target, arithmetic)
