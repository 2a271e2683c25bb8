"""Library logic of Tensile, made up: small files of each form, random ones, and where the real ones are."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
LOGIC = Path(os.environ.get("TUNESMITH_DATA", ROOT.parent / "shared" / "data")) / "tensile" / "logic"
REAL = sorted(LOGIC.glob("*.yaml"))
needs_real_logic = pytest.mark.skipif(not REAL, reason="Tensile's library logic is not there (TUNESMITH_DATA)")

DISTANCES = ("Euclidean", "Manhattan", "Ratio", "JSD", "Equality", "GridBased")
EXTENTS = (1, 2, 3, 4, 7, 8, 12, 16, 24, 32, 33, 48, 64, 100, 127, 128, 192, 256, 500, 512, 1000, 2048)
FAR = 9223372036854775807


def problem_type(batched: bool = True, transposes: tuple[bool, bool] = (False, True), **fields: Any) -> dict[str, Any]:
    """A GEMM's ProblemType as Tensile writes it, down to the indices."""
    summed, batch = (3, [2]) if batched else (2, [])
    a, b = ([summed, 0] if transposes[0] else [0, summed]), ([1, summed] if transposes[1] else [summed, 1])
    return {
        "OperationType": "GEMM", "DataType": 0, "DestDataType": 0, "Batched": batched, "UseBeta": True,
        "TransposeA": transposes[0], "TransposeB": transposes[1], "NumIndicesC": 2 + len(batch),
        "IndexAssignmentsA": [*a, *batch], "IndexAssignmentsB": [*b, *batch], "ComplexConjugateA": False,
        "ComplexConjugateB": False,
    } | fields  # fmt: skip


def solution(index: int, kind: Any, **parameters: Any) -> dict[str, Any]:
    own = {"SolutionIndex": index, "SolutionNameMin": f"Kernel{index}", "KernelLanguage": "Source", "ProblemType": kind}
    return own | {"MacroTile0": 64, "MacroTile1": 32, "DepthU": 8, "WorkGroup": [16, 16, 1]} | parameters


def list_form(
    solutions: int | list[dict[str, Any]] = 3,
    rows: Any = (([64, 64, 1, 64], [0, 10.0]), ([128, 64, 1, 64], [1, 20.0]), ([512, 512, 2, 512], [2, 30.0])),
    distance: str | None = None,
    ranges: Any = None,
    kind: dict[str, Any] | None = None,
    order: tuple[int, ...] = (2, 3, 0, 1),
) -> list[Any]:
    """A logic in the list form; as old ones if it has ranges."""
    kind = kind or problem_type(batched=len(order) == 4)
    made = solutions if isinstance(solutions, list) else [solution(index, kind) for index in range(solutions)]
    table = [[list(sizes), list(found)] for sizes, found in rows]
    head = [{"MinimumRequiredVersion": "4.33.0"}, "vega", "gfx900", ["Device 0001"], kind, made, list(order), table]
    tail = [ranges] if distance is None else [ranges, None, "DeviceEfficiency", None, distance]
    return [*head, *tail]


def keys_form(logic: list[Any]) -> dict[str, Any]:
    """The same logic with keys; solutions have the file's type."""
    distance = logic[12] if len(logic) > 12 else "Euclidean"
    return {
        "MinimumRequiredVersion": "4.40.0", "ScheduleName": logic[1], "ArchitectureName": logic[2],
        "DeviceNames": logic[3], "ProblemType": logic[4], "LibraryType": "Matching", "CUCount": 104,
        "Solutions": [found | {"ProblemType": "derive"} for found in logic[5]],
        "Library": {"indexOrder": logic[6], "table": logic[7], "distance": distance},
    }  # fmt: skip


TREES = [
    {
        "region": [
            {"index": 0, "type": "SizeInRange", "value": {"min": 64, "max": FAR}},
            {"index": 2, "type": "SizeEqual", "value": 1},
        ],
        "features": [
            {"type": "FreeSizeA", "index": 0},
            {"type": "FreeSizeB", "index": 0},
            {"type": "BoundSize", "index": 0},
            {"type": "CUGranularity", "value": {"mt0": 0.015625, "mt1": 0.03125, "cus": 0.01}},
            {"type": "Tile0Granularity", "value": 0.015625},
        ],
        "trees": [
            {
                "solution": 1,
                "tree": [
                    {"featureIdx": 0, "threshold": 100.5, "nextIdxLTE": -1, "nextIdxGT": 1},
                    {"featureIdx": 2, "threshold": 50.0, "nextIdxLTE": -2, "nextIdxGT": -1},
                ],
            },
            {"solution": 0, "tree": [{"featureIdx": 1, "threshold": 128.0, "nextIdxLTE": -1, "nextIdxGT": -2}]},
        ],
        "fallback": 2,
    },
    {"region": [{"type": "TruePred"}], "features": [], "trees": []},
]


def tree_form(solutions: int | list[dict[str, Any]] = 3, regions: Any = TREES) -> dict[str, Any]:
    """A logic of decision trees."""
    kind = problem_type()
    made = solutions if isinstance(solutions, list) else [solution(index, "derive") for index in range(solutions)]
    return {
        "MinimumRequiredVersion": "4.40.0", "ScheduleName": "aldebaran", "ArchitectureName": "gfx90a",
        "DeviceNames": ["Device 0002"], "ProblemType": kind, "Solutions": made, "LibraryType": "DecisionTree",
        "Library": regions, "PerfMetric": "ExperimentalDTree",
    }  # fmt: skip


RANGES = [[-1, [[100, [[32, [[-1, 1]]], [-1, [[64, 2], [-1, 0]]]]], [-1, [[-1, [[-1, 2]]]]]]]]
"""Any batch; K <= 100: M <= 32: solution 1, else N <= 64: solution 2, else 0; larger K: solution 2."""


def written(folder: Path, content: Any, name: str = "logic.yaml") -> Path:
    path = folder / name
    path.write_text(text_of(content))
    return path


def text_of(content: Any) -> str:
    """As Tensile writes it: lists of scalars on one line."""
    return str(yaml.dump(content, Dumper=yaml.CSafeDumper, default_flow_style=None, sort_keys=False))


# --- random logic ----------------------------------------------------------------------------------------------------


def random_logic(chance: random.Random, distance: str) -> list[Any] | dict[str, Any]:
    """A logic with a table, in either form, whose solutions have assertions."""
    batched = chance.random() < 0.7
    kind = problem_type(batched, (chance.random() < 0.5, chance.random() < 0.5))
    count = 4 if batched else 3
    made = [solution(index, kind, **_assertions(chance, count)) for index in range(chance.randint(1, 5))]
    rows = [
        (random_size(chance, count) + _leading(chance), [chance.randrange(len(made)), chance.choice((1.0, 2.5, 9.0))])
        for _ in range(chance.choice((0, 1, 3, 10, 40)))
    ]
    order = (2, 3, 0, 1) if batched else (2, 0, 1)
    logic = list_form(made, rows, distance, kind=kind, order=order)
    if distance == "Euclidean" and chance.random() < 0.4:
        logic[8] = _ranges(chance, len(order), len(made))
        return logic[: chance.choice((9, 13))]
    return keys_form(logic) if chance.random() < 0.5 else logic


def random_forest(chance: random.Random) -> dict[str, Any]:
    """A logic of random decision trees."""
    made = [solution(index, "derive", **_assertions(chance, 4)) for index in range(4)]
    regions = []
    for _ in range(chance.randint(1, 3)):
        scale = {"mt0": 1 / chance.choice((16, 96, 128)), "mt1": 1 / chance.choice((16, 48, 256)), "cus": 1 / 104}
        features = [
            {"type": "FreeSizeA", "index": 0}, {"type": "FreeSizeB", "index": 0}, {"type": "BoundSize", "index": 0},
            {"type": "BatchSize", "index": 0}, {"type": "CUGranularity", "value": scale},
            {"type": "WavesPerSIMD", "value": scale | {"ws": 2.0}}, {"type": "Tile0Granularity", "value": scale["mt0"]},
            {"type": "Tile1Granularity", "value": scale["mt1"]}, {"type": "ProblemScaleMeasure"},
        ]  # fmt: skip
        trees = [
            {"solution": chance.randrange(4), "tree": _tree(chance, features)} for _ in range(chance.randint(0, 4))
        ]
        region = {"region": _region(chance), "features": features, "trees": trees}
        regions.append(region | ({"fallback": chance.randrange(4)} if chance.random() < 0.7 else {}))
    return tree_form(made, regions)


def random_size(chance: random.Random, count: int) -> list[int]:
    sizes = [chance.choice(EXTENTS) for _ in range(count)]
    if count == 4:
        sizes[2] = chance.choice((1, 1, 2, 8))
    return sizes


def _assertions(chance: random.Random, count: int) -> dict[str, Any]:
    summed = count - 1
    offered = [
        ("AssertFree0ElementMultiple", chance.choice((1, 2, 8))), ("AssertFree1ElementMultiple", chance.choice((1, 4))),
        ("AssertSummationElementMultiple", chance.choice((1, 2, 16))), ("AssertMinApproxSize", 3),
        ("AssertSizeLessThan", {chance.randrange(count): chance.choice((33, 200))}),
        ("AssertSizeGreaterThan", {summed: 32}), ("AssertSizeMultiple", {1: 2}), ("AssertSizeEqual", {0: -1}),
        ("AssertStrideAEqual", {0: 1}), ("AssertStrideBEqual", {0: chance.choice((1, 2))}),
        ("GlobalLoadVectorWidthA", chance.choice((1, 2, 4))), ("GlobalLoadVectorWidthB", chance.choice((1, 4))),
        ("AssertCEqualsD", chance.random() < 0.1),
    ]  # fmt: skip
    return dict(chance.sample(offered, chance.choice((0, 0, 1, 3))))


def _leading(chance: random.Random) -> list[int]:
    return [4096] * 4 if chance.random() < 0.1 else []


def _ranges(chance: random.Random, depth: int, solutions: int) -> list[Any]:
    thresholds = sorted(chance.sample(EXTENTS, chance.randint(0, 2)))
    inside = (chance.randrange(solutions) if depth == 1 else _ranges(chance, depth - 1, solutions) for _ in range(9))
    return [[threshold, next(inside)] for threshold in (*thresholds, -1)]


def _region(chance: random.Random) -> list[dict[str, Any]]:
    offered: list[dict[str, Any]] = [
        {"type": "SizeInRange", "index": 0, "value": {"min": 8, "max": 513}},
        {"type": "SizeInRange", "index": 3, "value": {"min": chance.choice((1, 64))}},
        {"type": "SizeEqual", "index": 2, "value": 1}, {"type": "SizeLessThan", "index": 1, "value": 513},
        {"type": "SizeGreaterThan", "index": 1, "value": 7}, {"type": "SizeMultiple", "index": 3, "value": 2},
        {"type": "TruePred"},
    ]  # fmt: skip
    parts = chance.sample(offered, chance.randint(0, 3))
    match chance.randrange(4):
        case 0 if parts:
            return [{"type": "Or", "value": parts}]
        case 1 if parts:
            return [{"type": "Not", "value": [parts[0]]}, *parts[1:]]
    return parts


def _tree(chance: random.Random, features: list[Any]) -> list[dict[str, Any]]:
    count = chance.randint(1, 9)
    return [
        {
            "featureIdx": (feature := chance.randrange(len(features))),
            "threshold": chance.choice((8.0, 100.5, 512.0)) if feature < 4 else chance.choice((0.9, 0.123456789, 1.0)),
            "nextIdxLTE": chance.choice((-1, -2, *range(index + 1, count))),
            "nextIdxGT": chance.choice((-1, -2, *range(index + 1, count))),
        }
        for index in range(count)
    ]
