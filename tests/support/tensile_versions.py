"""What four old versions of Tensile measured of a tuning file, by the rules of each version for its own kernels.

Lineages are really forked, tuned and joined, with a score instead of a device. A configuration that the version's
kernels could not have is never measured, and the same kernel is measured once. Nothing is shared with
`formats/tensile`. Only what the tested files need is here: source kernels of types s and z.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from math import ceil, isqrt, log2, prod
from typing import Any

from tensile_counter import count_sizes

Configuration = Mapping[str, Any]
Score = Callable[[Configuration], float]
PHASES = ("BenchmarkCommonParameters", "ForkParameters", "BenchmarkForkParameters", "BenchmarkJoinParameters")
BYTES = {"s": 4, "z": 16}


@dataclass(frozen=True)
class Kind:
    """A problem type as kernels see it: the bytes of an element; whether the tile's index is faster than the summed one
    in A and in B; the largest ratio of a macro tile's sides, if the file limits it."""

    size: int
    tile_first: tuple[bool, bool]
    ratio: int


@dataclass(frozen=True)
class Version:
    """Defaults of parameters that files leave out, the macro tile of a configuration, which configurations the kernels
    can have, and what distinguishes kernels beside their parameters. `skips_short_joins`: a join over one name was
    forgotten (versions 3.0.0 to 3.0.3)."""

    initial: Configuration
    tile: Callable[[Configuration], tuple[int, int]]
    can: Callable[[Configuration, Kind], bool]
    skips_short_joins: bool = False


# --- version 2.0 ----------------------------------------------------------------------------------------------------


def _tile_2_0(p: Configuration) -> tuple[int, int]:
    sides = [1, 1]
    for edge, shape in ((p["WorkGroupEdge"], p["WorkGroupShape"]), (p["ThreadTileEdge"], p["ThreadTileShape"])):
        sides[0] *= edge * (2 if shape == -1 else 1)
        sides[1] *= edge * (2 if shape == 1 else 1)
    return sides[0], sides[1]


def _can_2_0(p: Configuration, kind: Kind) -> bool:
    """Every work-item loads equally many elements of both tiles, in whole columns and rows; 256 work-items and 32 KiB
    at most. Single-precision tiles of 128 were left out if loads of A were split and those of B were not by 8, since a
    compiler failed on them."""
    tile, threads = _tile_2_0(p), p["WorkGroupEdge"] ** 2 * (2 if p["WorkGroupShape"] else 1)
    depth, columns = p["LoopUnroll"], (p["NumLoadsCoalescedA"], p["NumLoadsCoalescedB"])
    for side, first, split in zip(tile, kind.tile_first, columns, strict=True):
        loads, rest = divmod(side * depth, threads)
        along, across = (side, depth) if first else (depth, side)
        if rest or loads % split or along % split or across % (loads // split):
            return False
    failed = kind.size == 4 and 128 in tile and columns[0] != 1 and columns[1] != 8
    return threads <= 256 and depth * (2 + sum(tile)) * kind.size <= 32768 and not failed


VERSION_2_0 = Version(
    {"LoopUnroll": 16, "SplitU": 1, "NumLoadsCoalescedA": 1, "NumLoadsCoalescedB": 1}, _tile_2_0, _can_2_0
)

# --- version 2.4 and later --------------------------------------------------------------------------------------------


def _whole_loads(loads: int, along: int, across: int) -> bool:
    """Whether `loads` of a work-item fall into columns and rows of a tile in some way."""
    return any(
        loads % columns == 0 and along % columns == 0 and across % (loads // columns) == 0
        for columns in range(1, loads + 1)
    )


def _loads_fit(tile: tuple[int, int], depth: int, threads: int, kind: Kind) -> bool:
    """Whether all work-items load equally many elements of both tiles. Vectors have one element, as in the files."""
    for side, first in zip(tile, kind.tile_first, strict=True):
        loads, rest = divmod(side * depth, threads)
        along, across = (side, depth) if first else (depth, side)
        if rest or not loads or not _whole_loads(loads, along, across):
            return False
    return True


def _split_fits(tile: tuple[int, int], split: int, threads: int, depth: int) -> bool:
    """Whether the work-items that share elements of C have a step each at least twice, and can add in local memory."""
    return depth % split == 0 and depth // split >= 2 and (split == 1 or threads % tile[0] == 0)


def _local_elements(tile: tuple[int, int], depth: int, split: int, kind: Kind, prefetches: bool, second: str) -> int:
    """The elements of local memory. `second` says where the tiles of a prefetching kernel's second buffer begin: behind
    the first ("behind"), or at a power of two ("power")."""
    alignment = 64 * 4 // kind.size
    needed = [depth * side for side in tile]
    a, b = (ceil(elements / alignment) * alignment for elements in needed)
    if not prefetches:
        tiles = a + needed[1]
    else:
        tiles = (2 * a + b if second == "behind" else 2 ** ceil(log2(a + b)) + a) + needed[1]
    return max(tiles, prod(tile) * split if split > 1 else 0)


def _two_sides(count: int, shape: int) -> tuple[int, int]:
    short = isqrt(count // max(abs(shape), 1))
    return (short * -shape, short) if shape < 0 else (short, short * max(shape, 1))


def _tile_2_4(p: Configuration) -> tuple[int, int]:
    groups = _two_sides(p["NumThreads"] // p["SplitU"], p["GroupShape"])
    tiles = _two_sides(p["ThreadTileNumElements"], p["ThreadTileShape"])
    return groups[0] * tiles[0], groups[1] * tiles[1]


def _can_2_4(p: Configuration, kind: Kind) -> bool:
    tile, threads, split, depth = _tile_2_4(p), p["NumThreads"], p["SplitU"], p["DepthU"]
    has_sides = (
        prod(_two_sides(threads // split, p["GroupShape"])) == threads // split
        and prod(_two_sides(p["ThreadTileNumElements"], p["ThreadTileShape"])) == p["ThreadTileNumElements"]
    )
    return (
        has_sides
        and max(tile) // min(tile) <= kind.ratio
        and prod(tile) % threads == 0
        and _split_fits(tile, split, threads, depth)
        and _loads_fit(tile, depth, threads, kind)
        and _local_elements(tile, depth, split, kind, p["PrefetchGlobalRead"], "behind") * kind.size <= 32768
    )


VERSION_2_4 = Version({}, _tile_2_4, _can_2_4)


def _tile_3(p: Configuration) -> tuple[int, int]:
    return p["WorkGroup"][0] * p["ThreadTile"][0], p["WorkGroup"][1] * p["ThreadTile"][1]


def _can_3(p: Configuration, kind: Kind, ratio: int, second: str, most_bytes: int) -> bool:
    tile, depth, split = _tile_3(p), p["DepthU"], p["WorkGroup"][2]
    threads = prod(p["WorkGroup"])
    return (
        max(tile) // min(tile) <= ratio
        and prod(tile) % threads == 0
        and _split_fits(tile, split, threads, depth)
        and _loads_fit(tile, depth, threads, kind)
        and _local_elements(tile, depth, split, kind, p["PrefetchGlobalRead"], second) * kind.size <= most_bytes
    )


VERSION_3_0 = Version(
    {"PrefetchGlobalRead": True}, _tile_3, lambda p, kind: _can_3(p, kind, 4, "behind", 32768), skips_short_joins=True
)
VERSION_4_9 = Version({"PrefetchGlobalRead": True}, _tile_3, lambda p, kind: _can_3(p, kind, 64, "power", 65536))

# --- the run --------------------------------------------------------------------------------------------------------


def random_score(seed: int = 0) -> Score:
    """A score that is drawn for each configuration, always the same one."""
    return lambda p: random.Random(f"{seed} {sorted(p.items(), key=str)}").random()


def measured(
    document: Mapping[str, Any], version: Version, score: Score | None = None, rejects: bool = True
) -> list[list[int]]:
    """The enqueues of each step that measures, for each size group. Without `rejects` every configuration can be
    measured, so that nothing but the written lists and the joins counts."""
    ratio = (document.get("GlobalParameters") or {}).get("MaxMacroTileRatio", 4)
    found = []
    for problem in document["BenchmarkProblems"]:
        is_dict = isinstance(problem, dict)
        fields, groups = (problem["ProblemType"], [problem]) if is_dict else (problem[0], problem[1:])
        kind = Kind(BYTES[fields["DataType"]], _tile_first(fields), ratio)
        found += [_Run(group, version, kind, score or random_score(), rejects).enqueues() for group in groups]
    return found


def _tile_first(fields: Mapping[str, Any]) -> tuple[bool, bool]:
    if fields["OperationType"] == "GEMM":
        return not fields["TransposeA"], bool(fields["TransposeB"])
    a, b, free = fields["IndexAssignmentsA"], fields["IndexAssignmentsB"], fields["NumIndicesC"]
    summed = max(index for index in a if index >= free)
    tiles = [next(i for i in own if i < free and i not in other) for own, other in ((a, b), (b, a))]
    return a.index(tiles[0]) < a.index(summed), b.index(tiles[1]) < b.index(summed)


@dataclass
class _Run:
    """One size group. A lineage is a pair: what is determined, and the score of the last step."""

    group: Mapping[str, Any]
    version: Version
    kind: Kind
    score: Score
    rejects: bool
    steps: list[int] = field(default_factory=list)

    def enqueues(self) -> list[int]:
        single = {name: values[0] for step in self._dicts(*PHASES) for name, values in step.items() if len(values) == 1}
        start = {**self.version.initial, **single}
        forked = {name: values for step in self._dicts(PHASES[1]) for name, values in step.items() if len(values) > 1}
        lineages = [({**start, **choice}, 0.0) for choice in _combined(forked)]
        tuned = [step for step in map(_varied, self._dicts(PHASES[2])) if step]
        joined = self.group["JoinParameters"]
        for step in tuned or ([{}] if joined else []):
            lineages = self._measure(lineages, step, self._sizes(PHASES[0]))
        if joined and not (self.version.skips_short_joins and len(joined) == 1):
            lineages = list(self._best_of_each(lineages, joined))
        for step in filter(None, map(_varied, self._dicts(PHASES[3]))):
            lineages = self._measure(lineages, step, self._sizes(PHASES[0]))
        self._measure(lineages, {}, self._sizes("BenchmarkFinalParameters"))
        return self.steps

    def _dicts(self, *phases: str) -> Iterator[dict[str, list[Any]]]:
        for phase in phases:
            for step in self.group[phase] or []:
                yield {name: values for name, values in step.items() if name != "ProblemSizes"}

    def _sizes(self, phase: str) -> int:
        return count_sizes(next(step["ProblemSizes"] for step in self.group[phase] if "ProblemSizes" in step))

    def _measure(self, lineages: list[Any], step: Mapping[str, list[Any]], sizes: int) -> list[Any]:
        survivors, count = [], 0
        for determined, _ in lineages:
            tried = [{**determined, **choice} for choice in _combined(step)]
            if self.rejects:
                tried = [p for p in tried if self.version.can(p, self.kind)]
            count += len(tried)
            if tried:
                best = max(tried, key=self.score)
                survivors.append((best, self.score(best)))
        self.steps.append(count * sizes)
        return survivors

    def _best_of_each(self, lineages: list[Any], names: list[str]) -> Iterator[Any]:
        best: dict[tuple[Any, ...], Any] = {}
        for lineage in lineages:
            key = tuple(self._key(lineage[0], name) for name in names)
            if key not in best or lineage[1] > best[key][1]:
                best[key] = lineage
        yield from best.values()

    def _key(self, p: Configuration, name: str) -> Any:
        if name == "MacroTile":
            return self.version.tile(p)
        return p["LoopUnroll"] * p["SplitU"] if name == "DepthU" and name not in p else p[name]


def _varied(step: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    return {name: values for name, values in step.items() if len(values) > 1}


def _combined(step: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(step, chosen, strict=True)) for chosen in product(*step.values())]
