"""A call of `matmul`, checked: what NumPy would refuse is refused before anything is chosen or launched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Generic

import numpy as np
from numpy.typing import ArrayLike

from tunesmith.library.arrays._matrices import Array, X, blank, matrix
from tunesmith.problems.gemm import DATA_TYPES

from ._request import Wanted, activation_named, added, data_types


@dataclass(frozen=True)
class Call(Generic[X]):
    """D = activation(alpha A B + bias) + beta C with every matrix as batch x rows x columns.

    `extra` holds what else kernels read, by their operands' names; what of the epilogue is `wanted`, c included, may be
    left out of the call where it follows the product.
    """

    a: X
    b: X
    c: X | None
    out: X
    alpha: float
    beta: float
    wanted: Wanted
    extra: Mapping[str, X] = field(default_factory=dict)

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Rows and columns of the result, batch, and the length of the sums."""
        return self.out.shape[1], self.out.shape[2], self.out.shape[0], self.a.shape[2]

    def matrix(self, place: int) -> Call[X]:
        """One matrix of the batch by itself."""
        c = None if self.c is None else matrix(self.c, place)
        return replace(self, a=matrix(self.a, place), b=matrix(self.b, place), c=c, out=matrix(self.out, place))

    def only(self, wanted: Wanted) -> Call[X]:
        """As much of the call as that says, for a result that other things follow."""
        c, beta = (self.c, self.beta) if wanted.beta else (None, 0.0)
        kept = {name: x for name, x in self.extra.items() if (wanted.bias if name == "Bias" else wanted.scaled)}
        return replace(self, c=c, beta=beta, wanted=wanted, extra=kept)


@dataclass(frozen=True)
class HostCall:
    """A call on arrays of the host. `result` is what the caller gets: `out` as he gave it, or made here."""

    call: Call[Array]
    result: Array


def checked(
    a: ArrayLike,
    b: ArrayLike,
    out: Array | None,
    alignment: int,
    *,
    c: ArrayLike | None = None,
    residual: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    activation: str | None = None,
    alpha: float = 1.0,
    beta: float = 0.0,
    scales: tuple[Any, Any] = (None, None),
    dest: str = "",
) -> HostCall:
    """The call, its result allocated if need be. Raises TypeError for data types, ValueError for everything else."""
    if out is not None and not (isinstance(out, np.ndarray) and out.flags.writeable):
        raise ValueError("out must be an array that may be written")
    given = {"a": np.asarray(a), "b": np.asarray(b)}
    beta = added(c, residual, beta)
    shape = result_shape(given["a"].shape, given["b"].shape)
    if beta != 0:
        given["c"] = np.asarray(c if residual is None else residual)
    elif c is not None:
        same_shape("c", np.shape(c), shape)
    if bias is not None:
        given["bias"] = np.asarray(bias)
        same_shape("bias", given["bias"].shape, shape[-1:])
    letters = data_types(_names(given if out is None else {**given, "out": out}), dest)
    for name, array in ("c", given.get("c")), ("out", out):
        if array is not None:
            same_shape(name, array.shape, shape)
    for name, given_scale in zip(("scale_a", "scale_b"), scales, strict=True):
        if given_scale is not None:
            alpha *= _scale(name, given_scale)
    data, result_type = (np.dtype(DATA_TYPES[letter].dtype) for letter in letters)
    native = {name: x.astype(data if name in "ab" else result_type, copy=False) for name, x in given.items()}
    batch, m, n = shape if len(shape) == 3 else (1, *shape)
    result = blank((batch, m, n), result_type, alignment).reshape(shape) if out is None else out
    call = Call(
        a=_batch(native["a"], batch),
        b=_batch(native["b"], batch),
        c=_batch(native["c"], batch) if "c" in native else None,
        out=_batch(result, batch),
        alpha=scalar("alpha", alpha, letters[0]),
        beta=scalar("beta", beta, letters[0]),
        wanted=Wanted(*letters, beta != 0, bias is not None, activation_named(activation)),
        extra={"Bias": np.ascontiguousarray(native["bias"])} if "bias" in native else {},
    )
    return HostCall(call, result)


def scalar(name: str, value: float, letter: str) -> float:
    """alpha or beta. Raises ValueError for a fraction of integers."""
    number = float(value)
    if DATA_TYPES[letter].sums == "int32" and not number.is_integer():
        raise ValueError(f"{name} is {value}; of integers it is an integer")
    return number


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


def same_shape(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """Raises ValueError where it is another one."""
    if tuple(shape) != tuple(wanted):
        raise ValueError(f"{name} has shape {tuple(shape)}, the product asks for {tuple(wanted)}")


def _batch(x: Array, length: int) -> Array:
    """A view as batch x rows x columns; one matrix repeated, without a copy, where the batch is longer."""
    matrices = x if x.ndim == 3 else x[np.newaxis]
    return matrices if matrices.shape[0] == length else np.broadcast_to(matrices, (length, *matrices.shape[1:]))


def _names(given: Mapping[str, Array]) -> tuple[tuple[str, str], ...]:
    return tuple((name, _native(array.dtype)) for name, array in given.items())


@cache
def _native(dtype: np.dtype[Any]) -> str:
    """Remembered: `dtype.name` costs more than the rest of a small call's checks."""
    return dtype.newbyteorder("=").name


def _scale(name: str, given: Any) -> float:
    if np.size(given) != 1:
        raise ValueError(f"{name} has shape {np.shape(given)}; it is one number")
    return float(np.asarray(given).reshape(()))
