"""The loops of a matched operation in IREE's tuning specs: which loops are rows, columns and batch, and their sizes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .mlir_tokens import TokenTree

GENERIC = "linalg.generic"


class LeftOutError(Exception):
    """Why a matcher does not describe one operation of a fixed size that we can read."""


@dataclass(frozen=True, slots=True)
class OperationLoops:
    """Numbers of the loops over the batch, the rows and the columns of D."""

    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GenericOperation:
    """A product of fixed size, from the body of a matcher that spells its operation out."""

    m: int
    n: int
    k: int
    batch: int
    operand_type: str
    result_type: str


def operation_loops(tree: TokenTree, among: range) -> OperationLoops:
    """The loops by the affine maps of A, B and D. Raises LeftOutError unless there are three maps."""
    lhs, rhs, output = _maps(tree, among)
    of_lhs, of_rhs = set(sum(lhs, ())), set(sum(rhs, ()))
    found = tuple(dict.fromkeys(sum(output, ())))
    return OperationLoops(
        tuple(loop for loop in found if loop in of_lhs and loop in of_rhs),
        tuple(loop for loop in found if loop in of_lhs and loop not in of_rhs),
        tuple(loop for loop in found if loop in of_rhs and loop not in of_lhs),
    )


def generic_operation(tree: TokenTree, part: range) -> GenericOperation | None:
    """The `linalg.generic` of a matcher as a product; None for a matcher without one. K is the product of the loops
    that D does not have. Raises LeftOutError for several operations, and for tensors whose shapes are not fixed."""
    found = list(tree.found(GENERIC, part))
    if not found:
        return None
    if len(found) > 1:
        raise LeftOutError(f"it matches {len(found)} operations together")
    rest = range(found[0], part.stop)
    tensors = [_tensor(tree, index) for word in ("ins", "outs") for index in _operands(tree, word, rest)]
    maps = _maps(tree, rest)
    if len(tensors) != len(maps):
        raise LeftOutError(f"{len(tensors)} tensors for {len(maps)} maps")
    sizes: dict[int, int] = {}
    for results, (shape, _) in zip(maps, tensors, strict=True):
        if len(results) != len(shape):
            raise LeftOutError("a map has another rank than its tensor")
        sizes |= {loops[0]: size for loops, size in zip(results, shape, strict=True) if len(loops) == 1}
    used = set(sum((sum(results, ()) for results in maps), ()))
    if used - set(sizes):
        raise LeftOutError(f"the size of loop d{min(used - set(sizes))} is not fixed")
    loops = operation_loops(tree, rest)
    inner = used - {*loops.batch, *loops.rows, *loops.columns}
    parts: Sequence[Sequence[int]] = (loops.rows, loops.columns, tuple(inner), loops.batch)
    m, n, k, batch = (math.prod(sizes[loop] for loop in loop_group) for loop_group in parts)
    if min(m, n, k, batch) < 1:
        raise tree.error(found[0], "a tensor of size 0")
    return GenericOperation(m, n, k, batch, tensors[0][1], tensors[-1][1])


def _maps(tree: TokenTree, among: range) -> list[list[tuple[int, ...]]]:
    """For each of the three operands, the loops in each of its indices."""
    value = tree.value("indexing_maps", among)
    found = list(tree.found("affine_map", value or range(0)))
    if len(found) != 3:
        raise LeftOutError("it has no indexing_maps of three operands")
    return [_results(tree, index + 1) for index in found]


def _results(tree: TokenTree, opener: int) -> list[tuple[int, ...]]:
    """The results of an affine map, each as a tuple of its loops. A scaled or shifted loop is in its tuple twice, since
    the size of such an index is not the loop's size."""
    if opener not in tree.closers:
        raise tree.error(opener - 1, "affine_map without its map")
    arrow = tree.next_of(("->",), tree.inside(opener))
    if arrow is None:
        raise tree.error(opener, "an affine map without an arrow")
    results: list[tuple[int, ...]] = [()]
    for index in range(arrow + 1, tree.closers[opener]):
        word = tree.tokens[index].text
        if word == ",":
            results.append(())
        elif re.fullmatch(r"d[0-9]{1,3}", word):
            results[-1] += (int(word[1:]),)
        elif word not in "()":
            results[-1] += results[-1][-1:]
    return [loops for loops in results if loops]


def _operands(tree: TokenTree, word: str, rest: range) -> list[int]:
    """The indices of the tensor types in `ins(...)` or `outs(...)`."""
    start = next((index for index in tree.found(word, rest) if index + 1 in tree.closers), None)
    if start is None:
        raise LeftOutError(f"its operation has no {word}")
    return list(tree.found("tensor", tree.inside(start + 1)))


def _tensor(tree: TokenTree, index: int) -> tuple[tuple[int, ...], str]:
    """Shape and element type."""
    text = "".join(tree.tokens[token].text for token in tree.inside(index + 1)) if index + 1 in tree.closers else ""
    found = re.fullmatch(r"((?:[0-9]{1,12}x)*)([a-z][A-Za-z0-9]*)", text)
    if not found:
        raise LeftOutError(f"a tensor of {text[:40] or 'nothing'} has no fixed shape")
    return tuple(int(size) for size in found[1].split("x")[:-1]), found[2]
