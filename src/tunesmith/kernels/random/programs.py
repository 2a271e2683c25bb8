"""Which sources make a generator's program, and what lies in its workspace: the engines' states first, then tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tunesmith.problems.random import RandomFill, poisson_table
from tunesmith.problems.random.streams import sobol_directions, sobol_shift

from .jumps import jumps

HEADERS = ("dialect.h", "types.h", "normal.h", "quantile.h", "distributions.h")
"""What every program begins with."""

ALIGNMENT = 4096
"""Of what lies in the workspace, in bytes: no device asks for more of a buffer's part."""


WORD = 4
"""Bytes of a word of state, and of local memory."""


@dataclass(frozen=True, slots=True)
class GeneratorProgram:
    """The `sources`, in this order behind HEADERS, with `macros`, and the memory that their kernels use.

    Every `sharing` engines have `state_words` words of state between them; a work-group has `local_words` words of
    local memory, and as many again for each of its work-items as `local_words_each` says.
    """

    sources: tuple[str, ...]
    macros: Mapping[str, str | int] = field(default_factory=dict)
    state_words: int = 0
    sharing: int = 1
    local_words: int = 0
    local_words_each: int = 0
    needs_double: bool = False
    """Whether an OpenCL device must compute in double precision even for other values."""

    @property
    def entries(self) -> tuple[str, ...]:
        return ("initialise", "generate") if self.state_words else ("generate",)

    def state_bytes(self, engines: int) -> int:
        return WORD * self.state_words * engines // self.sharing

    def local_bytes(self, block: int) -> int:
        """Of a work-group of `block` work-items."""
        return WORD * (self.local_words + self.local_words_each * block)


def _engine(*sources: str, words: int, needs_double: bool = False) -> GeneratorProgram:
    return GeneratorProgram((*sources, "vector.h", "engine.h"), state_words=words, needs_double=needs_double)


PROGRAMS: dict[str, GeneratorProgram] = {
    "philox4_32_10": GeneratorProgram(("philox4_32_10.h", "counter.h")),
    **{
        f"threefry{lanes}_{bits}_20": GeneratorProgram(("threefry.h", "counter.h"), {"LANES": lanes, "LANE_BITS": bits})
        for lanes in (2, 4)
        for bits in (32, 64)
    },
    **{
        f"{name}{bits}": GeneratorProgram(("sobol.h",), {"QUASI": 1, "WORD_BITS": bits})
        for name in ("sobol", "scrambled_sobol")
        for bits in (32, 64)
    },
    "xorwow": _engine("xorwow.h", words=6),
    "lfsr113": _engine("lfsr113.h", words=4),
    "mrg32k3a": _engine("mrg32k3a.h", "mrg.h", words=6, needs_double=True),
    "mrg31k3p": _engine("mrg31k3p.h", "mrg.h", words=6, needs_double=True),
    "mt19937": GeneratorProgram(("vector.h", "rows.h", "mt19937.h"), state_words=79, local_words_each=78),
    "mtgp32": GeneratorProgram(
        ("vector.h", "rows.h", "mtgp32.h"), state_words=351 + 1 + 36, sharing=256, local_words=1119 + 32
    ),
}
"""By generator. Engines of those with `rows.h` advance together: a call after one whose last row (of a vector an
engine) was cut, with vectors of another number of words, must have `start` 0, which leaves out the rest of that row."""


def tables(fill: RandomFill) -> dict[str, bytes]:
    """The constants that a launch reads, by name."""
    found = dict(_constants(fill.generator.name, fill.seed, fill.dimensions))
    if fill.distribution == "poisson":
        found["poisson"] = poisson_table(fill.lam).pairs.tobytes()
    return found


@lru_cache(maxsize=32)
def _constants(generator: str, seed: int, dimensions: int) -> Mapping[str, bytes]:
    if "sobol" in generator:
        directions = sobol_directions(generator, seed, dimensions)
        shift = sobol_shift(generator, seed, dimensions)
        return {"directions": directions.tobytes(), "shift": shift.tobytes()}
    return {"jumps": jumps(generator).tobytes()} if PROGRAMS[generator].state_words else {}


def placed(program: GeneratorProgram, engines: int, constants: Mapping[str, bytes]) -> tuple[Mapping[str, int], int]:
    """Offsets in bytes of each table, and the size of the workspace; the states come first.

    Whatever a distribution brings along comes last, so that one workspace serves all distributions of a generator.
    """
    places, end = {}, _rounded(program.state_bytes(engines))
    for name, data in constants.items():
        places[name] = end
        end += _rounded(len(data))
    return places, end


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
