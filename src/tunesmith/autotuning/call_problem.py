"""A call of an autotuned kernel as a problem to tune: the description, the tuning file and the kernel's text.

Each tensor becomes a flat array over the span of memory that it covers, so strides stay plain numbers. What Triton
makes a constant of the program (an argument that is None, True, 1 or a `tl.constexpr`) is bound in the text. What
differs between configurations is in the tuning file only, so one that is added later changes no measurement's key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tunesmith.problems.custom import caller
from tunesmith.problems.custom.description import DATA_TYPES, FIRST, FLOATS
from tunesmith.records import UserError, Value

from .arguments import INT32
from .bound_text import bound_text
from .jit_text import JitText

CALLS = "tunesmith_calls"
"""The name of the description's only size, which is 1: all extents are plain numbers."""

GRID = ("tunesmith_grid_x", "tunesmith_grid_y", "tunesmith_grid_z")
"""Parameters that only the launch uses: how many programs a configuration has."""

MOST_COPIED = 256 << 20
"""Bytes up to which the contents of an array of floats are those of the call's tensor; larger ones are random."""

STORED_AS: Mapping[str, tuple[str, str]] = {
    "bool": ("int8", "int1"),
    "float8_e4m3fn": ("uint8", "float8e4nv"),
    "float8_e5m2": ("uint8", "float8e5"),
}
"""For data types of torch that no description has: one of the same size that it has, and Triton's own name."""


@dataclass(frozen=True)
class CallArray:
    """A tensor of the call as a flat array of `extent` elements. `is_zeroed` arrays begin with zeros."""

    name: str
    dtype: str
    extent: int
    tensor: Any
    is_zeroed: bool

    @property
    def has_contents(self) -> bool:
        """Whether the array's contents are given, not random."""
        return self.is_zeroed or self.dtype not in FLOATS or self.extent * self.tensor.element_size() <= MOST_COPIED


@dataclass(frozen=True)
class CallProblem:
    """One call as a problem. `listed` are the configurations as members of a tuning file's group."""

    name: str
    entry: str
    source: str
    description: str
    reference_key: str
    arrays: tuple[CallArray, ...]
    numbers: Mapping[str, int | float]
    listed: tuple[Mapping[str, Value], ...]

    @property
    def tuning_file(self) -> str:
        """The tuning file that measures the listed configurations."""
        lines = [
            "BenchmarkProblems:",
            f"  - - {{OperationType: Custom, Kernel: {self.name}.kernel.yaml}}",
            "    - ForkParameters:",
            "        - Groups:",
        ]
        dashes = ["            - - ", *["              - "] * len(self.listed)]
        lines += [dash + json.dumps(dict(member)) for dash, member in zip(dashes, self.listed, strict=False)]
        lines += ["      BenchmarkFinalParameters:", "        - ProblemSizes:", "            - Exact: [1]", ""]
        return "\n".join(lines)

    def contents_key(self, array: CallArray) -> str:
        """The key of an array's contents. It does not depend on the contents, so that measurements stay valid."""
        return contents_key(self.name, array)


def contents_key(name: str, array: CallArray) -> str:
    return _digest(name, array.name, array.dtype, array.extent)[:32]


def call_problem(
    jit: JitText,
    arguments: Mapping[str, Any],
    listed: Sequence[Mapping[str, Value]],
    *,
    reset_to_zero: Collection[str] = (),
    tolerance: float = 1.0,
    reference: str = "",
    location: str,
) -> CallProblem:
    """The problem of a call with these arguments, by name and in the kernel's order.

    `arguments` lacks what configurations set. `listed` are the configurations (`listed_config`), `reference` is the
    fingerprint of the user's reference, empty if there is none. Raises UserError at `location` for what no description
    can say.
    """
    if len({tuple(sorted(member)) for member in listed}) > 1:
        raise UserError(location, "the configurations set different arguments", "let all set the same")
    kinds = {name: _kind_of(jit, name, value) for name, value in arguments.items()}
    for name, kind in kinds.items():
        if not kind:
            what = f"{jit.name} is called with {name}, which is a {type(arguments[name]).__name__}"
            raise UserError(location, what, "tunesmith.autotune takes tensors, numbers, texts, data types and None")
    constants = {name: value for name, value in arguments.items() if kinds[name] == "constant"}
    arrays = tuple(
        _array(name, tensor, name in reset_to_zero, location)
        for name, tensor in arguments.items()
        if kinds[name] == "array"
    )
    numbers = {name: value for name, value in arguments.items() if kinds[name] == "number"}
    torch_types = {array.name: dtype_name(array.tensor) for array in arrays}
    casts = {name: STORED_AS[dtype][1] for name, dtype in torch_types.items() if dtype in STORED_AS}
    source = bound_text(jit, constants, casts, location)
    passed = [name for name in arguments if kinds[name] != "constant"]
    parameters = [f"  {parameter}: {{Values: any}}" for parameter in listed[0]]
    name = f"{jit.name}_{_digest(source, passed, arrays_key(arrays), numbers, parameters, tolerance, reference)[:12]}"
    reference_key = _digest(name, reference)[:32]
    by_name = {array.name: array for array in arrays}
    described = [
        _array_line(name, by_name[argument]) if argument in by_name else _number_line(argument, numbers[argument])
        for argument in passed
    ]
    divisible = [number for number, value in numbers.items() if _is_divisible(jit, number, value)]
    lines = [
        f"Name: {name}",
        f"Source: {{Triton: {name}.py}}",
        f"Sizes: [{CALLS}]",
        "Parameters:",
        *parameters,
        "Arguments:",
        *described,
        f"Entry: {jit.name}",
        f"Grid: {{WorkGroups: [{', '.join(GRID)}]}}",
        f"Reference: {caller.PREFIX + reference_key if reference else FIRST}",
        f"Tolerance: {tolerance!r}",
        "Flops: 0",
        *([f"DivisibleBy16: {json.dumps(divisible)}"] if divisible else []),
    ]
    text = "\n".join([*lines, ""])
    return CallProblem(name, jit.name, source, text, reference_key, arrays, numbers, tuple(listed))


def listed_config(
    config: Any, computed: Mapping[str, Any], grid: Sequence[int], needs_registers: bool, location: str
) -> dict[str, Value]:
    """A `triton.Config` as a member of a tuning file's group, with the constants that heuristics computed for it, and
    its grid. `needs_registers`: whether some configuration of the list sets `maxnreg`; 0 is no limit."""
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages, "num_ctas": config.num_ctas}
    if needs_registers:
        options["maxnreg"] = config.maxnreg or 0
    for name, value in {**config.kwargs, **computed}.items():
        if not isinstance(value, bool | int | float) and not (isinstance(value, str) and value.isidentifier()):
            what = f"a configuration sets {name}={value!r}"
            raise UserError(location, what, "a configuration may set numbers, truth values and single words")
    extents = dict(zip(GRID, (*map(int, grid), 1, 1), strict=False))
    return {**config.kwargs, **computed, **options, **extents}


def arrays_key(arrays: Sequence[CallArray]) -> list[tuple[str, str, int, bool]]:
    """What a measurement depends on of the call's tensors."""
    return [(array.name, array.dtype, array.extent, array.is_zeroed) for array in arrays]


def is_tensor(value: object) -> bool:
    return hasattr(value, "data_ptr") and hasattr(value, "stride") and hasattr(value, "dtype")


def _kind_of(jit: JitText, name: str, value: Any) -> str:
    """`array`, `number` or `constant`, as Triton's launch would take the argument; empty if it can be none."""
    parameter = _parameter(jit, name)
    if is_tensor(value):
        return "array"
    if value is None or isinstance(value, bool | str) or getattr(parameter, "is_constexpr", False):
        return "constant"
    if isinstance(value, int) and value == 1 and not getattr(parameter, "do_not_specialize", False):
        return "constant"
    if isinstance(value, int | float):
        return "number"
    return ""


def _is_divisible(jit: JitText, name: str, value: float) -> bool:
    """Whether Triton's launch promises that a number is a multiple of 16."""
    parameter = _parameter(jit, name)
    is_left_out = ("do_not_specialize", "do_not_specialize_on_alignment")
    return isinstance(value, int) and value % 16 == 0 and not any(getattr(parameter, at, False) for at in is_left_out)


def _parameter(jit: JitText, name: str) -> Any:
    """What Triton knows of a parameter; None under its interpreter."""
    return next((parameter for parameter in getattr(jit.kernel, "params", ()) if parameter.name == name), None)


def _array(name: str, tensor: Any, is_zeroed: bool, location: str) -> CallArray:
    dtype = dtype_name(tensor)
    if dtype not in (*DATA_TYPES, *STORED_AS):
        what = f"the tensor {name} holds {dtype}"
        raise UserError(location, what, f"tunesmith.autotune takes tensors of {', '.join((*DATA_TYPES, *STORED_AS))}")
    stored, _ = STORED_AS.get(dtype, (dtype, ""))
    return CallArray(name, stored, span(tensor), tensor, is_zeroed)


def dtype_name(tensor: Any) -> str:
    """NumPy's name of a tensor's data type."""
    return str(tensor.dtype).removeprefix("torch.")


def span(tensor: Any) -> int:
    """The elements from a tensor's first to its last in memory, gaps included; 1 for an empty tensor."""
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    if not prod(shape):
        return 1
    return 1 + sum((int(extent) - 1) * int(stride) for extent, stride in zip(shape, strides, strict=True))


def _array_line(problem: str, array: CallArray) -> str:
    contents = f", Contents: {contents_key(problem, array)}" if array.has_contents else ""
    return f"  - {{Name: {array.name}, DataType: {array.dtype}, Shape: [{array.extent}], Role: inout{contents}}}"


def _number_line(name: str, value: float) -> str:
    dtype = ("int32" if value in INT32 else "int64") if isinstance(value, int) else "float32"
    return f"  - {{Name: {name}, DataType: {dtype}, Value: {json.dumps(repr(value))}}}"


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()
