"""The source files that make each generator's program, and the layout of its workspace.

Every program begins with HEADERS, the text of the distributions among them (`source/distributions.h`); the generator's
own files follow. In the workspace the engines' states come first, then tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tunesmith.problems.random import RandomFill, poisson_table
from tunesmith.problems.random.streams import sobol_directions, sobol_shift

from .jumps import jumps

HEADERS = ("dialect.h", "types.h", "normal.h", "quantile.h", "distributions.h")
"""The files of `source/` that every program begins with."""

ALIGNMENT = 4096
"""Bytes to which parts of the workspace are aligned; no device asks for more of a part of a buffer."""

WORD = 4
"""Bytes of a word of state, and of local memory."""


@dataclass(frozen=True, slots=True)
class GeneratorProgram:
    """A generator's program: its `sources`, which follow HEADERS, its `macros`, and the memory that its kernels use.

    A group of `sharing` engines has `state_words` words of state. A work-group has `local_words` words of local memory,
    and `local_words_each` more for each of its work-items.
    """

    sources: tuple[str, ...]
    macros: Mapping[str, str | int] = field(default_factory=dict)
    state_words: int = 0
    sharing: int = 1
    local_words: int = 0
    local_words_each: int = 0
    needs_double: bool = False
    """Whether an OpenCL device must support double precision even for other value types."""

    @property
    def entries(self) -> tuple[str, ...]:
        return ("initialise", "generate") if self.state_words else ("generate",)

    def state_bytes(self, engines: int) -> int:
        return WORD * self.state_words * engines // self.sharing

    def local_bytes(self, block: int) -> int:
        """Bytes of local memory of a work-group of `block` work-items."""
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
"""The programs by generator. Engines of programs with `rows.h` advance together, a row of one vector an engine at a
time. If a call cuts its last row, and the next call has vectors of another number of words, that call must have `start`
0: this leaves out the rest of the row."""


def constant_tables(fill: RandomFill) -> dict[str, bytes]:
    """The constant tables that a launch reads, by name."""
    tables = dict(_generator_tables(fill.generator.name, fill.seed, fill.dimensions))
    if fill.distribution == "poisson":
        tables["poisson"] = poisson_table(fill.lam).pairs.tobytes()
    return tables


@lru_cache(maxsize=32)
def _generator_tables(generator: str, seed: int, dimensions: int) -> Mapping[str, bytes]:
    if "sobol" in generator:
        directions = sobol_directions(generator, seed, dimensions)
        shift = sobol_shift(generator, seed, dimensions)
        return {"directions": directions.tobytes(), "shift": shift.tobytes()}
    return {"jumps": jumps(generator).tobytes()} if PROGRAMS[generator].state_words else {}


def workspace_offsets(
    program: GeneratorProgram, engines: int, tables: Mapping[str, bytes]
) -> tuple[Mapping[str, int], int]:
    """The offset of each table in the workspace, and the size of the workspace, in bytes; the states come first.

    A distribution's table comes last, so that one workspace serves all distributions of a generator.
    """
    offsets, end = {}, _rounded(program.state_bytes(engines))
    for name, data in tables.items():
        offsets[name] = end
        end += _rounded(len(data))
    return offsets, end


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
