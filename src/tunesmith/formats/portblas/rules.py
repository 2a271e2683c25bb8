"""Which combinations are valid kernels: the rules of portBLAS's generator, and the rules that its kernels assert.

Limits of a device (work-items, local memory, registers) are in the kernel family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tunesmith.records import Rejection

from .combination import Combination, RuleSet

FLOAT_BYTES = 4
"""Bytes of the element type for which the original's rules are written."""

LARGEST_COMPAT_GROUP = 256
WIDTHS = (1, 2, 4, 8, 16)
"""Widths of OpenCL's vectors that have no padding in memory."""


@dataclass(frozen=True)
class CombinationRule:
    """A condition on combinations. Rejections are counted by `reason`."""

    reason: str
    holds: Callable[[Combination], bool]
    detail: Callable[[Combination], str]


def rejection(combination: Combination, mode: RuleSet) -> Rejection | None:
    """The rejection by the first rule, in the table's order, that the combination breaks; None if it is valid."""
    broken = (rule for rule in RULES[mode].get(combination.algorithm, ()) if not rule.holds(combination))
    return next((Rejection(rule.reason, rule.detail(combination)) for rule in broken), None)


def _items(c: Combination) -> int:
    return c.group[0] * c.group[1]


def _line(c: Combination) -> str:
    return f"a line of {c.cache_line} bytes is {c.cache_line / FLOAT_BYTES:g} floats"


def _elements(c: Combination) -> int:
    return c.cache_line // FLOAT_BYTES


def _vector_divides(reason: str, counted: Callable[[Combination], tuple[str, int]]) -> CombinationRule:
    return CombinationRule(
        reason,
        lambda c: counted(c)[1] % c.vector == 0,
        lambda c: f"{counted(c)[1]} {counted(c)[0]} are not whole vectors of {c.vector}",
    )


ITEM_COLUMNS = CombinationRule(
    "item columns do not divide group rows",
    lambda c: c.group[0] % c.item[1] == 0,
    lambda c: f"{c.group[0]} rows of work-items, {c.item[1]} columns in each",
)
ITEM_ROWS = CombinationRule(
    "item rows do not divide group columns",
    lambda c: c.group[1] % c.item[0] == 0,
    lambda c: f"{c.group[1]} columns of work-items, {c.item[0]} rows in each",
)
GROUP_LINES = CombinationRule(
    "group is not whole cache lines",
    # The condition is a product, since the original divides without rounding.
    lambda c: _items(c) * FLOAT_BYTES % c.cache_line == 0,
    lambda c: f"{_items(c)} work-items; {_line(c)}",
)
WHOLE_LINE = CombinationRule("cache line is not whole elements", lambda c: c.cache_line % FLOAT_BYTES == 0, _line)
WIDTH = CombinationRule(
    "no such vector",
    lambda c: c.vector in WIDTHS,
    lambda c: f"vectors of {c.vector}; there are those of {', '.join(map(str, WIDTHS))}",
)
SQUARE = CombinationRule(
    "block is not square",
    lambda c: c.group[0] * c.item[0] == c.group[1] * c.item[1],
    lambda c: f"{c.group[0] * c.item[0]} rows and {c.group[1] * c.item[1]} columns",
)
VECTOR_ROWS = _vector_divides("vector does not divide item rows", lambda c: ("rows of a work-item", c.item[0]))
VECTOR_COLUMNS = _vector_divides("vector does not divide item columns", lambda c: ("columns of a work-item", c.item[1]))
VECTOR_DEPTH = _vector_divides(
    "vector does not divide the cache line", lambda c: ("elements of a cache line", _elements(c))
)
VECTOR_BATCH = _vector_divides("vector does not divide batch items", lambda c: ("matrices of a work-item", c.batch[0]))


def _one_vector(always: bool) -> CombinationRule:
    """With full vectorisation an item is v x v elements. The original's generator requires this also for v = 1
    (`always`); the kernel does not."""
    return CombinationRule(
        "item is not one vector each way",
        lambda c: c.item == (c.vector, c.vector) or (c.vector == 1 and not always),
        lambda c: f"{c.item[0]} x {c.item[1]} elements, vectors of {c.vector}",
    )


def _if(vectorization: str, rule: CombinationRule) -> CombinationRule:
    return CombinationRule(rule.reason, lambda c: c.vectorization != vectorization or rule.holds(c), rule.detail)


def _non_local(full: CombinationRule) -> tuple[CombinationRule, ...]:
    return SQUARE, _if("partial", VECTOR_ROWS), _if("partial", VECTOR_COLUMNS), _if("full", full)


ROWS_SQUARED = CombinationRule(
    "rows squared times batch above 256",
    # Sic: the original squares the rows, where it must mean rows times columns.
    lambda c: c.batch[1] * c.group[0] ** 2 <= LARGEST_COMPAT_GROUP,
    lambda c: f"{c.batch[1]} x {c.group[0]} x {c.group[0]} are {c.batch[1] * c.group[0] ** 2}",
)
LINE_GROUP_ROWS = CombinationRule(
    "group rows do not divide the cache line",
    lambda c: _elements(c) % c.group[0] == 0,
    lambda c: f"{c.group[0]} rows of work-items; {_line(c)}",
)
LINE_GROUP_COLUMNS = CombinationRule(
    "group columns do not divide the cache line",
    lambda c: _elements(c) % c.group[1] == 0,
    lambda c: f"{c.group[1]} columns of work-items; {_line(c)}",
)

_LOCAL = (ITEM_COLUMNS, ITEM_ROWS, GROUP_LINES)

RULES: Mapping[RuleSet, Mapping[str, Sequence[CombinationRule]]] = {
    RuleSet.COMPAT: {
        "local": _LOCAL,
        "non_local": _non_local(_one_vector(always=True)),
        "interleaved": (VECTOR_BATCH, ROWS_SQUARED, VECTOR_ROWS, VECTOR_COLUMNS),
    },
    RuleSet.OURS: {
        "local": (WIDTH, WHOLE_LINE, *_LOCAL, VECTOR_ROWS, VECTOR_DEPTH),
        "non_local": (WIDTH, *_non_local(_one_vector(always=False))),
        "interleaved": (WIDTH, VECTOR_BATCH),
        "tall_skinny": (WIDTH, WHOLE_LINE, *_LOCAL, LINE_GROUP_ROWS, LINE_GROUP_COLUMNS, VECTOR_ROWS, VECTOR_DEPTH),
    },
}
"""Rules by mode and algorithm, in the order of checking. A naive kernel has no rules."""
