"""Tensile's choice by a library logic, written for clarity on the plain contents of a file.

It shares nothing with the package: another reading of the same rules. GEMMs only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

F = np.float32


def slow_choice(content: Any, sizes: list[int]) -> tuple[int | None, str]:
    """The position of the chosen solution, None for no solution, and the name of the rule."""
    file = content if isinstance(content, dict) else _as_keys(content)
    usable = [_may_run(found, file["ProblemType"], sizes) for found in file["Solutions"]]
    library = file["Library"]
    if isinstance(library, list):
        return _by_trees(library, usable, sizes)
    rows = [(row[0][: len(sizes)], row[1][0], row[1][1]) for row in library["table"]]
    distance = library.get("distance") or "Euclidean"
    if library.get("ranges"):
        exact = [row for row in rows if row[0] == sizes and usable[row[1]]]
        if exact:
            return max(exact, key=lambda row: row[2])[1], "exact"
        found = _by_ranges(library["ranges"], [sizes[index] for index in library["indexOrder"]])
        if usable[found]:
            return found, "range"
    keyed = [(_key(row, distance), solution, speed) for row, solution, speed in rows]
    keyed = sorted(keyed, key=lambda row: (row[0], -row[2] if distance != "GridBased" else 0))
    asked = _key(sizes, distance)
    search = {"Equality": _equal, "GridBased": _grid}.get(distance, _nearest)
    found_row = search(keyed, usable, asked, distance)
    if found_row is None:
        return None, "none"
    if found_row[0] == asked:
        return found_row[1], "exact"
    return found_row[1], "grid" if distance == "GridBased" else "nearest"


def least_distance(content: Any, sizes: list[int]) -> float | None:
    """The distance of the nearest row of all whose solution may run, by looking at every row."""
    file = content if isinstance(content, dict) else _as_keys(content)
    usable = [_may_run(found, file["ProblemType"], sizes) for found in file["Solutions"]]
    name = file["Library"].get("distance") or "Euclidean"
    rows = [row for row in file["Library"]["table"] if usable[row[1][0]]]
    return min((_distance(name, _key(sizes, name), _key(row[0][: len(sizes)], name)) for row in rows), default=None)


def _as_keys(elements: list[Any]) -> dict[str, Any]:
    distance = elements[12] if len(elements) > 12 else None
    ranges = elements[8] if len(elements) > 8 else None
    library = {"indexOrder": elements[6], "table": elements[7], "distance": distance, "ranges": ranges}
    return {"ProblemType": elements[4], "Solutions": elements[5], "Library": library}


def _key(sizes: list[int], distance: str) -> list[int]:
    """M, N and K; for Equality M, N, batch and K."""
    if distance == "Equality":
        return list(sizes)
    return [sizes[0], sizes[1], sizes[-1]]


def _may_run(solution: dict[str, Any], kind: dict[str, Any], sizes: list[int]) -> bool:
    m, n, k = sizes[0], sizes[1], sizes[-1]
    checks = [
        m % solution.get("AssertFree0ElementMultiple", 1) == 0,
        n % solution.get("AssertFree1ElementMultiple", 1) == 0,
        k % solution.get("AssertSummationElementMultiple", 1) == 0,
        kind["TransposeA"] or m >= solution.get("GlobalLoadVectorWidthA", 1),
        not kind["TransposeB"] or n >= solution.get("GlobalLoadVectorWidthB", 1),
        not solution.get("AssertCEqualsD", False),
    ]
    tests = {
        "AssertSizeEqual": lambda size, value: size == value,
        "AssertSizeGreaterThan": lambda size, value: size > value,
        "AssertSizeLessThan": lambda size, value: size < value,
        "AssertSizeMultiple": lambda size, value: size % value == 0,
    }
    for name, test in tests.items():
        checks += [value == -1 or test(sizes[index], value) for index, value in solution.get(name, {}).items()]
    # The stride of each tensor's first index is 1.
    for tensor in "ABCD":
        checks += [value in (1, -1) for index, value in solution.get(f"AssertStride{tensor}Equal", {}).items()]
    return all(checks)


def _distance(name: str, asked: list[int], row: list[int]) -> float:
    pairs = list(zip(asked, row, strict=True))
    if name == "Euclidean":
        return float(sum((a - b) ** 2 for a, b in pairs))
    if name == "Manhattan":
        return float(sum(abs(a - b) for a, b in pairs))
    if name == "Ratio":
        (am, bm), (an, bn), (ak, bk) = pairs
        return 1.0 + abs(math.log(am / bm)) + abs(math.log(an / bn)) + abs(math.log(ak / bk))
    if name == "JSD":
        p, q = ([size / float(sum(key)) for size in key] for key in (asked, row))
        m = [0.5 * (x + y) for x, y in zip(p, q, strict=True)]
        left = p[0] * math.log(p[0] / m[0]) + p[1] * math.log(p[1] / m[1]) + p[2] * math.log(p[2] / m[2])
        right = q[0] * math.log(q[0] / m[0]) + q[1] * math.log(q[1] / m[1]) + q[2] * math.log(q[2] / m[2])
        return 0.5 * left + 0.5 * right
    m, n, k = asked
    grid_m, grid_n, grid_k = row
    up_m, up_n = (math.ceil(m / grid_m) if m <= 32768 else 1), (math.ceil(n / grid_n) if n <= 32768 else 1)
    if m <= 32768 and n <= 32768:
        waste = up_m * grid_m * up_n * grid_n / (m * n)
        first = math.floor(100 * up_m * up_n / ((m * n) / (up_m * grid_m * up_n * grid_n)) ** 2 + 0.5)
        assert waste >= 1
    else:
        first = math.floor(10000 * up_m * up_n * math.hypot(m - grid_m, n - grid_n) + 0.5)
    return first + abs(grid_k - k) / (grid_k + 8 * k)


def _first_share(name: str, asked: list[int], row: list[int]) -> float:
    """What the first size alone adds to a distance."""
    if name == "Euclidean":
        return float((asked[0] - row[0]) ** 2)
    if name == "Manhattan":
        return float(abs(asked[0] - row[0]))
    if name == "JSD":
        p, q = asked[0] / sum(asked), row[0] / sum(row)
        return 0.5 * (p * math.log(p / (0.5 * (p + q)))) + 0.5 * (q * math.log(q / (0.5 * (p + q))))
    return -math.inf


def _nearest(rows: list[Any], usable: list[bool], asked: list[int], name: str) -> Any:
    """To the right of the asked key, then to the left, until the first size alone is too far."""
    right = [row for row in rows if row[0] >= asked]
    left = [row for row in reversed(rows) if row[0] < asked]
    best, least = None, math.inf
    for side in (right, left):
        for row in side:
            if best is not None and row[0] != asked and not _first_share(name, asked, row[0]) < least:
                break
            distance = _distance(name, asked, row[0])
            wins = distance < least or (best is not None and distance == least and row[2] > best[2])
            if wins and usable[row[1]]:
                best, least = row, distance
    return best


def _equal(rows: list[Any], usable: list[bool], asked: list[int], name: str) -> Any:
    same = [row for row in rows if row[0] == asked]
    return same[0] if same and usable[same[0][1]] else None


def _grid(rows: list[Any], usable: list[bool], asked: list[int], name: str) -> Any:
    """Group the rows by their M and N, and visit the groups in the order of the search."""
    if not rows:
        return None
    m, n = min(asked[0], rows[-1][0][0]), asked[1]
    visited, last = [], None
    for grid_m in sorted({row[0][0] for row in rows if row[0][0] >= m}):
        columns = sorted({row[0][1] for row in rows if row[0][0] == grid_m})
        visited += [(grid_m, column) for column in columns if column >= min(n, columns[-1])]
    for group in visited:
        last = group
        here = [row for row in rows if (row[0][0], row[0][1]) == group and usable[row[1]]]
        if here:
            return min(here, key=lambda row: _distance(name, asked, row[0]))
    before = [row for row in rows if tuple(row[0][:2]) < last and usable[row[1]]]
    return before[-1] if before else None


def _by_ranges(rules: Any, sizes: list[int]) -> int:
    for threshold, inner in rules:
        if threshold == -1 or sizes[0] <= threshold:
            return inner if len(sizes) == 1 else _by_ranges(inner, sizes[1:])
    raise AssertionError("the last threshold has no end")


def _by_trees(regions: list[Any], usable: list[bool], sizes: list[int]) -> tuple[int | None, str]:
    for region in regions:
        if not all(_holds(condition, sizes) for condition in region["region"]):
            continue
        features = [_feature(feature, sizes) for feature in region["features"]]
        for tree in region["trees"]:
            if usable[tree["solution"]] and _says_yes(tree["tree"], features, 0):
                return tree["solution"], "tree"
        fallback = region.get("fallback")
        if fallback is not None and usable[fallback]:
            return fallback, "fallback"
    return None, "none"


def _holds(condition: dict[str, Any], sizes: list[int]) -> bool:
    kind, value = condition["type"], condition.get("value")
    size = sizes[condition.get("index", 0)]
    match kind:
        case "TruePred":
            return True
        case "SizeInRange":
            return value.get("min", 0) <= size < value.get("max", 2**64)
        case "SizeEqual":
            return size == value
        case "SizeLessThan":
            return size < value
        case "SizeGreaterThan":
            return size > value
        case "SizeMultiple":
            return size % value == 0
        case "Or":
            return any(_holds(part, sizes) for part in value)
        case "Not":
            return not _holds(value[0], sizes)
    raise AssertionError(kind)


def _feature(feature: dict[str, Any], sizes: list[int]) -> Any:
    m, n, batch, k = (F(size) for size in sizes)
    value = feature.get("value")
    match feature["type"]:
        case "FreeSizeA":
            return m
        case "FreeSizeB":
            return n
        case "BoundSize":
            return k
        case "BatchSize":
            return batch
        case "ProblemScaleMeasure":
            return F(sizes[1] * sizes[1] * sizes[2])
        case "Tile0Granularity":
            return _fraction(m * F(value))
        case "Tile1Granularity":
            return _fraction(n * F(value))
    tiles = np.ceil(m * F(value["mt0"])) * np.ceil(n * F(value["mt1"])) * F(value["cus"])
    return _fraction(tiles) if feature["type"] == "CUGranularity" else np.ceil(tiles) * F(value["ws"])


def _fraction(tiles: Any) -> Any:
    return tiles / np.ceil(tiles)


def _says_yes(nodes: list[Any], features: list[Any], index: int) -> bool:
    node = nodes[index]
    following = node["nextIdxLTE"] if features[node["featureIdx"]] <= F(node["threshold"]) else node["nextIdxGT"]
    return following == -2 if following < 0 else _says_yes(nodes, features, following)
