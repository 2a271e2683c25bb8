"""Ways to hand a row- or column-major product to the column-major problem types that there are.

The transpose of a row-major matrix is column-major in the same memory, and D' = B' A'. So every product is two
problems: D = A B of M x N, and D' = B' A' of N x M, each with the transposes that the arrays' layouts ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tunesmith.problems.gemm import is_interleaved
from tunesmith.records import Configuration, Problem, ProblemType

from ._arrays import Array, Stored, leading_dimension, stored
from ._call import Call

Layout = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """One problem type, with the product or its transpose. `copied` counts the bytes of arrays that do not fit it."""

    type: ProblemType
    swapped: bool
    one_by_one: bool
    copied: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A problem with the storage of its operands. `finish` is where D goes when `d` is not the caller's memory."""

    problem: Problem
    a: Stored
    b: Stored
    c: Stored | None
    d: Stored
    target: Array


def layout(call: Call) -> Layout:
    """All that `best_way` looks at in a call's arrays: calls with the same layout go the same way."""
    arrays = (call.a, call.b, call.out) if call.c is None else (call.a, call.b, call.out, call.c)
    apart = tuple(np.may_share_memory(call.out, x) for x in arrays if x is not call.out)
    native = call.out.dtype.isnative
    return call.precision, apart, native, *((x.shape, x.strides, x.flags.aligned) for x in arrays)


def best_way(call: Call, types: Iterable[ProblemType]) -> Way | None:
    """The way with the fewest launches, then the fewest bytes to copy; None where no type can do it."""
    return min(
        _ways(call, types), key=lambda way: (way.one_by_one, way.copied, way.type.fields.flag("Batched")), default=None
    )


def bound(call: Call, way: Way) -> Bound:
    """The problem that a call is in this way; arrays that do not fit are copied."""
    fields = way.type.fields
    a, b, c, d = _oriented(call, way.swapped)
    inside = is_interleaved(way.type)
    of_a = stored(a, fields.flag("TransposeA"), inside)
    of_b = stored(b, fields.flag("TransposeB"), inside)
    of_c = None if c is None else stored(c, transposed=False, interleaved=inside)
    of_d = (
        stored(d, transposed=False, interleaved=inside)
        if _writable_in_place(call, d, inside)
        else _blank_like(d, inside)
    )
    sizes = {"M": d.shape[1], "N": d.shape[2], "Batch": d.shape[0], "K": a.shape[2]}
    leading = tuple(one.leading_dimension for one in (of_d, of_c or of_d, of_a, of_b))
    natural = (
        sizes["M"],
        sizes["M"],
        sizes["K"] if fields.flag("TransposeA") else sizes["M"],
        sizes["N"] if fields.flag("TransposeB") else sizes["K"],
    )
    shape = tuple(sizes[index] for index in way.type.indices)
    problem = _problem(way.type, shape, () if leading == natural else leading, call.alpha, call.beta)
    return Bound(problem, of_a, of_b, of_c, of_d, d)


@lru_cache(maxsize=1024)
def _problem(kind: ProblemType, sizes: tuple[int, ...], leading: tuple[int, ...], alpha: float, beta: float) -> Problem:
    return Problem(kind, sizes, leading, Configuration({"alpha": alpha, "beta": beta}))


def take(result: Bound) -> None:
    """Move D to where the caller wants it, unless it was written there."""
    if not result.d.in_place:
        batch, m, n = result.target.shape
        if result.d.step > 1:
            result.target[...] = result.d.storage.reshape((n, m, batch)).T
        else:
            result.target[...] = result.d.storage.reshape((batch, n, m)).swapaxes(1, 2)


def _ways(call: Call, types: Iterable[ProblemType]) -> Iterator[Way]:
    for kind in types:
        fields = kind.fields
        if fields.word("DataType") != call.precision or (call.c is not None and not fields.flag("UseBeta")):
            continue
        one_by_one = call.out.shape[0] > 1 and not fields.flag("Batched")
        part = call.matrix(0) if one_by_one else call
        for swapped in (True, False):
            yield Way(kind, swapped, one_by_one, _copied(part, kind, swapped))


def _copied(call: Call, kind: ProblemType, swapped: bool) -> int:
    a, b, c, d = _oriented(call, swapped)
    reads = [(a, kind.fields.flag("TransposeA")), (b, kind.fields.flag("TransposeB"))]
    if c is not None:
        reads.append((c, False))
    inside = is_interleaved(kind)
    copied = sum(x.nbytes for x, transposed in reads if leading_dimension(x, transposed, inside) is None)
    return copied + (0 if _writable_in_place(call, d, inside) else d.nbytes)


def _oriented(call: Call, swapped: bool) -> tuple[Array, Array, Array | None, Array]:
    if not swapped:
        return call.a, call.b, call.c, call.out
    c = None if call.c is None else call.c.swapaxes(1, 2)
    return call.b.swapaxes(1, 2), call.a.swapaxes(1, 2), c, call.out.swapaxes(1, 2)


def _writable_in_place(call: Call, d: Array, interleaved: bool) -> bool:
    """D has the problem's layout, and no operand lies where it is written."""
    apart = not any(np.may_share_memory(d, x) for x in (call.a, call.b, call.c) if x is not None)
    return apart and leading_dimension(d, transposed=False, interleaved=interleaved) is not None and d.dtype.isnative


def _blank_like(d: Array, interleaved: bool) -> Stored:
    step = d.shape[0] if interleaved else 1
    length = d.shape[1] * step
    return Stored(np.empty(d.size, d.dtype.newbyteorder("=")), length, length, in_place=False, step=step)
