"""Matches a product of row- or column-major arrays with the available column-major problem types.

The transpose of a row-major matrix is column-major in the same memory, and D' = B' A'. So every product is two
problems: D = A B of M x N, and D' = B' A' of N x M, each with the transposes that follow from the arrays' layouts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tunesmith.logic import Logic
from tunesmith.problems.gemm import is_interleaved
from tunesmith.records import Configuration, Problem, ProblemType

from ._checked_call import CheckedCall
from ._request import GemmRequest, is_tf32


@dataclass(frozen=True, slots=True)
class LayoutMatch:
    """A problem type that computes the product, or its transpose (`swapped`).

    `one_by_one`: the type has no batch, so each matrix of the batch is a launch. `copied_bytes` is the size of the
    arrays that do not fit the type. `computed` is the part of the request that the type computes; the rest follows
    the product.
    """

    type: ProblemType
    swapped: bool
    one_by_one: bool
    copied_bytes: int
    computed: GemmRequest

    @property
    def cost(self) -> tuple[bool, int, bool, bool]:
        return self.one_by_one, self.copied_bytes, not is_tf32(self.type), self.type.fields.flag("Batched")

    @property
    def axes(self) -> dict[str, tuple[int, int, int]]:
        """The order of axes, the slowest first, that the type needs for each matrix, by argument name."""
        flags, inside = self.type.fields, is_interleaved(self.type)
        a, b = (flags.flag(name) == self.swapped for name in ("TransposeA", "TransposeB"))
        of_a, of_b = ("b", "a") if self.swapped else ("a", "b")
        by_columns = {of_a: a, of_b: b, "c": not self.swapped, "out": not self.swapped}
        return {name: _AXES[columns_contiguous, inside] for name, columns_contiguous in by_columns.items()}


_AXES = {(False, False): (0, 1, 2), (True, False): (0, 2, 1), (False, True): (1, 2, 0), (True, True): (2, 1, 0)}
"""The order of the axes of batch x rows x columns, by whether columns are contiguous and whether the batch is
interleaved."""


def best_match(
    call: CheckedCall, logics: Mapping[ProblemType, Logic], packaged: Collection[ProblemType] = ()
) -> LayoutMatch | None:
    """The match with the fewest launches, then the fewest bytes to copy: for the whole request if any type computes
    it, else for the product alone. None if no type computes the product.

    Several matches may be equally good, since a vector is contiguous both as rows and as columns, and since a type with
    beta serves a product without. Then the `packaged` types come after the caller's own. Next, a match wins whose logic
    has measured the size; then one that reads the result in rows, as torch and NumPy do, since the vendor's library is
    called so, and what is expected of it must be of that call; last, the one that has measured nearest.
    """
    for request in call.request.attempts:
        if matches := list(matches_of(call.only(request), logics)):
            least = min(match.cost for match in matches)
            cheapest = [match for match in matches if match.cost == least]
            distances = {match: _distance(call, match, logics) for match in cheapest}
            return min(cheapest, key=lambda match: _preference(match, distances[match], packaged))
    return None


def _preference(
    match: LayoutMatch, distance: float, packaged: Collection[ProblemType]
) -> tuple[bool, bool, bool, float]:
    return match.type in packaged, distance > 0, not match.swapped, distance


def closest(call: CheckedCall, kinds: Iterable[ProblemType]) -> LayoutMatch | None:
    """The match with the fewest bytes to copy, whatever was measured; among equals, one that reads the result in
    rows."""
    return min(matches_of(call, kinds), key=lambda match: (match.copied_bytes, not match.swapped), default=None)


def problem_of(call: CheckedCall, match: LayoutMatch) -> Problem:
    """The call as a problem of the match's type, with the leading dimensions of D, C, A and B. No array may be one of
    the `misfits`."""
    fields, inside = match.type.fields, is_interleaved(match.type)
    part = call.transposed() if match.swapped else call
    matrices = part.out, part.c or part.out, part.a, part.b
    transposes = False, False, fields.flag("TransposeA"), fields.flag("TransposeB")
    leading = tuple(x.leading_dimension(turned, inside) or 0 for x, turned in zip(matrices, transposes, strict=True))
    m, n, _, k = part.sizes
    natural = m, m, k if transposes[2] else m, n if transposes[3] else k
    return _problem(match.type, sizes_by(call, match), () if leading == natural else leading, call.alpha, call.beta)


def misfits(call: CheckedCall, kind: ProblemType, swapped: bool) -> list[str]:
    """The arguments whose layout the type does not allow."""
    part, inside = call.transposed() if swapped else call, is_interleaved(kind)
    names = {"a": "b", "b": "a"} if swapped else {}
    transposed = {"a": kind.fields.flag("TransposeA"), "b": kind.fields.flag("TransposeB")}
    return [
        names.get(name, name)
        for name, x in part.matrices.items()
        if x.leading_dimension(transposed.get(name, False), inside) is None
    ]


def matches_of(call: CheckedCall, kinds: Iterable[ProblemType]) -> Iterator[LayoutMatch]:
    """Every match of the call's request with one of the types."""
    for kind in kinds:
        if not call.request.served_by(kind):
            continue
        one_by_one = call.out.shape[0] > 1 and not kind.fields.flag("Batched")
        part = call.first() if one_by_one else call
        matrices = part.matrices
        # A bias has a number for each row of a problem's D, and for each column of the caller's result.
        for swapped in (True,) if call.request.bias else (True, False):
            copied_bytes = sum(matrices[name].nbytes for name in misfits(part, kind, swapped))
            yield LayoutMatch(kind, swapped, one_by_one, copied_bytes, call.request)


def _distance(call: CheckedCall, match: LayoutMatch, logics: Mapping[ProblemType, Logic]) -> float:
    """How far the nearest measured size is: 0 if the size itself was measured, infinite if none was."""
    return logics[match.type].nearest(sizes_by(call, match))[1]


def sizes_by(call: CheckedCall, match: LayoutMatch) -> tuple[int, ...]:
    """The call's sizes as the match's problem type names them."""
    rows, columns, batch, k = call.sizes
    m, n = (columns, rows) if match.swapped else (rows, columns)
    named = {"M": m, "N": n, "Batch": batch, "K": k}
    return tuple(named[index] for index in match.type.indices)


@lru_cache(maxsize=1024)
def _problem(kind: ProblemType, sizes: tuple[int, ...], leading: tuple[int, ...], alpha: float, beta: float) -> Problem:
    return Problem(kind, sizes, leading, Configuration({"alpha": alpha, "beta": beta}))
