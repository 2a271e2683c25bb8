"""A call of `matmul` with its arguments checked. Whatever NumPy would refuse is refused here, before anything is chosen
or launched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from tunesmith.library.arrays._view import View
from tunesmith.problems.gemm import ACTIVATIONS, DATA_TYPES

from ._request import SCALED, GemmRequest, data_types, effective_beta


class Arguments(NamedTuple):
    """The arrays of a call, as the caller gave them or as views; None for a missing argument."""

    a: Any
    b: Any
    c: Any = None
    bias: Any = None
    scale_a: Any = None
    scale_b: Any = None
    out: Any = None


class Scalars(NamedTuple):
    """The arguments of a call that are not arrays. `dest` is the name of the result's data type, "" for the default."""

    activation: str | None
    alpha: float
    beta: float
    dest: str


def normalized(arguments: Arguments, scalars: Scalars, residual: Any) -> tuple[Arguments, Scalars]:
    """The same call with fewer forms: a residual becomes c, a c that is not read is dropped, and scales that are plain
    numbers are multiplied into alpha."""
    if arguments.c is not None or residual is not None or scalars.beta != 0:
        scalars = scalars._replace(beta=effective_beta(arguments.c, residual, scalars.beta))
        if scalars.beta == 0:
            check_shape("c", np.shape(arguments.c), result_shape(np.shape(arguments.a), np.shape(arguments.b)))
        arguments = arguments._replace(
            c=None if scalars.beta == 0 else residual if arguments.c is None else arguments.c
        )
    for name in ("scale_a", "scale_b") if arguments.scale_a is not None or arguments.scale_b is not None else ():
        if isinstance(scale := getattr(arguments, name), Real):
            arguments, scalars = fold_scale(arguments, scalars, name, float(scale))
    return arguments, scalars


def fold_scale(arguments: Arguments, scalars: Scalars, name: str, scale: float) -> tuple[Arguments, Scalars]:
    """The same call with the scale `name`, whose value the host knows, multiplied into alpha."""
    return arguments._replace(**{name: None}), scalars._replace(alpha=scalars.alpha * scale)


def checked(views: Arguments, scalars: Scalars, tf32: bool = False, loose_sums: bool = False) -> CheckedCall:
    """The call with its matrices as batches. If `out` is missing, a row-major one stands for it. Raises TypeError for
    wrong data types, ValueError for every other mistake."""
    shape = result_shape(views.a.shape, views.b.shape)
    for name, expected in (("c", shape), ("out", shape), ("bias", shape[-1:])):
        if (x := getattr(views, name)) is not None:
            check_shape(name, x.shape, expected)
    if views.out is not None and views.out.read_only:
        raise ValueError("out must not be written; give a writeable array")
    if views.out is not None and views.out.overlaps_itself:
        raise ValueError("out shares memory with itself: give an array whose elements lie apart")
    with_result_type = {name: getattr(views, name) for name in ("a", "b", "c", "bias", "out")}
    dtypes = tuple((name, x.dtype) for name, x in with_result_type.items() if x is not None)
    data, dest = data_types(dtypes, scalars.dest)
    scales = {name: scale for name in ("scale_a", "scale_b") if (scale := getattr(views, name)) is not None}
    for name, scale in scales.items():
        if scale.count != 1 or scale.dtype != "float32":
            raise ValueError(f"{name} is {scale.dtype} of shape {scale.shape}; it is one float32")
    if scales and data not in SCALED:
        raise TypeError(f"scales are for float8 operands, a is {views.a.dtype}; give alpha")
    for name in ("alpha", "beta"):
        value = getattr(scalars, name)
        if DATA_TYPES[data].sums == "int32" and not float(value).is_integer():
            raise ValueError(f"{name} is {value}; of integers it is an integer")
    activation, tf32 = scalars.activation or "none", tf32 and data == "s"
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}; there are {', '.join(ACTIVATIONS)}")
    request = GemmRequest(data, dest, views.c is not None, views.bias is not None, activation, bool(scales), tf32)
    out = views.out or views.a.like(request.result, shape)
    batch = shape[0] if len(shape) == 3 else 1
    matrices = {"a": views.a, "b": views.b, "out": out, **({} if views.c is None else {"c": views.c})}
    batches = {name: x.batch(batch) for name, x in matrices.items()}
    optional = {"Bias": views.bias, "ScaleA": views.scale_a, "ScaleB": views.scale_b}
    extra = {name: x for name, x in optional.items() if x is not None}
    alpha, beta = float(scalars.alpha), float(scalars.beta)
    return CheckedCall(
        **batches, alpha=alpha, beta=beta, request=request, shape=shape, extra=extra, loose_sums=loose_sums
    )


def result_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of the product of arrays with these shapes. Raises ValueError if they do not multiply."""
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


def check_shape(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Raises ValueError if the shapes differ."""
    if tuple(shape) != tuple(expected):
        raise ValueError(f"{name} has shape {tuple(shape)}, the product asks for {tuple(expected)}")


@dataclass(frozen=True)
class CheckedCall:
    """D = activation(alpha A B + bias) + beta C with every matrix as batch x rows x columns.

    `shape` is the result's shape as the caller sees it. `extra` holds the bias and the scales by the problem's operand
    names. `request` tells which parts of the epilogue (bias, scales, beta C) the call's kernel computes. With
    `loose_sums`, the vendor's BLAS may round parts of sums (`GemmCall`).
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
    loose_sums: bool = False

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Rows and columns of the result, length of the batch, and length of the sums."""
        return self.out.shape[1], self.out.shape[2], self.out.shape[0], self.a.shape[2]

    @property
    def matrices(self) -> dict[str, View]:
        """The matrices that the call has, by argument name."""
        matrices = {"a": self.a, "b": self.b, "c": self.c, "out": self.out}
        return {name: x for name, x in matrices.items() if x is not None}

    def first(self) -> CheckedCall:
        """The call for the first matrix of the batch alone."""
        return self.with_matrices({name: x.first() for name, x in self.matrices.items()})

    def only(self, request: GemmRequest) -> CheckedCall:
        """The part of the call that `request` names; the caller computes the rest afterwards."""
        c, beta = (self.c, self.beta) if request.beta else (None, 0.0)
        kept = {name: x for name, x in self.extra.items() if (request.bias if name == "Bias" else request.scaled)}
        return replace(self, c=c, beta=beta, request=request, extra=kept)

    def transposed(self) -> CheckedCall:
        """The call for the transposed product: D' = B' A' + C'."""
        transposed = {name: x.transposed() for name, x in self.matrices.items()}
        return self.with_matrices({**transposed, "a": transposed["b"], "b": transposed["a"]})

    def with_matrices(self, x: Mapping[str, View]) -> CheckedCall:
        return replace(self, a=x["a"], b=x["b"], c=x.get("c"), out=x["out"])
