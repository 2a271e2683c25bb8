"""Reads the table of exact sizes and the range rules of a library logic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tunesmith.problems import shortened

from .contraction import LARGEST_SIZE, ContractionType
from .marked_yaml import Located, MarkedList
from .records import Distance, ExactRow, RangeRule

LEADING = ("LDD", "LDC", "LDA", "LDB")
"""What a row may have behind its sizes."""
DIVIDING = (Distance.RATIO, Distance.JSD, Distance.GRID)
"""Distances that divide by a row's sizes."""


def index_order(node: Located, problem_type: ContractionType) -> tuple[int, ...]:
    """The order in which range rules ask for the sizes: every index once."""
    count = problem_type.index_count
    order = tuple(item.whole(0, count - 1) for item in node.items())
    if sorted(order) != list(range(count)):
        names = ", ".join(problem_type.size_names)
        raise node.wrong(f"{list(order)} is no order of the {count} sizes {names}", "name each position once")
    return order


def read_rows(node: Located, problem_type: ContractionType, solutions: int, distance: Distance) -> tuple[ExactRow, ...]:
    """The rows `[[sizes], [solution, speed]]`. Raises UserError at the first row that is wrong."""
    if node.value is None:
        return ()
    table, least = node.sequence(), 1 if distance in DIVIDING else 0
    has_speed = distance is not Distance.GRID
    counts = (problem_type.index_count, problem_type.index_count + len(LEADING))
    return tuple(
        _row(
            Located(row, node.file, table.line_of(index), f"{node.name}[{index}]"), counts, solutions, least, has_speed
        )
        for index, row in enumerate(table)
    )


def _row(node: Located, counts: tuple[int, int], solutions: int, least: int, has_speed: bool) -> ExactRow:
    parts = node.sequence()
    if len(parts) != 2 or not isinstance(parts[0], MarkedList) or not isinstance(parts[1], MarkedList):
        raise node.wrong("is no row", "write [[sizes], [solution, speed]]")
    sizes, found = parts
    if len(sizes) not in counts:
        what = f"{shortened(tuple(sizes))} has {len(sizes)} numbers"
        raise node.wrong(what, f"give {counts[0]} sizes, and no more or all of {', '.join(LEADING)}")
    for size in sizes:
        if type(size) is not int or not least <= size <= LARGEST_SIZE:
            raise node.wrong(f"{shortened(size)} is no size", f"give a whole number from {least}")
    if not 1 <= len(found) <= 2 or (has_speed and len(found) < 2):
        raise node.wrong(f"{shortened(tuple(found))} does not name a solution and its speed", "write [solution, speed]")
    solution = found[0]
    if type(solution) is not int or not 0 <= solution < solutions:
        what = f"{shortened(solution)} is no solution of the file"
        raise node.wrong(what, f"give an index from 0 to {solutions - 1}")
    speed = Located(found[1], node.file, node.line, f"{node.name}, speed").number() if len(found) == 2 else 0.0
    return ExactRow(tuple(sizes[: counts[0]]), tuple(sizes[counts[0] :]), solution, speed, node.line)


def read_ranges(node: Located, order: Sequence[int], solutions: int) -> tuple[RangeRule, ...]:
    """Rules `[[threshold, rules], ...]`, nested once for each index of `order`; the innermost have a solution's index.
    The last threshold of a level is -1: no end."""
    return _level(node, len(order), solutions)


def _level(node: Located, depth: int, solutions: int) -> tuple[RangeRule, ...]:
    rules: list[RangeRule] = []
    for item in node.items():
        if len(item.sequence()) != 2:
            raise item.wrong("is no rule", "write [threshold, rules], or [threshold, solution] for the last size")
        threshold, inner = item.item(0).whole(-1, LARGEST_SIZE), item.item(1)
        before = rules[-1].threshold if rules else 0
        if rules and (before == -1 or 0 <= threshold <= before):
            raise item.wrong(f"the threshold {threshold} comes after {before}", "let thresholds grow; -1 is the last")
        content: Any = inner.whole(0, solutions - 1) if depth == 1 else _level(inner, depth - 1, solutions)
        rules.append(RangeRule(threshold, content))
    if not rules:
        raise node.wrong("there is no rule", "write [threshold, rules]")
    return tuple(rules)
