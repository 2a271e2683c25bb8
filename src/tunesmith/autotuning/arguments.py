"""What a kernel takes: arrays by role, numbers, and local memory, as a program says them to `tunesmith.tune`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import UserError, Value

Formula: TypeAlias = int | float | str | Callable[..., Any]
"""A number, an expression in the form of tuning files (`"ceil_div(Rows, GROUP)"`), or a function of sizes and
parameters: `lambda p: p["Rows"] // p["GROUP"]`, or `lambda Rows, GROUP: Rows // GROUP`."""

Formulas: TypeAlias = Formula | Sequence[Formula]
"""One to three extents, the fastest first. A function may return a number or a tuple."""


@dataclass(frozen=True, init=False)
class DenseArray:
    """A dense array in row-major order.

    `In("float32", "Rows", "Columns")` gives a data type and a shape; its contents are random (`range=(low, high)`
    bounds them). `In(array)` takes data type, shape and contents of a NumPy array or a tensor. Raises UserError for
    something else.
    """

    role: ClassVar[str]
    dtype: str
    shape: tuple[Formula, ...]
    contents: NDArray[Any] | None
    range: tuple[Formula, Formula] | None

    def __init__(self, like: Any, *shape: Formula, range: tuple[Formula, Formula] | None = None) -> None:  # noqa: A002
        array = None if _is_data_type(like) else as_numpy(like)
        set_ = object.__setattr__
        set_(self, "dtype", _name_of(like) if array is None else array.dtype.name)
        set_(self, "shape", shape if array is None or shape else array.shape)
        set_(self, "contents", array)
        set_(self, "range", range)


class In(DenseArray):
    """An array that the kernel only reads."""

    role = "in"


class Out(DenseArray):
    """An array of which the kernel writes every element and reads none. Contents of a given array are not used."""

    role = "out"


class InOut(DenseArray):
    """An array that the kernel reads and writes."""

    role = "inout"


class Scratch(DenseArray):
    """Memory between the launches of one solution; the caller does not pass it. The shape may depend on parameters."""

    role = "scratch"


@dataclass(frozen=True)
class Scalar:
    """A number that is passed by value: `Scalar("int64", "Rows * Columns")`."""

    dtype: str
    value: Formula


@dataclass(frozen=True)
class LocalMemory:
    """A pointer to local memory of so many bytes (OpenCL C); dynamic shared memory in CUDA C++."""

    bytes: Formula


@dataclass(frozen=True)
class KernelLaunch:
    """One of several launches of a solution. `arguments` names those that the kernel `entry` takes, in its order; all
    if empty. Give `grid` (work-groups) or `work_items`."""

    entry: str
    arguments: tuple[str, ...] | list[str] = ()
    work_group: Formulas | None = None
    grid: Formulas | None = None
    work_items: Formulas | None = None
    local_memory: Formula | None = None


Argument: TypeAlias = DenseArray | Scalar | LocalMemory

INT32 = range(-(2**31), 2**31)


def argument_of(name: str, argument: Any, location: str) -> Argument:
    """The argument that a program means: a bare array is read, a bare number is passed by value (int32 or int64,
    float32), a bare expression or function is a whole number (int32)."""
    if isinstance(argument, DenseArray | Scalar | LocalMemory):
        return argument
    if isinstance(argument, str) or callable(argument):
        return Scalar("int32", argument)
    if isinstance(argument, np.generic):
        return Scalar(argument.dtype.name, argument.item())
    if isinstance(argument, int):
        return Scalar("int32" if argument in INT32 else "int64", int(argument))
    if isinstance(argument, float):
        return Scalar("float32", argument)
    try:
        return In(argument)
    except UserError as error:
        raise UserError(location, f"the argument {name} {error.what}", error.remedy) from None


def as_numpy(array: Any) -> NDArray[Any]:
    """A NumPy array with the contents of an array or tensor on any device. Raises UserError for something else."""
    if isinstance(array, np.ndarray):
        return array
    for copy in ("detach", "cpu", "numpy", "get"):
        if hasattr(array, copy) and not isinstance(array, np.ndarray):
            try:
                array = getattr(array, copy)()
            except (TypeError, RuntimeError) as error:
                raise UserError("an array", f"cannot be copied to the host: {error}", _REMEDY) from None
    if not isinstance(array, np.ndarray):
        raise UserError("an array", f"is a {type(array).__name__}", _REMEDY)
    return array


_REMEDY = 'give an array, a tensor, In("float32", "Rows", "Columns"), a number, or an expression such as "Rows"'


def _is_data_type(like: Any) -> bool:
    return isinstance(like, str | type | np.dtype) or type(like).__name__ == "dtype"


def _name_of(data_type: Any) -> str:
    """NumPy's name of a data type of NumPy or torch."""
    if isinstance(data_type, str):
        return data_type
    if type(data_type).__module__ == "torch":
        return str(data_type).removeprefix("torch.")
    return str(np.dtype(data_type).name)


Parameters: TypeAlias = Mapping[str, Sequence[Value]]
"""The values of each parameter, by name; the first is where a step begins that does not vary it."""
