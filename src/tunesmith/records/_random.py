"""The launch shape of a random generator, and a benchmark's row with the speed of filling a buffer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ._errors import Rejection

UNKNOWN_ARCHITECTURE = "unknown"


@dataclass(frozen=True, slots=True, order=True)
class LaunchShape:
    """The threads of a block, and the blocks of the grid."""

    block: int
    grid: int

    @property
    def threads(self) -> int:
        return self.block * self.grid

    def __str__(self) -> str:
        return f"{self.block}x{self.grid}"


@dataclass(frozen=True, slots=True)
class RandomRow:
    """One row of a benchmark of generators, from a file of any format.

    `gigabytes_per_second` is NaN if the row has no speed; `interval` is its 95 % interval, if known. `bytes` is what
    one call writes (0 if unknown). `aside` says why the row is not a measurement (an aggregate of others, a failure);
    such a row counts only when the arithmetic of rocRAND's script is repeated. `by_primbench` tells which script: that
    of 2026 reads primbench's files, the one before it google-benchmark's. `file` and `name` identify the row.
    `cautions` are sentences about the measurement that make the row less trustworthy (a busy host, a drift).
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
    """An architecture as headers and tables spell it: a C identifier without feature suffixes; empty for an empty text.

    `gfx90a:sramecc+:xnack-` becomes gfx90a, `sm_90` stays, `x86-64` becomes x86_64.
    """
    if gfx := re.search(r"gfx[0-9a-f]+", text):
        return gfx.group()
    name = re.sub(r"\W+", "_", text.partition(":")[0].strip(), flags=re.ASCII).strip("_")
    return f"_{name}" if name[:1].isdigit() else name
