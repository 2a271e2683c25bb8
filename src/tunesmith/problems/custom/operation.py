"""The user's own computation as an operation: operands, inputs, reference and tolerance, from its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import ml_dtypes  # also teaches NumPy the name bfloat16
import numpy as np

from tunesmith.problems.base import SMALL, Array, Expected, Operation
from tunesmith.problems.keys import unknown_key
from tunesmith.records import Operand, Problem, ProblemType, UserError, Value

from .caller import contents, deliver_contents
from .description import FLOATS, ArrayArgument, Description
from .reference import FIRST_ROUNDINGS, call_reference, share_reference
from .texts import description_of, former_types, read_type


class CustomOperation(Operation):
    """A type holds the texts of the description, its sources and its reference, with their digest.

    So neither a worker process nor a shipped logic needs a file, a measurement from before a change is not used after
    it, and a run goes on with the texts that it began with.
    """

    name = "Custom"
    runs_users_code = True

    def type_of(self, fields: Mapping[str, Value], location: Callable[[str], str], folder: Path) -> ProblemType:
        for name in fields:
            if name not in ("OperationType", "Kernel"):
                raise unknown_key(
                    location(name), name, ("OperationType", "Kernel"), "the ProblemType of a custom kernel"
                )
        named = fields.get("Kernel")
        if not isinstance(named, str) or "\0" in named:
            raise UserError(
                location("Kernel"), "no Kernel is named", "give the file that describes it: Kernel: my.yaml"
            )
        return read_type(self.name, (folder / named).resolve(), location("Kernel"))

    def validate(self, problem_type: ProblemType) -> None:
        description_of(problem_type)

    def former(self, problem: Problem) -> tuple[Problem, ...]:
        return tuple(replace(problem, type=former_type) for former_type in former_types(problem.type))

    def was_moved(self, former: Problem, stored: Problem) -> bool:
        """Whether both have the same hash of the texts, but another path."""
        moved = replace(stored.type, fields=stored.type.fields | {"Kernel": former.type.fields.word("Kernel")})
        return replace(stored, type=moved) == former != stored

    def extents(self, problem_type: ProblemType) -> Mapping[str, tuple[str, ...]]:
        """For each array, the indices of the extents that are a size's plain name in the description."""
        return {
            array.name: tuple(extent.text if extent.text in problem_type.indices else "" for extent in array.shape)
            for array in description_of(problem_type).arrays
        }

    def operands(self, problem: Problem) -> tuple[Operand, ...]:
        """Dense arrays in row-major order."""
        sizes = sizes_of(problem)
        return tuple(_operand(array, sizes) for array in description_of(problem.type).arrays)

    def inputs(self, problem: Problem, random: np.random.Generator) -> dict[str, Array]:
        """Floats of magnitude in [0.5, 1) with random signs, whole numbers in [1, 100); or within the array's Range."""
        sizes = sizes_of(problem)
        return {
            array.name: _contents(array, sizes, random)
            for array in description_of(problem.type).arrays
            if array.role != "out"
        }

    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """The values that the user's function returns, and their tolerance.

        |out - value| <= Tolerance u magnitude, where u is half the spacing of the output's numbers at 1. If terms may
        cancel, the function returns the magnitude (the same computation on absolute values); otherwise it is |value|.
        Whole numbers must be exact, in 64 bits too. Raises UserError if the function fails or returns something else.
        """
        description, sizes = description_of(problem.type), sizes_of(problem)
        if description.compares_with_first:
            return {}
        outputs = {array.name: array for array in description.arrays if array.role != "in"}
        results = call_reference(description, sizes, *_reference_arguments(description, sizes, inputs))
        return {
            name: Expected((...,), value, _tolerance(description, sizes, outputs[name].dtype) * magnitude)
            for name, (value, magnitude) in results.items()
        }

    def agreement(self, problem: Problem) -> dict[str, float]:
        """With `Reference: first`, Tolerance u roundings, where the roundings allow for another order of sums."""
        description, sizes = description_of(problem.type), sizes_of(problem)
        if not description.compares_with_first:
            return {}
        return {
            array.name: FIRST_ROUNDINGS.get(array.dtype, 0.0) * _tolerance(description, sizes, array.dtype)
            for array in description.arrays
            if array.role != "in"
        }

    def share(self, problem: Problem, inputs: Callable[[], Mapping[str, Array]]) -> None:
        """Make the arrays that this program promised, and call the reference if it is a function of this program, since
        the process that verifies has neither."""
        description, sizes = description_of(problem.type), sizes_of(problem)
        for array in description.arrays:
            if array.contents:
                deliver_contents(array.contents)
        if description.callers_reference:
            share_reference(description, sizes, *_reference_arguments(description, sizes, inputs()))

    def small(self, problem: Problem) -> Problem:
        """Sizes of at most 64. A size that a constraint or a number of `DivisibleBy16` names stays, since a smaller one
        may break the constraint or the promise."""
        description = description_of(problem.type)
        kept = {name for constraint in description.constraints for name in constraint.require.names}
        kept |= {name for argument in description.divisible_values for name in argument.value.names}
        sizes = (
            size if name in kept else min(size, SMALL)
            for name, size in zip(problem.type.indices, problem.sizes, strict=True)
        )
        return replace(problem, sizes=tuple(sizes))

    def flops(self, problem: Problem) -> float:
        return description_of(problem.type).flops.number(sizes_of(problem), least=0)

    def bytes(self, problem: Problem) -> float:
        """The description's `Bytes`; without it, each array once if it is read and once if it is written."""
        described = description_of(problem.type).bytes
        return described.number(sizes_of(problem), least=0) if described else super().bytes(problem)


def sizes_of(problem: Problem) -> dict[str, Value]:
    return dict(zip(problem.type.indices, problem.sizes, strict=True))


def _shape(array: ArrayArgument, sizes: Mapping[str, Value]) -> tuple[int, ...]:
    return tuple(extent.integer(sizes) for extent in array.shape)


def _reference_arguments(
    description: Description, sizes: Mapping[str, Value], inputs: Mapping[str, Array]
) -> tuple[dict[str, Array], dict[str, tuple[int, ...]]]:
    """The arrays that the reference gets, and the shapes of its results."""
    shapes = {array.name: _shape(array, sizes) for array in description.arrays}
    arrays = {name: _reference_input(storage, shapes[name]) for name, storage in inputs.items()}
    return arrays, {array.name: shapes[array.name] for array in description.arrays if array.role != "in"}


def _operand(array: ArrayArgument, sizes: Mapping[str, Value]) -> Operand:
    shape = _shape(array, sizes)
    strides = [1]
    for extent in shape[:0:-1]:
        strides.append(strides[-1] * extent)
    assert array.role != "scratch"
    return Operand(array.name, array.dtype, shape, tuple(strides[::-1][: len(shape)]), array.role)


def _contents(array: ArrayArgument, sizes: Mapping[str, Value], random: np.random.Generator) -> Array:
    if array.contents:
        return _registered(array, sizes)
    count, is_float = _operand(array, sizes).storage_elements, array.dtype in FLOATS
    if array.low is not None and array.high is not None:
        low, high = array.low.number(sizes), array.high.number(sizes)
        if not low < high:
            raise UserError(
                array.low.location, f"the Range of {array.name} is empty: {low} to {high}", "give low < high"
            )
        drawn = random.uniform(low, high, count) if is_float else random.integers(int(low), int(high), count)
    elif is_float:
        drawn = random.uniform(0.5, 1.0, count) * random.choice((-1.0, 1.0), count)
    else:
        drawn = random.integers(1, 100, count)
    return drawn.astype(array.dtype)


def _registered(array: ArrayArgument, sizes: Mapping[str, Value]) -> Array:
    """The contents that the calling program registered."""
    registered = contents(array.contents)
    if registered is None:
        what = f"the contents of {array.name} were an array of the Python program that tuned this kernel"
        raise UserError(array.name, what, "leave Contents out, or give a Range: the contents are random then")
    if np.dtype(array.dtype).kind == registered.dtype.kind == "V":
        registered = registered.view(array.dtype)  # NumPy's files do not have the name bfloat16
    if (registered.dtype, registered.shape) != (np.dtype(array.dtype), _shape(array, sizes)):
        what = f"the contents of {array.name} have the shape {registered.shape}, it is {_shape(array, sizes)}"
        raise UserError(array.name, what, "tune again with arrays of this shape")
    return registered.reshape(-1)


def _reference_input(storage: Array, shape: tuple[int, ...]) -> Array:
    """A copy of an input, so that no reference can change the kernel's input; floats are converted to float64."""
    logical = storage.reshape(shape)
    return logical.astype(np.float64) if storage.dtype.name in FLOATS else logical.copy()


def _tolerance(description: Description, sizes: Mapping[str, Value], dtype: str) -> float:
    """How far an output may be from its value, relative to its magnitude."""
    return _unit_roundoff(dtype) * (description.tolerance.number(sizes, least=0) if description.tolerance else 0.0)


def _unit_roundoff(dtype: str) -> float:
    if dtype not in FLOATS:
        return 0.0
    return float(ml_dtypes.finfo(dtype).eps) / 2  # type: ignore[no-untyped-call]
