"""The random number generators: names, kinds, default launch shapes, and which distributions and types they give."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GeneratorKind(StrEnum):
    """How a generator's numbers depend on the launch shape."""

    COUNTER = "counter"
    """Number n is a function of n: every launch shape gives the same numbers."""
    ENGINE = "engine"
    """Each work-item is an engine with a stream of its own: the launch shape is part of the sequence."""
    QUASI = "quasi"
    """Points of a low-discrepancy sequence in several dimensions: every launch shape gives the same points."""


@dataclass(frozen=True, slots=True)
class GeneratorSpec:
    """A generator's name, kind, default launch shape and restrictions.

    `default_block` work-items in each of `default_grid` work-groups are the launch shape without tuning, as in rocRAND.
    `block_multiple` (of work-items), `most_engines`, `power_of_two` and `block` restrict the launch shape of an engine
    kind. Generators with `skips` can leave out the beginning of their sequence. `word_bits` is the length of a quasi
    generator's points, `double_words` the number of words that make a double.
    """

    name: str
    kind: GeneratorKind
    default_block: int
    default_grid: int
    word_bits: int = 32
    double_words: int = 2
    skips: bool = True
    block_multiple: int = 1
    most_engines: int | None = None
    power_of_two: bool = False
    block: int | None = None

    @property
    def default_engines(self) -> int:
        return self.default_block * self.default_grid


MOST_SUBSEQUENCES = 1 << 24
"""The most engines of a generator that jumps to its subsequences: `kernels.random.jumps` has matrices for so many."""


_ALL = (
    GeneratorSpec("lfsr113", GeneratorKind.ENGINE, 256, 512, power_of_two=True, most_engines=MOST_SUBSEQUENCES),
    GeneratorSpec("mrg31k3p", GeneratorKind.ENGINE, 256, 512, double_words=1, most_engines=MOST_SUBSEQUENCES),
    GeneratorSpec("mrg32k3a", GeneratorKind.ENGINE, 256, 512, double_words=1, most_engines=MOST_SUBSEQUENCES),
    GeneratorSpec("mt19937", GeneratorKind.ENGINE, 256, 256, skips=False, block_multiple=8, most_engines=8 * 65536),
    GeneratorSpec(
        "mtgp32",
        GeneratorKind.ENGINE,
        256,
        512,
        double_words=1,
        skips=False,
        block_multiple=256,
        most_engines=256 * 512,
        block=256,
    ),
    GeneratorSpec("philox4_32_10", GeneratorKind.COUNTER, 256, 1024),
    GeneratorSpec("threefry2_32_20", GeneratorKind.COUNTER, 256, 1024),
    GeneratorSpec("threefry2_64_20", GeneratorKind.COUNTER, 256, 1024),
    GeneratorSpec("threefry4_32_20", GeneratorKind.COUNTER, 256, 1024),
    GeneratorSpec("threefry4_64_20", GeneratorKind.COUNTER, 256, 1024),
    GeneratorSpec("xorwow", GeneratorKind.ENGINE, 256, 512, most_engines=MOST_SUBSEQUENCES),
    GeneratorSpec("sobol32", GeneratorKind.QUASI, 256, 4096),
    GeneratorSpec("sobol64", GeneratorKind.QUASI, 256, 4096, word_bits=64),
    GeneratorSpec("scrambled_sobol32", GeneratorKind.QUASI, 256, 4096),
    GeneratorSpec("scrambled_sobol64", GeneratorKind.QUASI, 256, 4096, word_bits=64),
)

GENERATORS = {generator.name: generator for generator in _ALL}
"""The generators by name, in rocRAND's order of tuning. Shapes and restrictions are rocRAND's (its
`config_defaults.json`, and the assertions of its kernels). One word makes a double for the MRGs, as in rocRAND and
cuRAND, and for mtgp32, as in cuRAND."""

DTYPES = {
    "unsigned_int": "uint32",
    "unsigned_char": "uint8",
    "unsigned_short": "uint16",
    "unsigned_long_long": "uint64",
    "float": "float32",
    "half": "float16",
    "double": "float64",
}
"""NumPy's names of the value types. The keys are the names in rocRAND's benchmarks."""


@dataclass(frozen=True, slots=True)
class FillWidth:
    """The size of a distribution's vector: it takes `words` random words of 32 bits and gives `values` values."""

    words: int
    values: int


_UNIFORM = {
    "unsigned_int": FillWidth(1, 1),
    "unsigned_char": FillWidth(1, 4),
    "unsigned_short": FillWidth(1, 2),
    "unsigned_long_long": FillWidth(2, 1),
    "float": FillWidth(1, 1),
    "half": FillWidth(1, 2),
    "double": FillWidth(2, 1),
}
_NORMAL = {"float": FillWidth(2, 2), "half": FillWidth(1, 2), "double": FillWidth(4, 2)}

WIDTHS: dict[str, dict[str, FillWidth]] = {
    "uniform": _UNIFORM,
    "normal": _NORMAL,
    "log_normal": _NORMAL,
    "poisson": {"unsigned_int": FillWidth(1, 1)},
}
"""The widths by distribution and value type; other combinations are not offered. `width_of` has the generators'
exceptions."""


def width_of(generator: GeneratorSpec, distribution: str, value_type: str) -> FillWidth:
    """The words that a vector takes and the values that it gives. A quasi generator takes a point for every value."""
    if generator.kind is GeneratorKind.QUASI:
        return FillWidth(generator.word_bits // 32, 1)
    width = WIDTHS[distribution][value_type]
    return FillWidth(width.words // 2 * generator.double_words, width.values) if value_type == "double" else width
