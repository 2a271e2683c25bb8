"""Which sources make a generator's program, and what lies in its workspace: the engines' states first, then tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from tunesmith.problems.random import RandomFill, poisson_table
from tunesmith.problems.random.streams import sobol_directions, sobol_shift

from .engines import ENGINES, EngineSource
from .jumps import jumps

HEADERS = ("dialect.h", "types.h", "normal.h", "quantile.h", "distributions.h")
"""What every program begins with."""

ALIGNMENT = 4096
"""Of what lies in the workspace, in bytes: no device asks for more of a buffer's part."""


@dataclass(frozen=True, slots=True)
class Program:
    """`sources` behind the headers, with `macros`; bytes that engines and a work-group need."""

    sources: tuple[str, ...]
    macros: Mapping[str, str | int] = field(default_factory=dict)
    entries: tuple[str, ...] = ("generate",)
    state_bytes: Callable[[int], int] = lambda engines: 0
    local_bytes: Callable[[int], int] = lambda block: 0
    needs_double: bool = False


def _threefry(lanes: int, bits: int) -> Program:
    return Program(("threefry.h", "counter.h"), {"LANES": lanes, "LANE_BITS": bits})


def _engines(source: EngineSource) -> Program:
    return Program(
        source.sources,
        entries=("initialise", "generate"),
        state_bytes=source.state_bytes,
        local_bytes=source.local_bytes,
        needs_double=source.needs_double,
    )


def _sobol(bits: int) -> Program:
    return Program(("sobol.h",), {"QUASI": 1, "WORD_BITS": bits})


PROGRAMS: dict[str, Program] = {
    "philox4_32_10": Program(("philox4_32_10.h", "counter.h")),
    "threefry2_32_20": _threefry(2, 32),
    "threefry2_64_20": _threefry(2, 64),
    "threefry4_32_20": _threefry(4, 32),
    "threefry4_64_20": _threefry(4, 64),
    "sobol32": _sobol(32),
    "sobol64": _sobol(64),
    "scrambled_sobol32": _sobol(32),
    "scrambled_sobol64": _sobol(64),
    **{name: _engines(source) for name, source in ENGINES.items()},
}
"""By generator."""


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
    return {"jumps": jumps(generator).tobytes()} if generator in ENGINES else {}


@dataclass(frozen=True, slots=True)
class Workspace:
    """Offsets in bytes: of the states and each table.

    Whatever a distribution brings along comes last, so that one workspace serves all distributions of a generator.
    """

    tables: Mapping[str, int]
    state: int
    size: int

    @staticmethod
    def of(program: Program, engines: int, constants: Mapping[str, bytes]) -> Workspace:
        places, end = {}, _rounded(program.state_bytes(engines))
        for name, data in constants.items():
            places[name] = end
            end += _rounded(len(data))
        return Workspace(places, 0, end)


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
