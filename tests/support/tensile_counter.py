"""A second count of what a Tensile tuning file has written: from the parsed YAML, by making every lineage.

It shares nothing with `formats/tensile`: lineages are dicts that are really forked, tuned and joined.
"""

from __future__ import annotations

from itertools import product
from math import isqrt, prod
from typing import Any

STEPS = ("BenchmarkCommonParameters", "ForkParameters", "BenchmarkForkParameters", "BenchmarkJoinParameters")
FINAL = "BenchmarkFinalParameters"
NEWER = {"Unroll": "LoopUnroll", "PreFetch": "PrefetchGlobalRead", "LocalSplitU": "SplitU", "IntraSplitU": "SplitU"}
MOST_LINEAGES = 300_000
"""Larger forks are multiplied, not listed; files with such forks and a join are not counted."""


def counted(document: dict[str, Any], sizes: list[Any] | None = None) -> list[tuple[list[int], int]]:
    """For each size group of the file, in its order: the enqueues of the steps that measure, and the exhaustive
    product."""
    ratio = (document.get("GlobalParameters") or {}).get("MaxMacroTileRatio")
    if "ProblemType" in document:
        final = {FINAL: [{"ProblemSizes": sizes}]} if sizes else {}
        early = {"Groups": document["GroupForkParameters"]} if "GroupForkParameters" in document else {}
        fork = {"ForkParameters": [*(document.get("ForkParameters") or []), early]}
        return [_group({**document, **fork, **final}, "today", ratio)]
    counts = []
    for problem in document["BenchmarkProblems"]:
        if isinstance(problem, dict):
            counts.append(_group(problem, "dict", ratio))
        else:
            groups = problem[1:] or [{}]
            is_today = "Groups" in repr(document["BenchmarkProblems"]) or "'sizes'" in repr(problem)
            counts += [_group(group or {}, "today" if is_today else "list", ratio) for group in groups]
    return counts


def _group(group: dict[str, Any], era: str, ratio: int | None) -> tuple[list[int], int]:
    group = {("BenchmarkFinalParameters" if key == "BenchmarkFinal" else key): value for key, value in group.items()}
    dicts = {phase: _dicts(group.get(phase)) for phase in (*STEPS, FINAL)}
    common, fork, tuned, late = (dicts[phase] for phase in STEPS)
    if era == "today":
        common, fork = [], [*common, *fork]
    enqueues, sizes = [], 1
    for step in common:
        sizes = count_sizes(step["ProblemSizes"]) if "ProblemSizes" in step else sizes
        enqueues += [_choices(step) * sizes] if _choices(step) > 1 else []
    sizes = next((count_sizes(step["ProblemSizes"]) for step in reversed(fork) if "ProblemSizes" in step), sizes)
    axes = [axis for step in fork for axis in _axes(step)]
    count = prod(map(len, axes))
    custom = len(group.get("CustomKernels") or [])
    lineages = count if not custom else custom + (count if count > 1 else 0)
    measured = 0
    for step in tuned:
        sizes = count_sizes(step["ProblemSizes"]) if "ProblemSizes" in step else sizes
        if _choices(step) > 1:
            enqueues.append(lineages * _choices(step) * sizes)
            measured += 1
    joined = group.get("JoinParameters", ["MacroTile"] if era == "dict" else None)
    joined = [] if joined is None and era == "dict" else joined
    if joined is not None and (joined or era == "dict") and lineages > 1:
        enqueues += [] if measured else [lineages * sizes]
        lineages = min(lineages, _joined(group, joined, axes, tuned, ratio, era))
    for step in late:
        sizes = count_sizes(step["ProblemSizes"]) if "ProblemSizes" in step else sizes
        enqueues += [lineages * _choices(step) * sizes] if _choices(step) > 1 else []
    final = [step["ProblemSizes"] for step in dicts[FINAL] if "ProblemSizes" in step]
    last = count_sizes(final[0]) if final else (64 if era == "dict" else 4)
    enqueues.append(lineages * last)
    everything = [axis for phase in STEPS for step in dicts[phase] for axis in _axes(step)]
    return enqueues, prod(map(len, everything)) * last


def _dicts(phase: Any) -> list[dict[str, Any]]:
    if isinstance(phase, dict):
        return [phase]
    if phase and all(isinstance(item, (int, list)) for item in phase):
        return [{"ProblemSizes": phase}]
    return list(phase or [])


def _axes(step: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The alternatives of each factor of a dict: a parameter's values, or the members of each of its Groups."""
    axes = []
    for name, values in step.items():
        if name == "Groups":
            axes += [list(members) for members in values]
        elif name != "ProblemSizes":
            axes.append([{name: value} for value in (values if isinstance(values, list) else [values])])
    return axes


def _choices(step: dict[str, Any]) -> int:
    return prod(len(axis) for axis in _axes(step))


def _joined(
    group: dict[str, Any], names: list[str], axes: list[Any], tuned: list[Any], ratio: int | None, era: str
) -> int:
    """The number of keys over all lineages with all that may have been tuned, by listing every one of them."""
    single: dict[str, Any] = {}
    for phase in ("InitialSolutionParameters", *STEPS):
        for step in _dicts(group.get(phase)):
            for axis in _axes(step):
                single.update(axis[0])
    relevant = [axis for axis in axes if len(axis) > 1]
    relevant += [axis for step in tuned for axis in _axes(step) if len(axis) > 1]
    if "MacroTile" in names or "DepthU" in names:
        parts = ("WorkGroup", "ThreadTile", "NumThreads", "GroupShape", "SplitU", "LocalSplitU", "IntraSplitU")
        parts += ("Unroll", "Depth", *names)
        relevant = [
            axis for axis in relevant if any(name.startswith(parts) for name in axis[0]) or "LoopUnroll" in axis[0]
        ]
    assert prod(map(len, relevant)) <= MOST_LINEAGES
    keys = set()
    for chosen in product(*relevant):
        values = dict(single)
        for setting in chosen:
            values.update(setting)
        key = tuple(_key(name, {NEWER.get(k, k): v for k, v in values.items()}) for name in names)
        tile = key[names.index("MacroTile")] if "MacroTile" in names else None
        limit = ratio or values.get("MacroTileMaxRatio") or (2 if "WorkGroupEdge" in values else 4)
        if None not in key and not (tile and era == "dict" and max(tile) > limit * min(tile)):
            keys.add(repr(key))
    return max(len(keys), 1)


def _key(name: str, values: dict[str, Any]) -> Any:
    if name == "MacroTile":
        return _macro_tile(values)
    if name == "DepthU" and "DepthU" not in values:
        return values.get("LoopUnroll", 8) * values.get("SplitU", 1)
    return values.get(NEWER.get(name, name))


def _macro_tile(values: dict[str, Any]) -> tuple[int, int] | None:
    groups = values["WorkGroup"][:2] if "WorkGroup" in values else _sides("WorkGroupEdge", "WorkGroupShape", 16, values)
    tiles = values["ThreadTile"] if "ThreadTile" in values else _sides("ThreadTileEdge", "ThreadTileShape", 4, values)
    return (groups[0] * tiles[0], groups[1] * tiles[1]) if groups and tiles else None


def _sides(edge: str, shape: str, usual: int, values: dict[str, Any]) -> tuple[int, int] | None:
    """Two sides by an edge, or by a count if the file has counts; None for a count without whole sides."""
    if not values.keys() & {"NumThreads", "GroupShape", "ThreadTileNumElements"}:
        side, longer = values.get(edge, usual), values.get(shape, 0)
        return side * (2 if longer < 0 else 1), side * (2 if longer > 0 else 1)
    if edge == "WorkGroupEdge":
        area, ratio = values.get("NumThreads", 256) / values.get("SplitU", 1), values.get("GroupShape", 0)
    else:
        area, ratio = values.get("ThreadTileNumElements", 16), values.get(shape, 0)
    short = isqrt(int(area / max(abs(ratio), 1)))
    if short * short * max(abs(ratio), 1) != area:
        return None
    pair = (short, short * max(abs(ratio), 1))
    return pair[::-1] if ratio < 0 else pair


def count_sizes(listed: Any) -> int:
    if all(isinstance(item, (int, list)) for item in listed):
        return prod(len(_span(item)) for item in listed if isinstance(item, list))
    count = 0
    for item in listed:
        for form, value in item.items():
            if form in ("Exact", "Conv"):
                count += 1
            elif form == "Range":
                count += prod(len(_span(each)) for each in value if isinstance(each, list))
    return count


def _span(numbers: list[int]) -> list[int]:
    first, last = numbers[0], numbers[-1]
    step = numbers[1] if len(numbers) > 2 else first if len(numbers) == 2 else 1
    growth = numbers[2] if len(numbers) > 3 else 0
    sizes = []
    while first <= last:
        sizes.append(first)
        first, step = first + step, step + growth
    return sizes or [first]
