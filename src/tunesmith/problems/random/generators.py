"""The random number generators: names, kinds, default launch shapes, and which distributions and types they give."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a generator's numbers depend on who computes them."""

    COUNTER = "counter"
    """Number n is a function of n: every launch shape gives the same."""
    ENGINE = "engine"
    """As many engines as work-items, each with a stream of its own: the launch shape is part of the sequence."""
    QUASI = "quasi"
    """Points of a low-discrepancy sequence in several dimensions: every launch shape gives the same."""


@dataclass(frozen=True, slots=True)
class Generator:
    """`default_block` work-items in each of `default_grid` work-groups are what nobody tuned, as in rocRAND.

    `block_multiple` (of work-items), `most_engines`, `power_of_two`, `block` restrict the launch shape of an engine
    kind; generators with `skips` can leave out the beginning of their sequence. `word_bits` is the length of a quasi
    generator's points.
    """

    name: str
    kind: Kind
    default_block: int
    default_grid: int
    word_bits: int = 32
    skips: bool = True
    block_multiple: int = 1
    most_engines: int | None = None
    power_of_two: bool = False
    block: int | None = None

    @property
    def default_engines(self) -> int:
        return self.default_block * self.default_grid


MOST_SUBSEQUENCES = 1 << 24
"""Engines of a generator that jumps to its subsequences: for so many there are matrices (`kernels.random.jumps`)."""


_ALL = (
    Generator("lfsr113", Kind.ENGINE, 256, 512, power_of_two=True, most_engines=MOST_SUBSEQUENCES),
    Generator("mrg31k3p", Kind.ENGINE, 256, 512, most_engines=MOST_SUBSEQUENCES),
    Generator("mrg32k3a", Kind.ENGINE, 256, 512, most_engines=MOST_SUBSEQUENCES),
    Generator("mt19937", Kind.ENGINE, 256, 256, skips=False, block_multiple=8, most_engines=8 * 65536),
    Generator("mtgp32", Kind.ENGINE, 256, 512, skips=False, block_multiple=256, most_engines=256 * 512, block=256),
    Generator("philox4_32_10", Kind.COUNTER, 256, 1024),
    Generator("threefry2_32_20", Kind.COUNTER, 256, 1024),
    Generator("threefry2_64_20", Kind.COUNTER, 256, 1024),
    Generator("threefry4_32_20", Kind.COUNTER, 256, 1024),
    Generator("threefry4_64_20", Kind.COUNTER, 256, 1024),
    Generator("xorwow", Kind.ENGINE, 256, 512, most_engines=MOST_SUBSEQUENCES),
    Generator("sobol32", Kind.QUASI, 256, 4096),
    Generator("sobol64", Kind.QUASI, 256, 4096, word_bits=64),
    Generator("scrambled_sobol32", Kind.QUASI, 256, 4096),
    Generator("scrambled_sobol64", Kind.QUASI, 256, 4096, word_bits=64),
)

GENERATORS = {generator.name: generator for generator in _ALL}
"""By name, in rocRAND's order of tuning; shapes and restrictions after rocRAND (its `config_defaults.json`, and the
assertions of its kernels)."""

DTYPES = {
    "unsigned_int": "uint32",
    "unsigned_char": "uint8",
    "unsigned_short": "uint16",
    "unsigned_long_long": "uint64",
    "float": "float32",
    "half": "float16",
    "double": "float64",
}
"""NumPy's names of the value types, which are called as in rocRAND's benchmarks."""


@dataclass(frozen=True, slots=True)
class Width:
    """A vector of a distribution takes `words` random words of 32 bits and gives `values` values."""

    words: int
    values: int


_UNIFORM = {
    "unsigned_int": Width(1, 1),
    "unsigned_char": Width(1, 4),
    "unsigned_short": Width(1, 2),
    "unsigned_long_long": Width(2, 1),
    "float": Width(1, 1),
    "half": Width(1, 2),
    "double": Width(2, 1),
}
_NORMAL = {"float": Width(2, 2), "half": Width(1, 2), "double": Width(4, 2)}

WIDTHS: dict[str, dict[str, Width]] = {
    "uniform": _UNIFORM,
    "normal": _NORMAL,
    "log_normal": _NORMAL,
    "poisson": {"unsigned_int": Width(1, 1)},
}
"""By distribution and value type; what is not in it is not offered. A quasi generator takes a point for every value."""
