"""The benchmark protocol once more, by brute force and as unlike the engine as can be: plain dicts, whole numbers,
exact fractions, one lineage after the other from its birth to the join. Noise-free times only."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

Point = dict[str, int]


@dataclass
class World:
    """A synthetic space: what is legal, how long it takes (None: it does not run), what a configuration really is."""

    start: Point
    legal: Callable[[Point], bool]
    admits: Callable[[Point, int], bool]
    time: Callable[[Point, int], int | None]
    essence: Callable[[Point], Any]
    derive: Callable[[Point], Point]
    work: Callable[[int], int]
    objective: str


@dataclass
class Stage:
    """kind: tune, fork, join or final; `lists` are the values of tune and fork, `keys` those of join."""

    kind: str
    lists: dict[str, list[int]]
    sizes: list[int]
    keys: list[str]


Branch = dict[str, Any]
"""settled: Point, loaned: Point (substitutes), row: {size: time} of the last winner, asked: {stage: {essence}}."""


def grid(lists: Mapping[str, Sequence[int]]) -> list[Point]:
    """All combinations; the first name's value changes fastest."""
    names = list(lists)[::-1]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(lists[n] for n in names))]


def badness(world: World, row: Mapping[int, int], best: Mapping[int, int]) -> Fraction:
    ratios = [Fraction(row[s], best[s]) for s in row]
    return {
        "geomean": lambda: prod(ratios, start=Fraction(1)),
        "worst": lambda: max(ratios),
        "total_time": lambda: Fraction(sum(row.values())),
        "max": lambda: min(Fraction(row[s], world.work(s)) for s in row),
    }[world.objective]()


def best_times(rows: Sequence[Mapping[int, int]]) -> dict[int, int]:
    return {s: min(row[s] for row in rows if s in row) for s in set().union(*rows)} if rows else {}


def pick(world: World, rows: Sequence[Mapping[int, int]], held: int | None) -> tuple[int, set[int]] | None:
    """The index of the winner and the indices of equally good rows; rows are in the file's order."""
    if not any(rows):
        return None
    best = best_times(rows)
    marks = {i: badness(world, row, best) for i, row in enumerate(rows) if row}
    widest = max(len(rows[i]) for i in marks)
    model = min((marks[i], i) for i in marks if len(rows[i]) == widest)[1]
    fair = {i: marks[i] for i in marks if set(rows[i]) == set(rows[model])}
    equals = {i for i in fair if fair[i] == min(fair.values())}
    return (held if held in equals else min(equals)), equals


def usable(world: World, point: Point, sizes: Sequence[int]) -> bool:
    return world.legal(point) and any(world.admits(point, s) for s in sizes)


def loans(world: World, branch: Branch, open_: Mapping[str, list[int]]) -> list[Point]:
    """Substitutions of few parameters before those of many, in the file's order; the first name's value changes
    fastest."""
    held = world.start | branch["loaned"] | branch["settled"]
    names = list(open_)
    found = []
    for digits in itertools.product(*(range(-1, len(open_[n])) for n in names)):
        used = [i for i, d in enumerate(digits) if d >= 0]
        loan = {names[i]: open_[names[i]][digits[i]] for i in used}
        if all(held[n] != v for n, v in loan.items()):
            found.append(((len(used), used, [digits[i] for i in used][::-1]), loan))
    return [loan for _, loan in sorted(found, key=lambda item: item[0])]


def attempt(
    world: World, branch: Branch, lists: Mapping[str, list[int]], sizes: Sequence[int], open_: Mapping[str, list[int]]
) -> tuple[Branch, list[Point]] | None:
    """The branch with its substitutes, and its distinct legal points."""
    for loan in loans(world, branch, open_):
        loaned = branch["loaned"] | loan
        base = world.start | loaned | branch["settled"]
        points = [base | choice for choice in grid(lists) if usable(world, base | choice, sizes)]
        if points:
            by_essence: dict[Any, Point] = {}
            for point in points:
                by_essence.setdefault(world.essence(point), point)
            return branch | {"loaned": loaned}, list(by_essence.values())
    return None


def row_of(world: World, point: Point, sizes: Sequence[int]) -> dict[int, int]:
    return {s: t for s in sizes if (t := world.time(point, s)) is not None}


def tune(world: World, branch: Branch, stages: Sequence[Stage], at: int) -> Branch | None:
    """One measuring stage for one branch (a join or final that measures has nothing to choose from: empty lists)."""
    stage = stages[at]
    to_come = [s for s in stages[at + 1 :] if s.kind in ("tune", "fork")]
    open_: dict[str, list[int]] = {}
    for s in stages:
        for name, values in s.lists.items():
            if any(name in t.lists for t in to_come) and name not in branch["settled"]:
                open_[name] = list(dict.fromkeys(open_.get(name, []) + values))
    found = attempt(world, branch, stage.lists, stage.sizes, open_)
    if found is None:
        return None
    branch, points = found
    held = world.start | branch["loaned"] | branch["settled"]
    rows = [row_of(world, point, stage.sizes) for point in points]
    same = [i for i, p in enumerate(points) if world.essence(p) == world.essence(held)] if usable(
        world, held, stage.sizes) and held in [held | c for c in grid(stage.lists)] else []  # fmt: skip
    asked = branch["asked"] | {at: {world.essence(point) for point in points}}
    choice = pick(world, rows, same[0] if same else None)
    if choice is None:
        return None
    winner = {name: points[choice[0]][name] for name in stage.lists}
    return branch | {
        "settled": branch["settled"] | winner,
        "loaned": {n: v for n, v in branch["loaned"].items() if n not in winner},
        "row": rows[choice[0]],
        "asked": asked,
    }


def live(world: World, branch: Branch, stages: Sequence[Stage], at: int, stop: int) -> list[Branch]:
    """All branches that come from one branch between two stages."""
    if at == stop:
        return [branch]
    stage = stages[at]
    if stage.kind == "fork":
        grown = [
            branch
            | {
                "settled": branch["settled"] | choice,
                "loaned": {n: v for n, v in branch["loaned"].items() if n not in choice},
                "row": {},
            }
            for choice in grid(stage.lists)
        ]
    else:
        tuned = tune(world, branch, stages, at)
        grown = [] if tuned is None else [tuned]
    return [later for successor in grown for later in live(world, successor, stages, at + 1, stop)]


def join(world: World, branches: list[Branch], stages: Sequence[Stage], at: int) -> list[Branch]:
    if any(not branch["row"] for branch in branches):
        branches = [done for branch in branches if (done := tune(world, branch, stages, at)) is not None]
    best = best_times([branch["row"] for branch in branches])
    groups: dict[tuple[int, ...], list[tuple[int, Fraction, int]]] = {}
    for i, branch in enumerate(branches):
        point = world.start | branch["loaned"] | branch["settled"]
        known = point | world.derive(point)
        mark = (-len(branch["row"]), badness(world, branch["row"], best), i)
        groups.setdefault(tuple(known[k] for k in stages[at].keys), []).append(mark)
    return [branches[i] for i in sorted(min(marks)[2] for marks in groups.values())]


def solve(
    world: World, stages: Sequence[Stage], finalists: int
) -> tuple[list[Point], dict[int, tuple[Point, list[Point]]]]:
    """The survivors, and for each final size the winner with the equally good ones, as many as are measured again."""
    branches: list[Branch] = [{"settled": {}, "loaned": {}, "row": {}, "asked": {}}]
    cuts = [i for i, stage in enumerate(stages) if stage.kind == "join"]
    begin = 0
    for cut in [*cuts, len(stages) - 1]:
        branches = [late for branch in branches for late in live(world, branch, stages, begin, cut)]
        if cut in cuts and branches:
            branches = join(world, branches, stages, cut)
        begin = cut + 1
    sizes = stages[-1].sizes
    points: dict[Any, Point] = {}
    for branch in branches:
        point = world.start | branch["loaned"] | branch["settled"]
        if usable(world, point, sizes):
            points.setdefault(world.essence(point), point)
    survivors = list(points.values())
    verdicts = {}
    for s in sizes:
        rows = [row_of(world, point, [s]) for point in survivors]
        if chosen := pick(world, rows, None):
            verdicts[s] = survivors[chosen[0]], [survivors[i] for i in sorted(chosen[1] - {chosen[0]})][: finalists - 1]
    return survivors, verdicts
