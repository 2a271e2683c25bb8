"""Lists of convolutions as CSV, in the words of MIOpen's driver and of DeepBench.

The header names the columns in any order: the sizes n, c, k, and for each spatial dimension one of the input's in_d, h,
w and one of the filter's fil_d, r, s. `COLUMNS` has all columns. A column whose value follows from the others (out_h,
igemm_m ...) is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunesmith.problems.lists import GROUPING, Column, read_lines, size_column
from tunesmith.records import Problem, ProblemType, UserError

from .fields import Direction
from .type import Convolution, ConvolutionTypeError, convolution_type

DATA_TYPES_BY_DRIVER = {
    "conv": "s",
    "convfp16": "h",
    "convbfp16": "b",
    "convfp8": "f8",
    "convbfp8": "b8",
    "convint8": "i8",
}
"""The data type of the operands, by the first word of MIOpenDriver's command."""

DIRECTIONS_BY_DRIVER = {"1": Direction.FORWARD, "2": Direction.BACKWARD_DATA, "4": Direction.BACKWARD_WEIGHTS}
"""The direction, by MIOpenDriver's option -F."""

_LAYOUT_COLUMNS = ("in_layout", "fil_layout", "out_layout")
_AXES = ("d", "h", "w")
_IMAGE, _TAPS = ("in_d", "h", "w"), ("fil_d", "r", "s")


@dataclass(frozen=True, slots=True)
class ListedConvolution:
    """A row's problem type and sizes. `family` is a word to group by, `weight` says how much the row counts."""

    type: ProblemType
    sizes: tuple[int, ...]
    family: str = ""
    weight: float = 1.0

    @property
    def problem(self) -> Problem:
        return Problem(self.type, self.sizes)


def read_convolution_list(path: Path, data_type: str = "s") -> tuple[ListedConvolution, ...]:
    """Every row of a list, in its order. Rows have `data_type` if the list has no column op.

    Raises UserError for a file that cannot be read or has a mistake.
    """
    lines = read_lines(path, COLUMNS, NEEDED, "convolutions")
    return tuple(_listed(row, data_type, location) for location, row in lines)


def _listed(row: Mapping[str, Any], data_type: str, location: str) -> ListedConvolution:
    dimensions = row.get("spatial_dim") or (3 if "in_d" in row else 2 if "h" in row else 1)
    for name, absent in _unused_columns(dimensions).items():
        if row.get(name, absent) != absent:
            what = f"{name} is {row[name]}, with {dimensions} spatial dimension{'s' if dimensions > 1 else ''}"
            remedy = f"give {absent} there, or sizes and spatial_dim of {dimensions + 1} dimensions"
            raise UserError(location, what, remedy)
    axes = _AXES[-dimensions:]
    needed = (*_IMAGE[-dimensions:], *_TAPS[-dimensions:])
    if missing := [name for name in needed if name not in row]:
        what = f"{dimensions} spatial dimensions need a column {missing[0]}"
        raise UserError(location, what, f"name the columns {', '.join(needed)} in the header")
    try:
        problem_type = convolution_type(
            row.get("op", data_type),
            direction=row.get("direction_F", Direction.FORWARD),
            dimensions=dimensions,
            stride=[row.get(f"stride_{axis}", 1) for axis in axes],
            padding=[row.get(f"pad_{axis}", 0) for axis in axes],
            dilation=[row.get(f"dil_{axis}", 1) for axis in axes],
            groups=row.get("groups", 1),
            layouts=[row.get(name) for name in _LAYOUT_COLUMNS],
        )
        image, taps = ([row[name] for name in names[-dimensions:]] for names in (_IMAGE, _TAPS))
        sizes = (row["n"], row["c"], *image, row["k"], *taps)
        convolution = Convolution.of(Problem(problem_type, sizes))
    except ConvolutionTypeError as error:
        raise UserError(location, str(error), error.remedy) from None
    except ValueError as error:
        raise UserError(location, str(error), "give sizes that make a convolution") from None
    _check_derived(row, convolution, axes, location)
    return ListedConvolution(problem_type, sizes, row.get("family") or row.get("set", ""), row.get("weight", 1.0))


def _unused_columns(dimensions: int) -> dict[str, int]:
    """The columns of axes that a convolution of so many dimensions does not have, with the only value they may hold."""
    names = [*_IMAGE[:-dimensions], *_TAPS[:-dimensions]]
    axes = _AXES[:-dimensions]
    names += [f"{column}_{axis}" for column in ("stride", "dil", "out") for axis in axes]
    return dict.fromkeys(names, 1) | dict.fromkeys((f"pad_{axis}" for axis in axes), 0)


def _check_derived(row: Mapping[str, Any], convolution: Convolution, axes: tuple[str, ...], location: str) -> None:
    """Raise UserError if a column whose value follows from the other columns has another value."""
    product = convolution.implicit_gemm
    derived = {f"out_{axis}": extent for axis, extent in zip(axes, convolution.output, strict=True)}
    derived |= {"igemm_m": product.m, "igemm_n": product.n, "igemm_k": product.k, "gemm_groups": product.groups}
    for name, value in derived.items():
        if row.get(name, value) != value:
            remedy = "correct the row, or leave the column out: it follows from the others"
            raise UserError(location, f"{name} is {row[name]}, the sizes make it {value}", remedy)


def _one_of(words: Mapping[str, str]) -> Callable[[str], str | None]:
    return words.get


def _natural(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _dimensions(text: str) -> int | None:
    return int(text) if text in ("1", "2", "3") else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _sizes(doc: str, *names: str) -> dict[str, Column]:
    return {name: size_column(doc) for name in names}


NEEDED = ("n", "c", "w", "k", "s")
COLUMNS = {
    "op": Column(
        _one_of(DATA_TYPES_BY_DRIVER),
        f"one of {', '.join(DATA_TYPES_BY_DRIVER)}",
        "the data type, as the first word of MIOpenDriver's command",
    ),
    "direction_F": Column(
        lambda text: DIRECTIONS_BY_DRIVER.get(text),
        "1 (forward), 2 (backward data) or 4 (backward weights)",
        "MIOpenDriver's -F; forward where there is no such column",
    ),
    "spatial_dim": Column(_dimensions, "1, 2 or 3", "spatial dimensions; without it, as many as the header names"),
    **_sizes("a size", "n", "c", *_IMAGE, "k", *_TAPS),
    **{f"pad_{axis}": Column(_natural, "a whole number from 0 on", "zeros at both ends; 0") for axis in _AXES},
    **_sizes("steps of the filter; 1", *(f"stride_{axis}" for axis in _AXES)),
    **_sizes("distance between taps; 1", *(f"dil_{axis}" for axis in _AXES)),
    "groups": size_column("groups of channels; 1"),
    **{
        name: Column(str, "a layout such as NHWC or NCHW", "channels last where there is no such column")
        for name in _LAYOUT_COLUMNS
    },
    **_sizes("follows from the others", *(f"out_{axis}" for axis in _AXES)),
    **_sizes("follows from the others", "gemm_groups", "igemm_m", "igemm_n", "igemm_k"),
    "ai_elems": Column(_number, "a number", "follows from the others, and is not looked at"),
    "set": GROUPING["family"],
    **GROUPING,
}
