"""`convolution_type` makes a convolution's problem type; `Convolution` is a typed view of a problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.problems.gemm.fields import DATA_TYPES, INPUTS
from tunesmith.records import Configuration, Problem, ProblemType, Value

from .fields import CHANNELS_FIRST, CHANNELS_LAST, LAYOUTS, MOST_DIMENSIONS, PER_DIMENSION, Direction

Extents = tuple[int, ...]

_IMAGE, _TAPS = ("D", "H", "W"), ("T", "R", "S")
"""The indices of the input's and of the filter's spatial sizes. With fewer dimensions, the last ones are used."""


class ConvolutionTypeError(ValueError):
    """A field that makes no sense: its key, what is wrong, and the remedy."""

    def __init__(self, key: str, what: str, remedy: str) -> None:
        super().__init__(f"{key}: {what}")
        self.key, self.what, self.remedy = key, what, remedy


def convolution_type(
    data_type: str = "s",
    *,
    direction: Direction = Direction.FORWARD,
    dimensions: int = 2,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layouts: Sequence[str | None] = (None, None, None),
) -> ProblemType:
    """The problem type, with a name such as `Convolution_Forward_NHWC_B_Stride2x2`; defaults are left out of the name.

    `data_type` is one of a GEMM's. `stride`, `padding` and `dilation` have a number for each spatial dimension, or one
    for all. `layouts` are those of input, filter and output; None stands for channels last. The sizes are N (images), C
    and K (channels of the input and of the output, all groups together), the input's D, H, W and the filter's T, R, S.
    Raises ConvolutionTypeError for a field that makes no sense.
    """
    if data_type not in INPUTS:
        raise ConvolutionTypeError("DataType", f"{data_type!r} is not supported", f"give one of {', '.join(INPUTS)}")
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise ConvolutionTypeError("SpatialDimensions", f"{dimensions} dimensions", "give 1, 2 or 3")
    if groups < 1:
        raise ConvolutionTypeError("Groups", f"{groups} groups", "give a whole number from 1 on")
    steps = {"Stride": stride, "Padding": padding, "Dilation": dilation}
    numbers = {name: _each_dimension(name, value, dimensions) for name, value in steps.items()}
    last, first = CHANNELS_LAST[dimensions - 1], CHANNELS_FIRST[dimensions - 1]
    chosen = dict(zip(LAYOUTS, (layout or last for layout in layouts), strict=True))
    for name, layout in chosen.items():
        if layout not in (last, first):
            what = f"{layout} is no layout of {dimensions} spatial dimensions"
            raise ConvolutionTypeError(name, what, f"give {last} or {first}")
    fields: dict[str, Value] = {"DataType": data_type, "Direction": direction.value, "SpatialDimensions": dimensions}
    fields |= {**numbers, "Groups": groups, **chosen}
    words = ["Convolution", direction.value]
    words += [last] if set(chosen.values()) == {last} else list(chosen.values())
    words.append(data_type.upper())
    for name, values in numbers.items():
        if values != (PER_DIMENSION[name],) * dimensions:
            words.append(name + "x".join(map(str, values)))
    words += [f"Groups{groups}"] if groups > 1 else []
    return ProblemType("Convolution", "_".join(words), _indices(dimensions), Configuration(fields))


def _each_dimension(name: str, value: int | Sequence[int], dimensions: int) -> Extents:
    values = (value,) * dimensions if isinstance(value, int) else tuple(value)
    if len(values) != dimensions:
        what = f"{len(values)} numbers for {dimensions} spatial dimensions"
        raise ConvolutionTypeError(name, what, "give a number for each, or one for all")
    if min(values) < PER_DIMENSION[name]:
        raise ConvolutionTypeError(name, f"{min(values)} is too small", f"give {PER_DIMENSION[name]} or more")
    return values


def _indices(dimensions: int) -> tuple[str, ...]:
    return ("N", "C", *_IMAGE[-dimensions:], "K", *_TAPS[-dimensions:])


@dataclass(frozen=True, slots=True)
class ImplicitGemm:
    """The product of matrices that computes a convolution: `groups` times M x K by K x N.

    | direction | M | N | K |
    |---|---|---|---|
    | forward | pixels of all outputs | output channels of a group | input channels of a group x taps |
    | backward data | pixels of all inputs | input channels of a group | output channels of a group x taps |
    | backward weights | output channels of a group | input channels of a group x taps | pixels of all outputs |

    Terms that are zero because of padding, or because of a stride in a backward direction, are counted: a kernel that
    does not skip them multiplies them too.
    """

    m: int
    n: int
    k: int
    groups: int


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution problem with named attributes.

    `image` and `taps` are the spatial sizes of the input and of the filter, the outermost first. `channels` and
    `filters` are C and K of all groups together. `dtype`, `dest` and `sums` are NumPy's names for the types of the
    arrays that are read, of the array that is written, and of the sums.
    """

    direction: Direction
    images: int
    channels: int
    image: Extents
    filters: int
    taps: Extents
    stride: Extents
    padding: Extents
    dilation: Extents
    groups: int
    layouts: tuple[str, str, str]
    dtype: str
    dest: str
    sums: str

    @staticmethod
    def of(problem: Problem) -> Convolution:
        """Typed view. Raises ValueError for a problem of another operation, and for sizes that no convolution has."""
        problem_type, fields = problem.type, problem.type.fields
        if problem_type.operation != "Convolution":
            raise ValueError(f"{problem_type.name} is no convolution")
        dimensions, data_type = fields.integer("SpatialDimensions"), DATA_TYPES[fields.word("DataType")]
        images, channels, *rest = problem.sizes
        image, filters, taps = tuple(rest[:dimensions]), rest[dimensions], tuple(rest[dimensions + 1 :])
        convolution = Convolution(
            direction=Direction(fields.word("Direction")),
            images=images,
            channels=channels,
            image=image,
            filters=filters,
            taps=taps,
            stride=fields.integers("Stride"),
            padding=fields.integers("Padding"),
            dilation=fields.integers("Dilation"),
            groups=fields.integer("Groups"),
            layouts=(fields.word("InputLayout"), fields.word("FilterLayout"), fields.word("OutputLayout")),
            dtype=data_type.dtype,
            dest=DATA_TYPES[data_type.dest[0]].dtype,
            sums=data_type.sums,
        )
        if reason := convolution._contradiction():
            raise ValueError(reason)
        return convolution

    @property
    def output(self) -> Extents:
        """The output's spatial sizes."""
        return tuple(
            (extent + 2 * padding - reach) // stride + 1
            for extent, padding, reach, stride in zip(self.image, self.padding, self.reach, self.stride, strict=True)
        )

    @property
    def reach(self) -> Extents:
        """Pixels from the filter's first tap to its last, both included."""
        return tuple(dilation * (taps - 1) + 1 for dilation, taps in zip(self.dilation, self.taps, strict=True))

    @property
    def implicit_gemm(self) -> ImplicitGemm:
        """The product of matrices that computes this convolution."""
        taps, channels, filters = math.prod(self.taps), self.channels // self.groups, self.filters // self.groups
        pixels = self.images * math.prod(self.output)
        match self.direction:
            case Direction.FORWARD:
                return ImplicitGemm(pixels, filters, channels * taps, self.groups)
            case Direction.BACKWARD_DATA:
                return ImplicitGemm(self.images * math.prod(self.image), channels, filters * taps, self.groups)
            case Direction.BACKWARD_WEIGHTS:
                return ImplicitGemm(filters, channels * taps, pixels, self.groups)

    def _contradiction(self) -> str:
        """Why there is no such convolution; empty if there is one."""
        for name, extent in (("C", self.channels), ("K", self.filters)):
            if extent % self.groups:
                return f"{name} {extent} is no multiple of {self.groups} groups"
        for axis, extent in enumerate(self.output):
            if extent < 1:
                name = _IMAGE[axis - len(self.image)]
                padded = self.image[axis] + 2 * self.padding[axis]
                return (
                    f"the filter reaches over {self.reach[axis]} pixels of {name}, which has {padded} with its padding"
                )
        return ""
