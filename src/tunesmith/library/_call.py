"""A call of `matmul`, checked: what NumPy would refuse is refused before anything is chosen or launched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ._arrays import Array, blank

PRECISIONS = {"float32": "s", "float64": "d", "float16": "h"}
"""Tensile's letters for NumPy's data types."""

_BY_SIZE = {np.dtype(name).itemsize: letter for name, letter in PRECISIONS.items()}

_NATIVE = frozenset(map(np.dtype, PRECISIONS))
"""What needs no second look: `dtype.name` costs more than the rest of a small call's checks."""


@dataclass(frozen=True)
class Call:
    """D = alpha A B + beta C with every array as batch x rows x columns.

    `result` is what the caller gets: `out` as he gave it, or made here.
    """

    a: Array
    b: Array
    c: Array | None
    out: Array
    alpha: float
    beta: float
    result: Array

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Rows and columns of the result, batch, and the length of the sums."""
        return self.out.shape[1], self.out.shape[2], self.out.shape[0], self.a.shape[2]

    @property
    def precision(self) -> str:
        return _BY_SIZE[self.out.dtype.itemsize]

    def matrix(self, place: int) -> Call:
        """One matrix of the batch by itself."""
        part = slice(place, place + 1)
        c = None if self.c is None else self.c[part]
        return Call(self.a[part], self.b[part], c, self.out[part], self.alpha, self.beta, self.out[part])

    def without_product(self) -> Array:
        """The result where A or B is empty: beta C, or zeros."""
        self.out[...] = 0 if self.c is None else self.beta * self.c
        return self.result


def checked(
    a: ArrayLike, b: ArrayLike, c: ArrayLike | None, alpha: float, beta: float, out: Array | None, alignment: int
) -> Call:
    """The call, its result allocated if need be. Raises TypeError for data types, ValueError for shapes."""
    if out is not None and not (isinstance(out, np.ndarray) and out.flags.writeable):
        raise ValueError("out must be an array that may be written")
    given = {"a": np.asarray(a), "b": np.asarray(b)}
    if beta != 0:
        if c is None:
            raise ValueError("beta is not zero, so c must be given")
        given["c"] = np.asarray(c)
    elif c is not None:
        _same_shape("c", np.shape(c), _result_shape(given["a"], given["b"]))
    dtype = _data_type(given if out is None else {**given, "out": out})
    shape = _result_shape(given["a"], given["b"])
    for name, array in ("c", given.get("c")), ("out", out):
        if array is not None:
            _same_shape(name, array.shape, shape)
    native = {name: array.astype(dtype, copy=False) for name, array in given.items()}
    batch, m, n = shape if len(shape) == 3 else (1, *shape)
    result = blank((batch, m, n), dtype, alignment).reshape(shape) if out is None else out
    return Call(
        a=_batch(native["a"], batch),
        b=_batch(native["b"], batch),
        c=_batch(native["c"], batch) if "c" in native else None,
        out=_batch(result, batch),
        alpha=float(alpha),
        beta=float(beta),
        result=result,
    )


def _batch(x: Array, length: int) -> Array:
    """A view as batch x rows x columns; one matrix repeated, without a copy, where the batch is longer."""
    matrices = x if x.ndim == 3 else x[np.newaxis]
    return matrices if matrices.shape[0] == length else np.broadcast_to(matrices, (length, *matrices.shape[1:]))


def _data_type(given: dict[str, Array]) -> np.dtype[Any]:
    first, *others = (array.dtype for array in given.values())
    if first in _NATIVE and all(other is first for other in others):
        return first
    names = {name: array.dtype.newbyteorder("=").name for name, array in given.items()}
    if len(set(names.values())) > 1:
        said = ", ".join(f"{name} is {dtype}" for name, dtype in names.items())
        raise TypeError(f"all arrays must have the same data type: {said}")
    name = names["a"]
    if name not in PRECISIONS:
        raise TypeError(f"the arrays are {name}; there are kernels for {', '.join(PRECISIONS)}")
    return np.dtype(name)


def _result_shape(a: Array, b: Array) -> tuple[int, ...]:
    if a.ndim not in (2, 3) or b.ndim not in (2, 3):
        raise ValueError(f"a and b must be matrices or batches of them, not of shapes {a.shape} and {b.shape}")
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a has {a.shape[-1]} columns and b has {b.shape[-2]} rows: shapes {a.shape} and {b.shape} do not multiply"
        )
    batches = {x.shape[0] for x in (a, b) if x.ndim == 3}
    if len(batches - {1}) > 1:
        raise ValueError(f"a and b have batches of different length: shapes {a.shape} and {b.shape}")
    matrix = (a.shape[-2], b.shape[-1])
    return (next(iter(batches - {1}), 1), *matrix) if batches else matrix


def _same_shape(name: str, shape: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    if shape != wanted:
        raise ValueError(f"{name} has shape {shape}, the product has {wanted}")
