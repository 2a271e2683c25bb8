"""A C++ header with tuned kernels that replaces one of portBLAS's backend files: `_gemm` for all sizes.

The names and the order of parameters are those that portBLAS's library requires (`Gemm_Launcher`, `Tile`, `_gemm`);
the rest of the text is ours. portBLAS's own backends choose once for all transpositions; this header chooses for each.
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
class TunedSize:
    """A measured problem, with the combination that won and its speed."""

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
    def description(self) -> str:
        """The measured problem and the winner's speed, as a comment in the header."""
        many = f", {self.batch} of them" if self.batch > 1 else ""
        return f"{self.m} x {self.n}, K = {self.k}{many}: {self.gflops:.4g} GFLOP/s"

    @property
    def arguments(self) -> str:
        return _arguments(self.combination)


@dataclass(frozen=True)
class BackendTable:
    """The sizes of one element type, transposition and layout, the fastest first.

    The order matters if several sizes are equally near: the header takes the first of them.
    """

    transpose_a: bool
    transpose_b: bool
    sizes: tuple[TunedSize, ...]


@dataclass(frozen=True, slots=True)
class Absent:
    """A transposition that was not tuned."""

    transpose_a: bool
    transpose_b: bool


_PLAIN = {
    False: Combination("local", "full", 1, 64, item=(2, 2), group=(8, 8)),
    True: Combination("interleaved", "full", 4, item=(2, 2), group=(4, 4), batch=(4, 4)),
}
"""The combination that runs if nothing was tuned, by whether the batch is interleaved.

The first is legal for all of portBLAS's element types, also complex ones of 16 bytes, and for symmetric operands.
"""

_ELEMENT_BYTES = {"h": 2, "s": 4, "d": 8}


def compiles_for(combination: Combination, data_type: str) -> bool:
    """Whether portBLAS's kernels compile with a combination for this data type.

    Their assertions depend on the element's size, while our lists, like the original's, are made for single precision.
    """
    return _fits(combination, _ELEMENT_BYTES[data_type])


def header(sizes: Iterable[TunedSize], device: str, version: str) -> str:
    """The header's text. At run time a size that was not tuned gets the choice of the nearest tuned size; a
    transposition that was not tuned gets the choices of another one."""
    by_real: dict[str, list[TunedSize]] = {}
    for size in sizes:
        by_real.setdefault(size.real, []).append(size)
    types = {real: {layout: _tables(found, layout) for layout in (False, True)} for real, found in by_real.items()}
    plain = {interleaved: _arguments(combination) for interleaved, combination in _PLAIN.items()}
    return template("portblas_backend.hpp.jinja").render(
        types=types, device=device, version=version, absent=_absent, plain=plain
    )


def _tables(sizes: Iterable[TunedSize], interleaved: bool) -> list[BackendTable]:
    transposes = attrgetter("transpose_a", "transpose_b")
    selected = [size for size in sizes if size.interleaved == interleaved]
    selected.sort(key=lambda size: (transposes(size), -size.gflops))
    return [BackendTable(*pair, tuple(found)) for pair, found in groupby(selected, transposes)]


def _absent(tables: Sequence[BackendTable]) -> list[Absent]:
    tuned = {(table.transpose_a, table.transpose_b) for table in tables}
    return [Absent(a, b) for a, b in product((False, True), (False, True)) if (a, b) not in tuned]


def _fits(combination: Combination, element_bytes: int) -> bool:
    """Whether a combination is legal for elements of this size.

    The rules count elements of 4 bytes, so they are asked with a cache line that holds as many floats as this
    combination's line holds elements.
    """
    if combination.cache_line * FLOAT_BYTES % element_bytes:
        return False
    as_floats = replace(combination, cache_line=combination.cache_line * FLOAT_BYTES // element_bytes)
    return rejection(as_floats, RuleSet.OURS) is None


def _arguments(combination: Combination) -> str:
    """A combination as arguments of `Gemm_Launcher`, without the transpositions.

    The first argument is the sum of the element sizes, in bytes, for which the combination is legal.
    """
    parts = (
        str(sum(size for size in _ELEMENT_BYTES.values() if _fits(combination, size))),
        str(combination.group[0] * combination.group[1] * combination.batch[1]),
        *(str(flag).lower() for flag in combination.flags),
        str(combination.cache_line),
        combination.tile(),
        f"gemm_memory_t::{combination.words.memory}",
        f"gemm_algorithm_t::{combination.words.algorithm}",
        f"gemm_vectorization_t::{combination.vectorization}",
        str(combination.vector),
        f"gemm_batch_type_t::{combination.words.batch}",
    )
    return ", ".join(parts)
