"""Convolution, forward and backward, in one to three dimensions, as an operation: operands, inputs and the reference.

The output at pixel p and channel k is the sum over taps r and channels c of the group of

    Input[n, c, p stride - padding + r dilation] Filter[k, c, r],

as in cuDNN and MIOpen: a cross-correlation, which does not reverse the filter. BackwardData computes the gradient of
the input from the gradient of the output and the filter. BackwardWeights computes the gradient of the filter from the
input and the gradient of the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from tunesmith.problems.base import Array, Expected, Operation, refuse_mismatch, strided
from tunesmith.problems.fill import repeated
from tunesmith.problems.gemm.fields import data_type
from tunesmith.problems.gemm.inputs import factors, storage_order
from tunesmith.problems.keys import checked
from tunesmith.problems.lists import ListedProblem
from tunesmith.records import Operand, Problem, ProblemType, UserError, Value

from .fields import CHANNELS_FIRST, CONVOLUTION_FIELDS, LAYOUTS, Direction
from .listed import read_convolution_list
from .reference import expected
from .type import Convolution, ConvolutionTypeError, Extents, convolution_type

_WRITTEN = {
    Direction.FORWARD: "Output",
    Direction.BACKWARD_DATA: "Input",
    Direction.BACKWARD_WEIGHTS: "Filter",
}


class ConvolutionOperation(Operation):
    """Operands are Input, Filter and Output; the direction says which of them is written.

    A gradient has the name, shape and layout of the array whose gradient it is.
    """

    name = "Convolution"
    single = ("T", "R", "S")

    def type_of(self, fields: Mapping[str, Value], location: Callable[[str], str], folder: Path) -> ProblemType:
        letters = {"DataType": data_type("DataType", fields.get("DataType", "s"), location("DataType"))}
        values = checked({**fields, **letters}, CONVOLUTION_FIELDS, location, "the ProblemType of a convolution")
        try:
            return convolution_type(
                values["DataType"],
                direction=Direction(values["Direction"]),
                dimensions=values["SpatialDimensions"],
                stride=values["Stride"],
                padding=values["Padding"],
                dilation=values["Dilation"],
                groups=values["Groups"],
                layouts=[values[name] for name in LAYOUTS],
            )
        except ConvolutionTypeError as error:
            raise UserError(location(error.key), str(error), error.remedy) from None

    def validate(self, problem_type: ProblemType) -> None:
        refuse_mismatch(problem_type, self.type_of(problem_type.fields, str, Path()))

    def assumed(self, fields: Mapping[str, Value]) -> Iterator[str]:
        if "DataType" not in fields:
            yield "no DataType is given: single precision (DataType: s) is assumed"

    def wrong_sizes(self, problem_type: ProblemType, sizes: tuple[int, ...]) -> str:
        try:
            Convolution.of(Problem(problem_type, sizes))
        except ValueError as error:
            return str(error)
        return ""

    def listed(self, problem_type: ProblemType, path: Path, location: str) -> Sequence[ListedProblem]:
        """The rows of a list of convolutions (`listed.read_convolution_list`); rows of other types have no sizes."""
        rows = read_convolution_list(path, problem_type.fields.word("DataType"))
        return [
            ListedProblem(row.sizes if row.type == problem_type else (), row.family, row.weight, row.type.name)
            for row in rows
        ]

    def none_listed(self, problem_type: ProblemType, location: str, name: str, others: str) -> UserError:
        what = f"{name} has no problem of {problem_type.name}, but {others}"
        return UserError(location, what, "change the fields of the ProblemType, or the list")

    def extents(self, problem_type: ProblemType) -> Mapping[str, tuple[str, ...]]:
        """As for any operation. The output's pixels and the channels of a group are not sizes by themselves."""
        images, channels, *rest = problem_type.indices
        dimensions = problem_type.fields.integer("SpatialDimensions")
        group_channels = channels if problem_type.fields.integer("Groups") == 1 else ""
        image, filters, taps = rest[:dimensions], rest[dimensions], rest[dimensions + 1 :]
        return {
            "Input": (images, channels, *image),
            "Filter": (filters, group_channels, *taps),
            "Output": (images, filters, *[""] * dimensions),
        }

    def operands(self, problem: Problem) -> tuple[Operand, ...]:
        """Input: N x C x pixels, Filter: K x C of a group x taps, Output: N x K x pixels.

        Layouts differ only in the strides, and the arrays are dense.
        """
        convolution = Convolution.of(problem)
        shapes: dict[str, Extents] = {
            "Input": (convolution.images, convolution.channels, *convolution.image),
            "Filter": (convolution.filters, convolution.channels // convolution.groups, *convolution.taps),
            "Output": (convolution.images, convolution.filters, *convolution.output),
        }

        def operand(name: str, layout: str) -> Operand:
            is_written = name == _WRITTEN[convolution.direction]
            role: Literal["in", "out"] = "out" if is_written else "in"
            dtype = convolution.dest if is_written else convolution.dtype
            return Operand(name, dtype, shapes[name], _strides(shapes[name], layout), role)

        return tuple(operand(name, layout) for name, layout in zip(shapes, convolution.layouts, strict=True))

    def inputs(self, problem: Problem, random: np.random.Generator) -> dict[str, Array]:
        """Random numbers with the magnitudes of a GEMM's operands (`gemm.inputs.random_numbers`)."""

        def storage(operand: Operand) -> Array:
            extents = tuple(operand.shape[axis] for axis in storage_order(operand))
            dtype = operand.dtype
            return repeated(extents, lambda shape: factors(random, shape, dtype).astype(dtype)).reshape(-1)

        return {operand.name: storage(operand) for operand in self.operands(problem) if operand.role == "in"}

    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """The written array in float64 with its tolerance (`reference.expected`).

        A big array is checked at sampled elements.
        """
        convolution = Convolution.of(problem)
        operands = (operand for operand in self.operands(problem) if operand.role == "in")
        arrays = {operand.name: strided(operand, inputs[operand.name]) for operand in operands}
        return {_WRITTEN[convolution.direction]: expected(convolution, arrays)}

    def small(self, problem: Problem) -> Problem:
        """One image, at most eight channels a group, and pixels for at most four outputs along each axis."""
        convolution = Convolution.of(problem)
        pixels = zip(convolution.image, convolution.reach, convolution.stride, convolution.padding, strict=True)
        image = (min(extent, max(1, reach + 3 * stride - 2 * padding)) for extent, reach, stride, padding in pixels)
        channels = (min(count, 8 * convolution.groups) for count in (convolution.channels, convolution.filters))
        return replace(problem, sizes=(1, next(channels), *image, next(channels), *convolution.taps))

    def flops(self, problem: Problem) -> float:
        """2 N K x pixels of the output x taps x channels of a group, in all directions.

        Taps on padding are counted, as users of cuDNN and MIOpen count them.
        """
        convolution = Convolution.of(problem)
        outputs = convolution.images * convolution.filters * math.prod(convolution.output)
        return 2.0 * outputs * convolution.channels // convolution.groups * math.prod(convolution.taps)


def _strides(shape: Extents, layout: str) -> Extents:
    """The strides of a dense array N x C x pixels in a layout: channels last, or in the order of the shape."""
    order = list(range(len(shape)))
    if layout not in CHANNELS_FIRST:
        order.append(order.pop(1))
    strides = [0] * len(shape)
    for position, axis in enumerate(order):
        strides[axis] = math.prod(shape[other] for other in order[position + 1 :])
    return tuple(strides)
