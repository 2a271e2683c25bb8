"""A call of `matmul` on memory of a GPU, checked: whose memory it is does not matter here."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from tunesmith.library.arrays._matrices import Matrices
from tunesmith.library.arrays._memory import Foreign, dtype_name

from ._call import Call, result_shape, same_shape, scalar
from ._request import SCALED, Wanted, activation_named, added, data_types


class Arguments(NamedTuple):
    """The arrays of a call, as the caller gave them or as `Foreign`; None for what was not given."""

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


def arguments(
    a: Any,
    b: Any,
    out: Any,
    bias: Any,
    activation: str | None,
    residual: Any,
    alpha: float,
    beta: float,
    c: Any,
    scale_a: Any,
    scale_b: Any,
    out_dtype: Any,
) -> tuple[Arguments, Scalars]:
    """With a residual as c, a c that is not read left out, and scales that are plain numbers in alpha."""
    if c is not None or residual is not None or beta != 0:
        beta = added(c, residual, beta)
        if beta == 0:
            same_shape("c", c.shape, result_shape(a.shape, b.shape))
            c = None
        elif residual is not None:
            c = residual
    if scale_a is not None and isinstance(scale_a, Real):
        alpha, scale_a = alpha * float(scale_a), None
    if scale_b is not None and isinstance(scale_b, Real):
        alpha, scale_b = alpha * float(scale_b), None
    dest = "" if out_dtype is None else dtype_name(out_dtype)
    return Arguments(a, b, c, bias, scale_a, scale_b, out), Scalars(activation, alpha, beta, dest)


def wanted_of(seen: Arguments, scalars: Scalars, tf32: bool = False) -> tuple[tuple[int, ...], Wanted]:
    """The result's shape, and what is computed. Raises TypeError for data types, ValueError for everything else."""
    shape = result_shape(seen.a.shape, seen.b.shape)
    for name, fit in (("c", shape), ("out", shape), ("bias", shape[-1:])):
        if (x := getattr(seen, name)) is not None:
            same_shape(name, x.shape, fit)
    if seen.out is not None and seen.out.read_only:
        raise ValueError("out must not be written; give a writeable array")
    typed = {name: getattr(seen, name) for name in ("a", "b", "c", "bias", "out")}
    data, dest = data_types(tuple((name, x.dtype) for name, x in typed.items() if x is not None), scalars.dest)
    scaled = _has_scales(seen)
    if scaled and data not in SCALED:
        raise TypeError(f"scales are for float8 operands, a is {seen.a.dtype}; give alpha")
    for name in ("alpha", "beta"):
        scalar(name, getattr(scalars, name), data)
    activation = activation_named(scalars.activation)
    return shape, Wanted(
        data, dest, seen.c is not None, seen.bias is not None, activation, scaled, tf32 and data == "s"
    )


def call_of(seen: Arguments, scalars: Scalars, wanted: Wanted) -> Call[Matrices]:
    """The call with its matrices as batches; `out` is there."""
    batch = seen.out.shape[0] if len(seen.out.shape) == 3 else 1
    data, dest = np.dtype(wanted.operands), np.dtype(wanted.result)
    extra = {"Bias": (seen.bias, dest), "ScaleA": (seen.scale_a, _SCALE), "ScaleB": (seen.scale_b, _SCALE)}
    return Call(
        a=_matrices(seen.a, data).batch(batch),
        b=_matrices(seen.b, data).batch(batch),
        c=None if seen.c is None else _matrices(seen.c, dest).batch(batch),
        out=_matrices(seen.out, dest).batch(batch),
        alpha=float(scalars.alpha),
        beta=float(scalars.beta),
        wanted=wanted,
        extra={name: _matrices(x, dtype) for name, (x, dtype) in extra.items() if x is not None},
    )


_SCALE = np.dtype(np.float32)


def _matrices(x: Foreign, dtype: np.dtype[Any]) -> Matrices:
    return Matrices(x.address, dtype, x.shape, x.strides)


def _has_scales(seen: Arguments) -> bool:
    for name in ("scale_a", "scale_b"):
        scale = getattr(seen, name)
        if scale is not None and (scale.count != 1 or scale.dtype != _SCALE.name):
            raise ValueError(f"{name} is {scale.dtype} of shape {scale.shape}; it is one float32")
    return seen.scale_a is not None or seen.scale_b is not None
