"""Ways to hand a row- or column-major product to the column-major problem types that there are.

The transpose of a row-major matrix is column-major in the same memory, and D' = B' A'. So every product is two
problems: D = A B of M x N, and D' = B' A' of N x M, each with the transposes that the arrays' layouts ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tunesmith.library.arrays._matrices import Array, Matrices, Stored, X, leading_dimension, stored
from tunesmith.logic import Logic
from tunesmith.problems.gemm import is_interleaved
from tunesmith.records import Configuration, Problem, ProblemType

from ._call import Call
from ._request import Wanted, is_tf32

Layout = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """One problem type, with the product or its transpose. `copied` counts the bytes of arrays that do not fit it.

    `done` is how much of what is wanted problems of the type are; the rest follows the product.
    """

    type: ProblemType
    swapped: bool
    one_by_one: bool
    copied: int
    done: Wanted


@dataclass(frozen=True, slots=True)
class Bound:
    """A problem with the storage of its operands. `finish` is where D goes when `d` is not the caller's memory."""

    problem: Problem
    reads: Mapping[str, Array]
    d: Stored
    target: Array


def layout(call: Call[Array]) -> Layout:
    """All that `best_way` looks at in a call's arrays: calls with the same layout go the same way."""
    arrays = (call.a, call.b, call.out) if call.c is None else (call.a, call.b, call.out, call.c)
    apart = tuple(np.may_share_memory(call.out, x) for x in arrays if x is not call.out)
    native = call.out.dtype.isnative
    return call.wanted, apart, native, *((x.shape, x.strides, x.flags.aligned) for x in arrays)


def best_way(call: Call[X], logics: Mapping[ProblemType, Logic]) -> Way | None:
    """The way with the fewest launches, then the fewest bytes to copy; of all that is wanted if any type has it, else
    of the product alone. None where no type can do it.

    A vector lies in rows and in columns, so several ways may be as good: then the one whose logic knows the size or
    whose choice ran nearest to it, and last the one that reads the result in rows, as torch and NumPy lay it out.
    """
    for wanted in call.wanted.attempts:
        ways = list(_ways(call.only(wanted), logics))
        least = min(map(_cost, ways), default=None)
        level = [way for way in ways if _cost(way) == least]
        if len(level) > 1:
            return min(level, key=lambda way: (logics[way.type].choose(_sizes(call, way)).distance, not way.swapped))
        if level:
            return level[0]
    return None


def bound(call: Call[Array], way: Way) -> Bound:
    """The problem that a call is in this way; arrays that do not fit are copied."""
    fields = way.type.fields
    a, b, c, d = oriented(call, way.swapped)
    inside = is_interleaved(way.type)
    of_a = stored(a, fields.flag("TransposeA"), inside)
    of_b = stored(b, fields.flag("TransposeB"), inside)
    of_c = None if c is None else stored(c, transposed=False, interleaved=inside)
    of_d = (
        stored(d, transposed=False, interleaved=inside)
        if writable_in_place(call, d, inside)
        else _blank_like(d, inside)
    )
    leading = tuple(one.leading_dimension for one in (of_d, of_c or of_d, of_a, of_b))
    reads = {"A": of_a.storage, "B": of_b.storage, **({"C": of_c.storage} if of_c else {}), **call.extra}
    return Bound(problem_of(call, way, leading), reads, of_d, d)


def problem_of(call: Call[X], way: Way, leading: tuple[int, ...]) -> Problem:
    """The problem that a call is in this way, with leading dimensions of D, C, A and B."""
    fields = way.type.fields
    a, _, _, d = oriented(call, way.swapped)
    m, n, k = d.shape[1], d.shape[2], a.shape[2]
    natural = m, m, k if fields.flag("TransposeA") else m, n if fields.flag("TransposeB") else k
    return _problem(way.type, _sizes(call, way), () if leading == natural else leading, call.alpha, call.beta)


def _sizes(call: Call[X], way: Way) -> tuple[int, ...]:
    """As the problem type names them."""
    rows, columns, batch, k = call.sizes
    m, n = (columns, rows) if way.swapped else (rows, columns)
    named = {"M": m, "N": n, "Batch": batch, "K": k}
    return tuple(named[index] for index in way.type.indices)


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


def _ways(call: Call[X], types: Iterable[ProblemType]) -> Iterator[Way]:
    for kind in types:
        if not call.wanted.served_by(kind):
            continue
        one_by_one = call.out.shape[0] > 1 and not kind.fields.flag("Batched")
        part = call.matrix(0) if one_by_one else call
        # A bias has a number for each row of a problem's D, and for each column of the caller's result.
        for swapped in (True,) if call.wanted.bias else (True, False):
            yield Way(kind, swapped, one_by_one, _copied(part, kind, swapped), call.wanted)


def _cost(way: Way) -> tuple[bool, int, bool, bool]:
    return way.one_by_one, way.copied, not is_tf32(way.type), way.type.fields.flag("Batched")


def _copied(call: Call[X], kind: ProblemType, swapped: bool) -> int:
    return sum(call_part(call, name).nbytes for name in misfits(call, kind, swapped))


def call_part(call: Call[X], name: str) -> X:
    """An operand by its argument's name."""
    part: X = getattr(call, name)
    return part


def columns_first(kind: ProblemType, swapped: bool) -> dict[str, bool]:
    """Of each matrix by its argument's name, whether problems of the type have its columns contiguous, or else its
    rows."""
    of_a, of_b = ("b", "a") if swapped else ("a", "b")
    a, b = (kind.fields.flag(name) == swapped for name in ("TransposeA", "TransposeB"))
    return {of_a: a, of_b: b, "c": not swapped, "out": not swapped}


def misfits(call: Call[X], kind: ProblemType, swapped: bool) -> list[str]:
    """Arguments that problems of the type cannot take as they lie."""
    a, b, c, d = oriented(call, swapped)
    inside = is_interleaved(kind)
    of_a, of_b = ("b", "a") if swapped else ("a", "b")
    transposes = {of_a: kind.fields.flag("TransposeA"), of_b: kind.fields.flag("TransposeB"), "c": False}
    read: Mapping[str, X | None] = {of_a: a, of_b: b, "c": c}
    found: list[str] = [
        name for name, x in read.items() if x is not None and leading_dimension(x, transposes[name], inside) is None
    ]
    return found if writable_in_place(call, d, inside) else [*found, "out"]


def leading_dimensions(call: Call[Matrices], way: Way) -> tuple[int, ...]:
    """Of D, C, A and B, none of which is a misfit."""
    fields, inside = way.type.fields, is_interleaved(way.type)
    a, b, c, d = oriented(call, way.swapped)
    asked = ((d, False), (d if c is None else c, False), (a, fields.flag("TransposeA")), (b, fields.flag("TransposeB")))
    return tuple(leading_dimension(x, transposed, inside) or 0 for x, transposed in asked)


def oriented(call: Call[X], swapped: bool) -> tuple[X, X, X | None, X]:
    """A, B, C and D of the problem."""
    if not swapped:
        return call.a, call.b, call.c, call.out
    c = None if call.c is None else call.c.swapaxes(1, 2)
    return call.b.swapaxes(1, 2), call.a.swapaxes(1, 2), c, call.out.swapaxes(1, 2)


def writable_in_place(call: Call[X], d: X, interleaved: bool) -> bool:
    """D has the problem's layout, and no operand lies where it is written."""
    lies_so = leading_dimension(d, transposed=False, interleaved=interleaved) is not None
    if isinstance(d, Matrices):
        return lies_so  # what is found out holds for other addresses too: overlaps are looked for at each call
    reads: list[Any] = [call.a, call.b, call.c, *call.extra.values()]
    return lies_so and d.dtype.isnative and not any(np.may_share_memory(d, x) for x in reads if x is not None)


def _blank_like(d: Array, interleaved: bool) -> Stored:
    step = d.shape[0] if interleaved else 1
    length = d.shape[1] * step
    return Stored(np.empty(d.size, d.dtype.newbyteorder("=")), length, length, in_place=False, step=step)
