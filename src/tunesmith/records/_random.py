"""A generator's launch shape, and a row of a benchmark that says how fast a buffer was filled with it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ._errors import Rejection

UNKNOWN_ARCHITECTURE = "unknown"


@dataclass(frozen=True, slots=True, order=True)
class LaunchShape:
    """Threads of a block, and blocks of the grid."""

    block: int
    grid: int

    @property
    def threads(self) -> int:
        return self.block * self.grid

    def __str__(self) -> str:
        return f"{self.block}x{self.grid}"


@dataclass(frozen=True, slots=True)
class RandomRow:
    """One row of a benchmark of generators, from whatever file.

    Speed is in 10^9 bytes a second (NaN where the row has none), `interval` the ends of its 95 % interval where known,
    `bytes` what one call writes (0 where not said). `aside` says why the row is no measurement (an aggregate of others,
    a failure); such a row counts only where the original's arithmetic is repeated. `by_primbench` tells which original:
    rocRAND's script of 2026 reads primbench's files, the one before google-benchmark's. `file` and `name` find the row
    again. `cautions` are sentences on how it was measured that make it less to be trusted (a busy host, a drift).
    """

    generator: str
    distribution: str
    value_type: str
    shape: LaunchShape
    architecture: str
    gigabytes_per_second: float
    file: str
    name: str
    bytes: int = 0
    interval: tuple[float, float] | None = None
    aside: Rejection | None = None
    by_primbench: bool = False
    cautions: tuple[str, ...] = field(default=(), compare=False)

    @property
    def pair(self) -> tuple[str, str]:
        return self.distribution, self.value_type

    @property
    def location(self) -> str:
        return f"{self.file}: {self.name}"


def architecture_name(text: str) -> str:
    """An architecture as headers and tables spell it, empty for an empty text: a C identifier without features.

    `gfx90a:sramecc+:xnack-` is gfx90a, `sm_90` stays, `x86-64` becomes x86_64.
    """
    if gfx := re.search(r"gfx[0-9a-f]+", text):
        return gfx.group()
    name = re.sub(r"\W+", "_", text.partition(":")[0].strip(), flags=re.ASCII).strip("_")
    return f"_{name}" if name[:1].isdigit() else name
