"""The tile of a fitted heuristic's bucket, as a wish that the mapping of any family accepts.

If a bucket's configuration sets `Kernel`, it names a kernel family and holds that family's parameters. Otherwise it
holds only a tile, with the names of Tensile's and IREE's solutions: MacroTile, DepthU, GlobalSplitU, SubGroups.
"""

from __future__ import annotations

from collections.abc import Mapping

from tunesmith.kernels import KERNELS
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, ProblemType, UserError, Value

from .wish import TileWish

KERNEL = "Kernel"
"""The key that names the family of a configuration."""
LARGEST_SIDE, LARGEST_SPLIT = 1 << 16, 1 << 12
DEPTH, SUB_GROUPS, STAGES = 32, (2, 2), 3
"""The values for a tile that does not set them."""
MOST_GROUPS, MOST_STAGES = 64, 8
TYPES = {
    "f64": gemm_type("d"),
    "f32": gemm_type("s"),
    "tf32": gemm_type("s", tf32=True),
    "f16": gemm_type("h"),
    "bf16": gemm_type("b"),
    "i8": gemm_type("i8"),
    "f8": gemm_type("f8"),
}
"""The problem type for each data type of a heuristic's file."""


def tuned_wish(configuration: Configuration, data_type: str, location: str) -> TileWish | None:
    """The wish of a bucket's configuration; None for a family without tiles (the vendor's library). `data_type` is that
    of the heuristic's file; `location` is for errors.

    Raises UserError for an unknown family or an invalid value, and for a configuration with neither a family nor a
    valid tile.
    """
    values: Mapping[str, Value] = configuration
    if KERNEL in configuration:
        values = _of_family(configuration, TYPES.get(data_type, TYPES["f32"]), location)
        if "MacroTile" not in values:
            return None
    tile, groups = _pair(values.get("MacroTile"), LARGEST_SIDE), _pair(values.get("SubGroups"), MOST_GROUPS)
    if tile is None:
        what = f"{_shown(configuration)} has no tile"
        raise UserError(location, what, "give MacroTile: [rows, columns], or Kernel with the family's parameters")
    return TileWish(
        *tile,
        _whole(values, "DepthU", DEPTH, LARGEST_SIDE, location),
        sub_groups=groups or _sub_groups(values),
        stages=min(MOST_STAGES, max(2, _whole(values, "NumStages", STAGES, LARGEST_SPLIT, location))),
        split=_whole(values, "GlobalSplitU", 1, LARGEST_SPLIT, location),
    )


def family_values(configuration: Configuration) -> Configuration:
    """The parameters of a bucket's configuration, without the family's name."""
    return configuration.without([KERNEL])


def _of_family(configuration: Configuration, problem_type: ProblemType, location: str) -> Mapping[str, Value]:
    """The parameters of the family that a configuration names, with the family's defaults and the derived
    parameters."""
    name = configuration[KERNEL]
    if name not in KERNELS or KERNELS[str(name)].operation != "GEMM":
        names = ", ".join(kernel for kernel in KERNELS if KERNELS[kernel].operation == "GEMM")
        raise UserError(location, f"there is no GEMM kernel {_shown(name)}", f"give one of {names}")
    kernel = KERNELS[str(name)]
    space = kernel.space(problem_type)
    checked: dict[str, Value] = {}
    for parameter, value in family_values(configuration).items():
        if parameter not in space:
            what = f"{kernel.name} has no parameter {_shown(parameter)} for {problem_type.name}"
            raise UserError(location, what, "leave it out, or fit again with this tunesmith")
        checked[parameter] = space[parameter].check(value, location)
    full = space.defaults | checked
    return {**full, **(kernel.derived(full) if full else {})}


def _whole(values: Mapping[str, Value], name: str, default: int, most: int, location: str) -> int:
    value = values.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise UserError(location, f"{name} cannot be {_shown(value)}", f"give a whole number from 1 to {most}")
    return value or default


def _pair(value: Value | None, most: int) -> tuple[int, int] | None:
    """Two whole numbers from 1 to `most`; None for anything else."""
    if not isinstance(value, tuple) or len(value) != 2:
        return None
    first, second = value
    if isinstance(first, bool) or isinstance(second, bool):
        return None
    if not (
        isinstance(first, int) and isinstance(second, int) and 1 <= min(first, second) <= max(first, second) <= most
    ):
        return None
    return first, second


def _sub_groups(values: Mapping[str, Value]) -> tuple[int, int]:
    """The sub-groups along M and N for a family with `NumWarps`; the default for any other family."""
    warps = values.get("NumWarps")
    return (-(-warps // 2), min(warps, 2)) if isinstance(warps, int) and 1 <= warps <= MOST_GROUPS else SUB_GROUPS


def _shown(value: object) -> str:
    text = str(dict(value)) if isinstance(value, Configuration) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
