"""A C++ header for portBLAS with what was tuned: in the place of one of its backend files, `_gemm` for all sizes.

Of portBLAS are the names and the order of parameters that its library asks for (`Gemm_Launcher`, `Tile`, `_gemm`); the
files' words are ours. Its own backends have one choice for all transpositions; here each has its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from operator import attrgetter

from ..templating import template
from .combination import Combination, RuleSet
from .results import TYPE_NAMES
from .rules import FLOAT_BYTES, rejection


@dataclass(frozen=True, slots=True)
class Size:
    """A problem that was measured, with the combination that won it, and how fast that was."""

    data_type: str
    transpose_a: bool
    transpose_b: bool
    interleaved: bool
    m: int
    n: int
    k: int
    batch: int
    combination: Combination
    gflops: float

    @property
    def real(self) -> str:
        """The element's type in C++."""
        return {"half": "sycl::half"}.get(TYPE_NAMES[self.data_type], TYPE_NAMES[self.data_type])

    @property
    def place(self) -> str:
        """For the reader: what was measured, and how fast it was."""
        many = f", {self.batch} of them" if self.batch > 1 else ""
        return f"{self.m} x {self.n}, K = {self.k}{many}: {self.gflops:.4g} GFLOP/s"

    @property
    def arguments(self) -> str:
        return _arguments(self.combination)


@dataclass(frozen=True)
class BackendTable:
    """The sizes of one element type, transposition and layout, the fastest first: of equally near ones it counts."""

    transpose_a: bool
    transpose_b: bool
    sizes: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """A transposition that was not tuned."""

    transpose_a: bool
    transpose_b: bool


_PLAIN = {
    False: Combination("local", "full", 1, 64, item=(2, 2), group=(8, 8)),
    True: Combination("interleaved", "full", 4, item=(2, 2), group=(4, 4), batch=(4, 4)),
}
"""By whether the batch is interleaved: what runs where nothing was tuned. The first one is legal for every element that
portBLAS has, complex ones of 16 bytes too, and for symmetric operands."""

_ELEMENT_BYTES = {"h": 2, "s": 4, "d": 8}


def is_taken(combination: Combination, data_type: str) -> bool:
    """Whether portBLAS's kernels compile with it for this element: what they assert depends on the element's size,
    while our lists, like the original's, are made for single precision."""
    return _fits(combination, _ELEMENT_BYTES[data_type])


def header(sizes: Iterable[Size], device: str, version: str) -> str:
    """The text. A size that is not among these takes the nearest one; what was not tuned at all takes what
    was tuned for another transposition."""
    by_real: dict[str, list[Size]] = {}
    for one in sizes:
        by_real.setdefault(one.real, []).append(one)
    types = {real: {layout: _tables(found, layout) for layout in (False, True)} for real, found in by_real.items()}
    plain = {interleaved: _arguments(combination) for interleaved, combination in _PLAIN.items()}
    return template("portblas_backend.hpp.jinja").render(
        types=types, device=device, version=version, absent=_absent, plain=plain
    )


def _tables(sizes: Iterable[Size], interleaved: bool) -> list[BackendTable]:
    transposes = attrgetter("transpose_a", "transpose_b")
    those = [one for one in sizes if one.interleaved == interleaved]
    those.sort(key=lambda one: (transposes(one), -one.gflops))
    return [BackendTable(*which, tuple(found)) for which, found in groupby(those, transposes)]


def _absent(tables: Sequence[BackendTable]) -> list[Absent]:
    there = {(table.transpose_a, table.transpose_b) for table in tables}
    return [Absent(a, b) for a, b in product((False, True), (False, True)) if (a, b) not in there]


def _fits(one: Combination, element_bytes: int) -> bool:
    """The rules count elements of 4 bytes: for others a line holds as many elements as a line of another length."""
    if one.cache_line * FLOAT_BYTES % element_bytes:
        return False
    as_floats = replace(one, cache_line=one.cache_line * FLOAT_BYTES // element_bytes)
    return rejection(as_floats, RuleSet.OURS) is None


def _arguments(one: Combination) -> str:
    """A combination as `Gemm_Launcher` takes it, without what is transposed; first, the elements it is legal for."""
    parts = (
        str(sum(size for size in _ELEMENT_BYTES.values() if _fits(one, size))),
        str(one.group[0] * one.group[1] * one.batch[1]),
        *(str(flag).lower() for flag in one.flags),
        str(one.cache_line),
        one.tile(),
        f"gemm_memory_t::{one.words.memory}",
        f"gemm_algorithm_t::{one.words.algorithm}",
        f"gemm_vectorization_t::{one.vectorization}",
        str(one.vector),
        f"gemm_batch_type_t::{one.words.batch}",
    )
    return ", ".join(parts)
