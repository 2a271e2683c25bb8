"""Calling the user's reference: a Python function named `file.py:function`, or a function of the calling program.

The function gives values and magnitudes. `CustomOperation.reference` makes the tolerance of a result's check from the
magnitudes and the description's `Tolerance`.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.problems.base import Array
from tunesmith.records import UserError, Value

from . import caller
from .description import FLOATS, ArrayArgument, Description

Floats = NDArray[np.float64]
Integers = NDArray[np.integer[Any]]
ValueAndMagnitude = tuple[Floats | Integers, Floats]

FIRST_ROUNDINGS = {"float16": 32.0, "bfloat16": 8.0, "float32": 8192.0, "float64": 2.0**20}
"""How many roundings two solutions may differ by, for each data type: some percent in 16 bits, and in float32 as much
as products in TF32 differ."""

EXACT_BELOW = 2**53
"""Smaller whole numbers are exact in float64; larger ones may have been rounded."""

_SIGNATURE = "def {}(sizes: dict, arrays: dict) -> dict of an array, or a pair (array, magnitude), for each output"


def call_reference(
    description: Description,
    sizes: Mapping[str, Value],
    arrays: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
) -> dict[str, ValueAndMagnitude]:
    """Value and magnitude of each output of `shapes`, from the user's `function(sizes, arrays)`.

    Both are in float64. An output that holds integers has its value in its own data type, and a magnitude of 0. Raises
    UserError at the location of the key `Reference` for whatever is wrong with the function.

    A function of the calling program is called in that program's process. Other processes get the values that
    `share_reference` wrote.
    """
    key = description.callers_reference
    function = caller.registered_reference(key) if key else _file_function(description)
    if function is None:
        shared = caller.shared_values(key, caller.digest_of(arrays))
        if shared is None:
            what = "the reference was a function of the Python program that tuned this kernel"
            raise UserError(description.reference_location, what, "name one in a file: Reference: file.py:function")
        return shared  # type: ignore[return-value]  # as `share_reference` wrote them
    try:
        results = function(dict(sizes), dict(arrays))
    except Exception as error:
        raise _wrong(description, f"raised {type(error).__name__}: {error}") from error
    if not isinstance(results, Mapping) or set(results) != set(shapes):
        got = ", ".join(map(str, results)) if isinstance(results, Mapping) else type(results).__name__
        raise _wrong(description, f"gave {got}, the outputs are {', '.join(shapes)}")
    outputs = [array for array in description.arrays if array.name in shapes]
    return {output.name: _checked(description, output, results[output.name], shapes[output.name]) for output in outputs}


def share_reference(
    description: Description,
    sizes: Mapping[str, Value],
    arrays: Mapping[str, Array],
    shapes: Mapping[str, tuple[int, ...]],
) -> None:
    """Call a reference that is this program's, and hand the values to the processes that verify."""
    key, digest = description.callers_reference, caller.digest_of(arrays)
    if caller.registered_reference(key) and not caller.are_shared(key, digest):
        caller.share_values(key, digest, call_reference(description, sizes, arrays, shapes))


def _file_function(description: Description) -> caller.Reference:
    location, file = description.reference_location, description.reference_file
    return _function(file, description.reference_text, description.reference, location)


def _checked(description: Description, output: ArrayArgument, result: Any, shape: tuple[int, ...]) -> ValueAndMagnitude:
    name = output.name
    value, magnitude = result if isinstance(result, tuple) and len(result) == 2 else (result, result)
    try:
        floats = np.asarray(value, np.float64), np.abs(np.asarray(magnitude, np.float64))
    except (TypeError, ValueError) as error:
        raise _wrong(description, f"gave no array of numbers for {name}") from error
    for array in floats:
        if array.shape != shape:
            raise _wrong(description, f"gave {name} the shape {array.shape}, it is {shape}")
        if not np.isfinite(array).all():
            raise _wrong(description, f"gave numbers for {name} that are not finite")
    if output.dtype in FLOATS:
        return floats
    integers = np.asarray(value)
    return _integers(description, output, integers if integers.dtype.kind in "biu" else floats[0]), np.zeros(shape)


def _integers(description: Description, output: ArrayArgument, value: NDArray[Any]) -> Integers:
    """The value converted to the output's data type. Raises UserError if that would change a number."""
    name, dtype, limits = output.name, output.dtype, np.iinfo(output.dtype)
    if value.dtype.kind == "f":
        if (value != np.floor(value)).any():
            raise _wrong(description, f"gave numbers for {name}, which holds {dtype}, that are not whole")
        if (np.abs(value) >= EXACT_BELOW).any():
            raise _wrong(description, f"gave floats for {name} from 2^53 on, where they are not exact: give {dtype}")
    if value.size and not limits.min <= int(value.min()) <= int(value.max()) <= limits.max:
        raise _wrong(description, f"gave numbers for {name} that do not fit into {dtype}")
    return value.astype(dtype)


@cache
def _function(file: Path, text: str, name: str, location: str) -> Callable[[dict[str, Value], dict[str, Array]], Any]:
    """The function `name` of the text. Tracebacks show the text's lines; `__file__` is set if the path is known."""
    remedy = "mend the file, or name another with Reference: file.py:function"
    module = ModuleType(f"tunesmith_reference_{file.stem}")
    if file.is_absolute():
        module.__file__ = str(file)
    linecache.cache[str(file)] = len(text), None, text.splitlines(keepends=True), str(file)
    try:
        exec(compile(text, str(file), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        raise UserError(location, f"{file} cannot be imported: {type(error).__name__}: {error}", remedy) from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UserError(location, f"{file} has no function {name}", remedy)
    return function  # type: ignore[no-any-return]  # arguments and results are checked when it is called


def _wrong(description: Description, what: str) -> UserError:
    name = "" if description.callers_reference else f" {description.reference}"
    remedy = "write " + _SIGNATURE.format(description.reference) if name else "mend the function"
    return UserError(description.reference_location, f"the reference{name} {what}", remedy)
