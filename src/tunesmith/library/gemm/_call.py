"""A call of `matmul`, checked: what NumPy would refuse is refused before anything is chosen or launched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from tunesmith.library.arrays._view import View
from tunesmith.problems.gemm import ACTIVATIONS, DATA_TYPES

from ._request import SCALED, GemmRequest, added, data_types


class Arguments(NamedTuple):
    """The arrays of a call, as the caller gave them or as views; None for what was not given."""

    a: Any
    b: Any
    c: Any = None
    bias: Any = None
    scale_a: Any = None
    scale_b: Any = None
    out: Any = None


class Scalars(NamedTuple):
    """What else says which problem a call is. `dest` is the name of the result's type, where the caller named one."""

    activation: str | None
    alpha: float
    beta: float
    dest: str


def settled(given: Arguments, scalars: Scalars, residual: Any) -> tuple[Arguments, Scalars]:
    """With a residual as c, a c that is not read left out, and scales that are plain numbers in alpha."""
    if given.c is not None or residual is not None or scalars.beta != 0:
        scalars = scalars._replace(beta=added(given.c, residual, scalars.beta))
        if scalars.beta == 0:
            same_shape("c", np.shape(given.c), result_shape(np.shape(given.a), np.shape(given.b)))
        given = given._replace(c=None if scalars.beta == 0 else residual if given.c is None else given.c)
    for name in ("scale_a", "scale_b") if given.scale_a is not None or given.scale_b is not None else ():
        if isinstance(scale := getattr(given, name), Real):
            given, scalars = in_alpha(given, scalars, name, float(scale))
    return given, scalars


def in_alpha(given: Arguments, scalars: Scalars, name: str, scale: float) -> tuple[Arguments, Scalars]:
    """The same with one of the scales, which the host knows, as a part of alpha."""
    return given._replace(**{name: None}), scalars._replace(alpha=scalars.alpha * scale)


def checked(seen: Arguments, scalars: Scalars, tf32: bool = False) -> Call:
    """The call with its matrices as batches; a row-major `out` stands for one that is not given. Raises TypeError for
    data types, ValueError for everything else."""
    shape = result_shape(seen.a.shape, seen.b.shape)
    for name, fit in (("c", shape), ("out", shape), ("bias", shape[-1:])):
        if (x := getattr(seen, name)) is not None:
            same_shape(name, x.shape, fit)
    if seen.out is not None and seen.out.read_only:
        raise ValueError("out must not be written; give a writeable array")
    if seen.out is not None and seen.out.overlaps_itself:
        raise ValueError("out shares memory with itself: give an array whose elements lie apart")
    typed = {name: getattr(seen, name) for name in ("a", "b", "c", "bias", "out")}
    data, dest = data_types(tuple((name, x.dtype) for name, x in typed.items() if x is not None), scalars.dest)
    scales = {name: scale for name in ("scale_a", "scale_b") if (scale := getattr(seen, name)) is not None}
    for name, scale in scales.items():
        if scale.count != 1 or scale.dtype != "float32":
            raise ValueError(f"{name} is {scale.dtype} of shape {scale.shape}; it is one float32")
    if scales and data not in SCALED:
        raise TypeError(f"scales are for float8 operands, a is {seen.a.dtype}; give alpha")
    for name in ("alpha", "beta"):
        value = getattr(scalars, name)
        if DATA_TYPES[data].sums == "int32" and not float(value).is_integer():
            raise ValueError(f"{name} is {value}; of integers it is an integer")
    activation, tf32 = scalars.activation or "none", tf32 and data == "s"
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}; there are {', '.join(ACTIVATIONS)}")
    request = GemmRequest(data, dest, seen.c is not None, seen.bias is not None, activation, bool(scales), tf32)
    out = seen.out or seen.a.like(request.result, shape)
    batch = shape[0] if len(shape) == 3 else 1
    matrices = {"a": seen.a, "b": seen.b, "out": out, **({} if seen.c is None else {"c": seen.c})}
    batches = {name: x.batch(batch) for name, x in matrices.items()}
    extra = {"Bias": seen.bias, "ScaleA": seen.scale_a, "ScaleB": seen.scale_b}
    given = {name: x for name, x in extra.items() if x is not None}
    return Call(
        **batches, alpha=float(scalars.alpha), beta=float(scalars.beta), request=request, shape=shape, extra=given
    )


def result_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """That of a product. Raises ValueError where there is none."""
    if len(a) not in (2, 3) or len(b) not in (2, 3):
        raise ValueError(f"a and b must be matrices or batches of them, not of shapes {tuple(a)} and {tuple(b)}")
    if a[-1] != b[-2]:
        raise ValueError(
            f"a has {a[-1]} columns and b has {b[-2]} rows: shapes {tuple(a)} and {tuple(b)} do not multiply"
        )
    batches = {shape[0] for shape in (a, b) if len(shape) == 3}
    if len(batches - {1}) > 1:
        raise ValueError(f"a and b have batches of different length: shapes {tuple(a)} and {tuple(b)}")
    product = (a[-2], b[-1])
    return (next(iter(batches - {1}), 1), *product) if batches else product


def same_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Raises ValueError where it is another one."""
    if tuple(shape) != tuple(expected):
        raise ValueError(f"{name} has shape {tuple(shape)}, the product asks for {tuple(expected)}")


@dataclass(frozen=True)
class Call:
    """D = activation(alpha A B + bias) + beta C with every matrix as batch x rows x columns.

    `shape` is the result's as the caller sees it. `extra` holds what else kernels read, by their operands' names; what
    of the epilogue is in the `request`, c included, may be left out of the call where it follows the product.
    """

    a: View
    b: View
    out: View
    alpha: float
    beta: float
    request: GemmRequest
    shape: tuple[int, ...]
    c: View | None = None
    extra: Mapping[str, View] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Rows and columns of the result, batch, and the length of the sums."""
        return self.out.shape[1], self.out.shape[2], self.out.shape[0], self.a.shape[2]

    @property
    def matrices(self) -> dict[str, View]:
        """Those that are there, by their arguments' names."""
        given = {"a": self.a, "b": self.b, "c": self.c, "out": self.out}
        return {name: x for name, x in given.items() if x is not None}

    def first(self) -> Call:
        """The first matrix of the batch by itself."""
        return self.with_matrices({name: x.first() for name, x in self.matrices.items()})

    def only(self, request: GemmRequest) -> Call:
        """As much of the call as that says, for a result that other things follow."""
        c, beta = (self.c, self.beta) if request.beta else (None, 0.0)
        kept = {name: x for name, x in self.extra.items() if (request.bias if name == "Bias" else request.scaled)}
        return replace(self, c=c, beta=beta, request=request, extra=kept)

    def transposed(self) -> Call:
        """D' = B' A' + C'."""
        turned = {name: x.transposed() for name, x in self.matrices.items()}
        return self.with_matrices({**turned, "a": turned["b"], "b": turned["a"]})

    def with_matrices(self, x: Mapping[str, View]) -> Call:
        return replace(self, a=x["a"], b=x["b"], c=x.get("c"), out=x["out"])
