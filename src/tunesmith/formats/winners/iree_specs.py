"""IREE's tuning specs, MLIR of the transform dialect: which configuration a matched product or convolution gets.

A spec is a sequence of matchers, each with a configuration. A matcher with fixed sizes becomes a `TunedShape`; for any
other matcher a note says why it is left out. Form: IREE's docs/website/docs/reference/tuning.md (0993695c).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from tunesmith.problems import text_of
from tunesmith.records import Configuration, UserError, Value

from .mlir_tokens import TokenTree, token_tree
from .spec_loops import GENERIC, LeftOutError, generic_operation, operation_loops
from .tuned_shape import DATA_TYPE_BYTES, TunedShape

UNKNOWN_DEVICE = "an unknown device"
_SEQUENCE, _FOREACH = "transform.named_sequence", "transform.foreach_match"
_CONTRACTION, _CONVOLUTION = "transform.iree.match.contraction", "transform.iree.match.convolution"
_RESULTS = {_CONTRACTION: 4, _CONVOLUTION: 6}
"""The least number of dimension groups of a match. A contraction has batch, m, n, k. A convolution has batch, image,
channels, filter, input channels, depth."""
_REMEDY = "give a tuning spec of IREE's, in the transform dialect"


@dataclass(frozen=True)
class SpecReading:
    """The shapes of a spec in their order, and a note on each matcher that was left out."""

    shapes: tuple[TunedShape, ...]
    notes: tuple[str, ...]


def read_spec(path: Path) -> SpecReading:
    """The tuned shapes of a spec. Raises UserError, with the line, for a text that is truncated or no spec.

    The device is the gfx name in the file's name, else the first gfx name in its text.
    """
    text = text_of(path, "MLIR", remedy=_REMEDY)
    tree = token_tree(text, str(path))
    everything = range(len(tree.tokens))
    sequences = list(tree.found(_SEQUENCE, everything))
    if not sequences:
        line = tree.tokens[0].line if tree.tokens else 1
        first = tree.tokens[0].text[:40] if tree.tokens else "nothing"
        raise UserError(f"{path}:{line}", f"no {_SEQUENCE} after {first}: another dialect", _REMEDY)
    named = re.search(r"gfx[0-9a-f]+", path.name) or re.search(r"\bgfx[0-9a-f]{3,4}\b", text)
    device = named.group() if named else UNKNOWN_DEVICE
    shapes: list[TunedShape] = []
    notes: list[str] = []
    for number, start in enumerate(sequences):
        stop = sequences[number + 1] if number + 1 < len(sequences) else len(tree.tokens)
        part = range(start, stop)
        if tree.next_of(("compilation_info", "#iree_codegen.compilation_info"), part) is None:
            continue
        name = tree.tokens[start + 1].text if start + 1 < stop else ""
        source = f"{path}:{tree.tokens[start].line}"
        try:
            shapes.append(_shape(tree, part, source, device))
        except LeftOutError as reason:
            notes.append(f"{source}: {name}: {reason}")
    return SpecReading(tuple(shapes), tuple(notes))


def _shape(tree: TokenTree, part: range, source: str, device: str) -> TunedShape:
    generic = generic_operation(tree, part)
    if generic:
        m, n, k, batch = generic.m, generic.n, generic.k, generic.batch
        kind, types = GENERIC, (generic.operand_type, generic.result_type)
    else:
        kind, (batch, m, n, k), types = _named(tree, part)
    data_type, result_type = map(_data_type, types)
    configuration = _configuration(tree, part, kind)
    rows, columns = configuration.integers("MacroTile")
    family = kind.rpartition(".")[2]
    return TunedShape(
        source, m, n, k, batch, device, data_type, result_type, "", rows, columns, configuration, family=family
    )


def _named(tree: TokenTree, part: range) -> tuple[str, tuple[int, int, int, int], tuple[str, str]]:
    """Kind, (batch, M, N, K), and the types of an operand and of D, for a matcher that names its operation."""
    match = tree.next_of(tuple(_RESULTS), part)
    if match is None:
        raise LeftOutError("it matches no contraction, convolution or linalg.generic")
    sizes, kind = _sizes(tree, part, match), tree.tokens[match].text
    types = _type_word(tree, part, "lhs_type"), _type_word(tree, part, "output_type")
    if kind == _CONTRACTION:
        batch, m, n, k = sizes[:4]
        return kind, (batch, m, n, k), types
    images, pixels, channels, window, inputs, depth = sizes[:6]
    return kind, (depth, images * pixels, channels, window * inputs), types


def _sizes(tree: TokenTree, part: range, match: int) -> list[int]:
    """The product of each dimension group's sizes, in the order of the match's results."""
    index = match - 1
    names: list[str] = []
    while index > part.start and (tree.tokens[index].text in ("=", ",") or tree.tokens[index].text.startswith("%")):
        if tree.tokens[index].text.startswith("%"):
            names.insert(0, tree.tokens[index].text)
            if tree.tokens[index - 1].text != ",":
                break
        index -= 1
    needed = _RESULTS[tree.tokens[match].text]
    if len(names) < needed:
        raise LeftOutError(f"the match gives {len(names)} groups of dimensions, {needed} are needed")
    fixed_sizes: dict[str, tuple[int, ...]] = {}
    for check in tree.found("transform.iree.match.dims_equal", part):
        if check + 3 in part:
            numbers = tree.numbers(range(check + 3, tree.closers.get(check + 3, check + 2) + 1))
            if numbers is None:
                raise tree.error(check, "dims_equal has no list of whole numbers")
            fixed_sizes[tree.tokens[check + 1].text] = numbers
    free = [
        name
        for position, name in enumerate(names[:needed])
        if name not in fixed_sizes and not _may_be_absent(tree, match, position)
    ]
    if free:
        raise LeftOutError(f"the sizes of {', '.join(free)} are not fixed")
    sizes = [math.prod(fixed_sizes.get(name, ())) for name in names]
    if min(sizes[:needed]) < 1:
        raise tree.error(match, "a dimension of size 0")
    return sizes


def _may_be_absent(tree: TokenTree, match: int, position: int) -> bool:
    """Whether a group without a size check may have no dimensions: a contraction's batch, a convolution's depth.

    A contraction's batch has dimensions if a loop is in the maps of all operands.
    """
    if tree.tokens[match].text == _CONVOLUTION:
        return position == 5
    return position == 0 and not operation_loops(tree, range(match, len(tree.tokens))).batch


def _type_word(tree: TokenTree, part: range, key: str) -> str:
    value = tree.value(key, part)
    return tree.tokens[value.start].text if value else ""


def _data_type(word: str) -> str:
    short = re.sub(r"^(f8)E.*", r"\1", word)
    if short not in DATA_TYPE_BYTES:
        raise LeftOutError(f"a data type is {word or 'absent'}")
    return short


def _configuration(tree: TokenTree, part: range, kind: str) -> Configuration:
    start = tree.next_of(("compilation_info", "#iree_codegen.compilation_info"), part)
    assert start is not None
    if start + 1 not in tree.closers:
        raise tree.error(start, "compilation_info without its attributes")
    inside = tree.inside(start + 1)
    tile = _list(tree, "workgroup", inside)
    reduction = _list(tree, "reduction", inside)
    loops = operation_loops(tree, part)
    rows = (*loops.batch, *loops.rows) if kind == _CONVOLUTION else loops.rows
    values: dict[str, Value] = {
        "MacroTile": (_tile(tile, rows), _tile(tile, loops.columns)),
        "Reduction": tuple(step for step in reduction if step),
    }
    instruction = tree.value("mma_kind", inside)
    if instruction:
        values["Instruction"] = next(
            (text for index in instruction if re.match(r"V?W?MFM?A?", text := tree.tokens[index].text)), ""
        )
    groups = tree.value("workgroup_size", inside)
    if groups and (numbers := tree.numbers(groups)):
        values["WorkGroup"] = numbers
    return Configuration({name: value for name, value in values.items() if value not in ("", ())})


def _list(tree: TokenTree, key: str, among: range) -> tuple[int, ...]:
    value = tree.value(key, among)
    if value is None:
        raise LeftOutError(f"its configuration has no {key}")
    numbers = tree.numbers(value)
    if numbers is None:
        raise tree.error(value.start, f"{key} is no list of whole numbers")
    return numbers


def _tile(tile: tuple[int, ...], loops: tuple[int, ...]) -> int:
    """Elements of a tile along some loops. Raises LeftOutError if one of the loops is not tiled."""
    sizes = [tile[loop] if loop < len(tile) else 0 for loop in loops]
    if not sizes or 0 in sizes:
        raise LeftOutError("its work-group has no tile along M or N")
    return math.prod(sizes)
