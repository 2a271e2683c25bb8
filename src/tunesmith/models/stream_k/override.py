"""Environment variables that override the stream-K prediction, for experiments and to work around a bad prediction.

A variable is read as `TUNESMITH_STREAMK_<name>`, or as `TENSILE_STREAMK_<name>` if ours is not set. Names and priority
are Tensile's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tunesmith.records import UserError

from . import tensile as tensile
from .records import TiledProduct

PREFIXES = ("TUNESMITH_STREAMK_", "TENSILE_STREAMK_")

FULL_TILES = "FULL_TILES"

_MOST = 2**31 - 1

_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Variable:
    """A whole number from `least` to `most`. The values in `unset` leave the choice to the prediction."""

    least: int
    most: int
    unset: tuple[int, ...]
    doc: str


VARIABLES = {
    FULL_TILES: Variable(
        -1, _MOST, (-1,), "-1 predicts, 0 streams the remainder alone, n the remainder and n full waves"
    ),
    "FIXED_GRID": Variable(0, _MOST, (0,), "0 predicts, n launches n work-groups"),
    "DYNAMIC_GRID": Variable(
        0,
        3,
        (0,),
        "0 predicts, 1 launches no more work-groups than tiles, 2 as many as give even waves, 3 as Tensile's "
        "analytical model",
    ),
    "MAX_CUS": Variable(0, _MOST, (0,), "0 predicts, n launches a work-group for each compute unit, n at most"),
    "GRID_MULTIPLIER": Variable(0, 1024, (0, 1), "0 and 1 predict, n launches n work-groups for each compute unit"),
}
"""All but FULL_TILES set the grid. If several of these are set, the first in this order wins."""


@dataclass(frozen=True, slots=True)
class StreamKOverride:
    """The variables that override the prediction, in the order of VARIABLES: the value of each (`values`), and its full
    name in the environment (`named`)."""

    values: Mapping[str, int]
    named: Mapping[str, str]

    @staticmethod
    def of(environment: Mapping[str, str]) -> StreamKOverride:
        """Raises UserError, with the variable's name, for an invalid value."""
        values: dict[str, int] = {}
        named: dict[str, str] = {}
        for name, variable in VARIABLES.items():
            full_name = next((prefix + name for prefix in PREFIXES if environment.get(prefix + name, "").strip()), None)
            value = _number(full_name, environment[full_name], variable) if full_name else None
            if full_name and value is not None and value not in variable.unset:
                values[name], named[name] = value, full_name
        return StreamKOverride(values, named)

    @property
    def full_tiles(self) -> int | None:
        return self.values.get(FULL_TILES)

    @property
    def grid_from(self) -> str:
        """The variable that sets the grid; empty if none does."""
        return next((name for name in self.values if name != FULL_TILES), "")

    def grid(self, work: TiledProduct, compute_units: int) -> int | None:
        """The overriding grid, at least 1; None if no variable sets the grid."""
        value = self.values.get(self.grid_from, 0)
        match self.grid_from:
            case "FIXED_GRID":
                return value
            case "DYNAMIC_GRID":
                return max(1, tensile.dynamic_grid(value, work.tiles, work.iterations, compute_units))
            case "MAX_CUS":
                return min(compute_units, value)
            case "GRID_MULTIPLIER":
                return compute_units * value
        return None

    @property
    def used(self) -> tuple[str, ...]:
        """The full names of the variables that take effect, as they are spelled in the environment."""
        return tuple(self.named[name] for name in (FULL_TILES, self.grid_from) if name in self.named)


def _number(name: str, text: str, variable: Variable) -> int:
    stripped = text.strip()
    value = int(stripped) if _WHOLE.fullmatch(stripped) else None
    if value is None or not variable.least <= value <= variable.most:
        bounds = f"from {variable.least}" + (f" to {variable.most}" if variable.most < _MOST else "")
        raise UserError(name, f"{text!r} is no whole number {bounds}", f"give one ({variable.doc}), or unset it")
    return value
