"""Tuning files of Tensile's with something changed: a value, a name, a phase, a line or a byte."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

from quick_yaml import dumped, loaded
from tensile_files import DIALECTS

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 3, 7, 2**31, -(2**40), 10**300, 1.5, float("nan"), "", "Assembly", "s", "z", "4xi8",
    "TensorContraction", "Custom", "MacroTile", [], [[]], {}, [1], [16, 16, 1], [[8, 8, 1], [4, 4]], [1, 1, 100_000],
    [1, 1, 10**9], [[1, 1, 400]] * 3, {"sizes": [64, 64, 64]}, {"a": 1}, list(range(400)), "\x07", "é" * 60,
)  # fmt: skip
NAMES = (
    "GlobalParameters", "BenchmarkProblems", "ProblemType", "ForkParameters", "JoinParameters", "ProblemSizes", "Range",
    "Exact", "Groups", "CustomKernels", "BenchmarkFinal", "BenchmarkJoinParameters", "DataType", "DepthU", "SplitU",
    "NumThreads", "WorkGroupEdge", "ThreadTile", "StaggerU", "VectorWidth", "MatrixInstruction", "Batched", "Nonsense",
    "InitialSolutionParameters", "WorkGroup", "MinStride", "ArchitectureName", "KernelLanguage", "Parameters",
)  # fmt: skip


def mutated(name: str, seed: int) -> bytes:
    """The text of a dialect's file with one to three things changed; the same for the same seed."""
    chance = random.Random(f"{name} {seed}")
    if chance.randrange(3) == 0:
        return _scribbled(DIALECTS[name].encode(), chance)
    tree = loaded(DIALECTS[name])
    for _ in range(chance.choice((1, 1, 2, 3))):
        places = list(_places(tree))
        if places:
            tree = _changed(tree, chance.choice(places), chance)
    return dumped(tree, sort_keys=False, default_flow_style=None).encode("utf-8", "surrogatepass")


def _places(tree: Any, path: tuple[Any, ...] = ()) -> Any:
    if path:
        yield path
    if isinstance(tree, (dict, list)):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield from _places(tree[key], (*path, key))


def _changed(tree: Any, path: tuple[Any, ...], chance: random.Random) -> Any:
    made = deepcopy(tree)
    inside = made
    for step in path[:-1]:
        inside = inside[step]
    last = path[-1]
    match chance.randrange(7):
        case 0:
            del inside[last]
        case 1 if isinstance(inside, dict):
            inside[chance.choice(NAMES)] = inside.pop(last)
        case 2 if isinstance(inside, dict):
            inside[chance.choice(NAMES)] = deepcopy(chance.choice(VALUES))
        case 3 if isinstance(inside, list):
            inside += [deepcopy(inside[last])] * chance.choice((1, 2, 60))
        case 4 if isinstance(inside[last], list):
            inside[last] = {"a": inside[last]}
        case 5 if isinstance(inside[last], int):
            inside[last] = inside[last] * chance.choice((-1, 0, 1000, 10**18))
        case _:
            inside[last] = deepcopy(chance.choice(VALUES))
    return made


def _scribbled(text: bytes, chance: random.Random) -> bytes:
    lines = text.split(b"\n")
    at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(7):
        case 0:
            return text[: chance.randrange(len(text))]
        case 1:
            del lines[at]
        case 2:
            lines.insert(at, lines[other])
        case 3:
            lines[at], lines[other] = lines[other], lines[at]
        case 4:
            lines[at] = b" " * chance.randrange(12) + lines[at].lstrip()
        case 5:
            lines[at] += chance.choice(
                (b"\x00", b"\xff", b"\t", b": :", b"]", b"&a *a", b"[" * 60, b"1" * 400, b"<<: *b")
            )
        case _:
            column = chance.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:column] + lines[at][column + 1 :]
    return b"\n".join(lines)
