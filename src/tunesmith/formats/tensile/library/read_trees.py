"""Reads the regions of a library logic of decision trees."""

from __future__ import annotations

from typing import Any

from tunesmith.problems import most_similar

from .contraction import ContractionType
from .forest import COMPOUND, CONDITIONS, FACTORS, INDEXED_FEATURES, NO, OF_SIZES, YES, single
from .marked_yaml import Located
from .records import RegionCondition, SolutionTree, TreeFeature, TreeNode, TreeRegion

_LARGEST = 2**64 - 1


def read_regions(node: Located, problem_type: ContractionType, solutions: int) -> tuple[TreeRegion, ...]:
    """Every region, in the file's order. Raises UserError for trees that lead nowhere or in a circle."""
    regions = tuple(_region(item, problem_type, solutions) for item in node.items())
    if not regions:
        raise node.wrong("there is no region", "a library of decision trees has at least one")
    return regions


def _region(node: Located, problem_type: ContractionType, solutions: int) -> TreeRegion:
    features = tuple(_feature(item, problem_type) for item in node.need("features").items())
    fallback = node.get("fallback")
    return TreeRegion(
        tuple(_condition(item, problem_type) for item in node.need("region").items()),
        features,
        tuple(_tree(item, len(features), solutions) for item in node.need("trees").items()),
        fallback.whole(0, solutions - 1) if fallback is not None and fallback.value is not None else None,
    )


def _feature(node: Located, problem_type: ContractionType) -> TreeFeature:
    kind = node.need("type")
    name = kind.word()
    if name in INDEXED_FEATURES:
        counts = {
            "FreeSizeA": len(problem_type.free_a),
            "FreeSizeB": len(problem_type.free_b),
            "BatchSize": max(len(problem_type.batch), 1),
            "BoundSize": len(problem_type.summed),
        }
        return TreeFeature(name, _index(node, counts[name]))
    if name not in FACTORS:
        raise _unknown(kind, "feature", (*INDEXED_FEATURES, *FACTORS))
    if not problem_type.free_a or not problem_type.free_b:
        raise kind.wrong("A and B have no free size each", "take features of sizes that the type has")
    return TreeFeature(name, factors=_factors(node, FACTORS[name]))


def _factors(node: Located, names: tuple[str, ...]) -> dict[str, float]:
    """The factors of a feature: one number, or a mapping of several; in single precision."""
    if not names:
        return {}
    value = node.need("value")
    found = {names[0]: value} if len(names) == 1 else {name: value.need(name) for name in names}
    # The single factor of Tile1Granularity is the inverse of the tile's second edge, whatever it is called here.
    factors = {name: part.number() for name, part in found.items()}
    for name, factor in factors.items():
        if not 1e-30 < factor < 1e30:
            raise value.wrong(f"{name} {factor} is no factor", "give a positive number")
    return {name: single(factor) for name, factor in factors.items()}


def _tree(node: Located, features: int, solutions: int) -> SolutionTree:
    items = node.need("tree").items()
    if not items:
        raise node.wrong("the tree has no node", "remove the tree, or give it a node")
    nodes = tuple(_node(item, index, len(items), features) for index, item in enumerate(items))
    return SolutionTree(node.need("solution").whole(0, solutions - 1), nodes)


def _node(node: Located, index: int, count: int, features: int) -> TreeNode:
    return TreeNode(
        node.need("featureIdx").whole(0, features - 1),
        single(node.need("threshold").number()),
        _next(node.need("nextIdxLTE"), index, count),
        _next(node.need("nextIdxGT"), index, count),
    )


def _next(node: Located, index: int, count: int) -> int:
    following = node.whole(YES, count - 1)
    if following not in (NO, YES) and following <= index:
        raise node.wrong(
            f"{following} leads back from node {index}", f"name a later node, {NO} for no or {YES} for yes"
        )
    return following


def _condition(node: Located, problem_type: ContractionType) -> RegionCondition:
    kind = node.need("type")
    name = kind.word()
    if name not in CONDITIONS:
        raise _unknown(kind, "condition", tuple(CONDITIONS))
    if name in COMPOUND:
        value = node.need("value")
        # The one part of a Not may stand without a list.
        parts = [value] if name == "Not" and isinstance(value.value, dict) else value.items()
        if name == "Not" and len(parts) != 1:
            raise value.wrong(f"Not has {len(parts)} parts", "give it one")
        return RegionCondition(name, inner=tuple(_condition(part, problem_type) for part in parts))
    if name == "TruePred":
        return RegionCondition(name)
    index = _index(node, problem_type.index_count) if name in OF_SIZES else 0
    return RegionCondition(name, index, _value(name, node.need("value")))


def _value(name: str, node: Located) -> Any:
    if name == "SizeInRange":
        ends = {key: node.get(key) for key in ("min", "max")}
        low = ends["min"].whole(0, _LARGEST) if ends["min"] is not None else 0
        high = ends["max"].whole(0, _LARGEST) if ends["max"] is not None else _LARGEST
        node.mapping()
        return low, high
    return node.whole(1 if name.endswith("Multiple") else 0, _LARGEST)


def _index(node: Located, count: int) -> int:
    found = node.get("index")
    return 0 if found is None else found.whole(0, count - 1)


def _unknown(node: Located, what: str, known: tuple[str, ...]) -> Exception:
    similar = most_similar(node.word(), known)
    remedy = f"did you mean {similar}?" if similar else f"there are {', '.join(known)}"
    return node.wrong(f"there is no {what} {node.word()}", remedy)
