"""Reads the solutions of a library logic. Parameters that selection asks are checked, all others are kept as they
are."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from tunesmith.problems import Mistakes, most_similar

from . import assertions
from .contraction import ContractionType, read_type
from .marked_yaml import Located, MarkedDict
from .records import LoggedSolution

DERIVE = "derive"
"""The ProblemType of a solution that has the file's."""

WHOLE = ("GlobalLoadVectorWidthA", "GlobalLoadVectorWidthB", "GlobalSplitU", "MinKForGSU", "DepthU", "MacroTile0",
         "MacroTile1", "StreamK")  # fmt: skip
"""Parameters that must be whole numbers if a solution has them, since limits follow from them."""

_LARGEST = 2**31 - 1


def read_solutions(node: Located, problem_type: ContractionType, type_content: Any) -> tuple[LoggedSolution, ...]:
    """Every solution. Raises UserError for solutions of another type, and for assertions that are not known.

    `type_content` is what the file has for its problem type.
    """
    mistakes = Mistakes()
    read = mistakes.each(lambda pair: _solution(*pair, problem_type, type_content), enumerate(node.items()))
    mistakes.tell()
    if not read:
        raise node.wrong("there is no solution", "a library logic has at least one")
    return tuple(read)


def _solution(index: int, node: Located, problem_type: ContractionType, type_content: Any) -> LoggedSolution:
    content = node.mapping()
    own_type = node.get("ProblemType")
    if own_type is not None and own_type.value not in (DERIVE, type_content):
        other = read_type(own_type)
        if other != problem_type:
            what = f"the solution is of {other.name}, the file of {problem_type.name}"
            raise own_type.wrong(what, f"remove the solution, or write {DERIVE}")
    for key in content:
        if not isinstance(key, str):
            raise node.wrong(f"{key} is no parameter", "give the name of a parameter")
        if key.startswith("Assert"):
            _check_assertion(node, key, problem_type)
    for key in WHOLE:
        if content.get(key) is not None:
            node.need(key).whole(-1, _LARGEST)
    own_index = node.get("SolutionIndex")
    parameters = {key: value for key, value in content.items() if key != "ProblemType"}
    return LoggedSolution(
        index,
        _name(node, problem_type, index),
        MappingProxyType(parameters),
        own_index.whole(0, _LARGEST) if own_index is not None and own_index.value is not None else None,
        node.line,
    )


def _name(node: Located, problem_type: ContractionType, index: int) -> str:
    """The file's name of the solution; without one, the type and the macro tile, or the index."""
    found = node.get("SolutionNameMin")
    if found is not None and isinstance(found.value, str) and found.value:
        return found.value
    content = node.mapping()
    edges = [content.get(key) for key in ("MacroTile0", "MacroTile1", "DepthU")]
    tile = "x".join(map(str, edges)) if all(isinstance(edge, int) for edge in edges) else ""
    return f"{problem_type.name}_MT{tile}" if tile else f"{problem_type.name}_solution{index}"


def _check_assertion(node: Located, key: str, problem_type: ContractionType) -> None:
    """Raises UserError for an assertion that is not known, or whose value it cannot have."""
    found = node.need(key)
    if key not in assertions.ASSERTIONS:
        # A choice that passes over an assertion would be a wrong one.
        similar = most_similar(key, assertions.ASSERTIONS)
        raise found.wrong("there is no such assertion", f"did you mean {similar}?" if similar else "remove it")
    if key in assertions.MULTIPLES:
        found.whole(1, _LARGEST)
    elif key in assertions.SIZES:
        least = 1 if key == "AssertSizeMultiple" else 0
        _check_by_index(found, problem_type.index_count, least)
    elif key in assertions.STRIDES:
        tensors = {"A": len(problem_type.a), "B": len(problem_type.b)}
        _check_by_index(found, tensors.get(assertions.STRIDES[key], problem_type.c_count), 0)
    elif key in assertions.INTENSITIES or key in assertions.SCALARS:
        if found.value not in (None, False):
            found.number()
    elif key == assertions.C_EQUALS_D:
        found.flag()


def _check_by_index(node: Located, count: int, least: int) -> None:
    """An assertion for some of `count` indices: whole numbers by index, where -1 asks nothing."""
    if not isinstance(node.value, MarkedDict):
        if node.value in (None, False) or node.value == []:
            return
        node.mapping()
    for index, value in node.mapping().items():
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count:
            raise node.wrong(f"there is no index {index}", f"give an index from 0 to {count - 1}")
        if value != -1:
            Located(value, node.file, node.line, f"{node.name}[{index}]").whole(least, 2**63 - 1)
