"""The steps of a size group counted from what is written, by the rules of the dialect's own era: no kernel is asked.

Up to version 4.31 each dict of a benchmark phase with several values is a step, the fork multiplies lineages, and a
join keeps one lineage for each combination of its values; if nothing was measured since the fork, a step without
choices gives the join something to rank by. In today's dialect, several values in BenchmarkCommonParameters are a fork.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from math import prod

from tunesmith.problems import Node
from tunesmith.problems.keys import is_integer
from tunesmith.records import Value

from .geometry import FORMULAS, OLDER_NAMES, PARTS, formula_for, is_within, largest_ratio, macro_tile
from .layout import CUSTOM_KERNELS, FINAL, PHASES
from .listing import ListedEntry, ListedFactor, ListedPhases, join_names, listed_phases, plain_or_text
from .names import RENAMED
from .record import Dialect, WrittenGroup, WrittenStep
from .sizes import written_sizes

INITIAL, COMMON, FORK, BENCHMARK_FORK, JOIN, BENCHMARK_JOIN = PHASES[:6]
COMMON_DEFAULT_SIZES, FINAL_DEFAULT_SIZES = 1, 4
"""The numbers of Tensile's default sizes: 2880 for the steps, and 64, 128, 256 and 448 at the end."""
VERSION_2_FINAL_SIZES = 4**3
"""The number of default final sizes of version 2: 16, 32, 64 and 112 for each of three indices."""
MOST_KEYS = 50_000
"""The most combinations that are listed to count the keys of a join; with more, the bound is their number."""
SHORT = {COMMON: "CM", FORK: "Fork", BENCHMARK_FORK: "BF", JOIN: "Join", BENCHMARK_JOIN: "BJ", FINAL: "Final"}
MOST_NAMED = 3


def written_group(group: Node, number: int, name: str, dialect: Dialect, most_oblong: int | None) -> WrittenGroup:
    """The steps of a size group as written. A phase that is laid out wrongly counts as empty.

    `most_oblong` is MaxMacroTileRatio of the file's settings: in a dict file, a macro tile whose one side is more times
    as long as the other is not joined.
    """
    listed = listed_phases(group)
    counter = _Counter(listed, _custom_kernels(group), dialect, most_oblong)
    steps = tuple(counter.steps(joined_over(group, dialect)))
    varied = [
        len(factor.settings) for phase in PHASES[1:] for entry in listed.get(phase, ()) for factor in entry.varied
    ]
    return WrittenGroup(group.location, name, number, steps, tuple(varied), steps[-1].sizes)


def joined_over(group: Node, dialect: Dialect) -> tuple[str, ...] | None:
    """The names that a group joins over, by its era's rules; None if there is no join.

    A dict file joins over the macro tile if it has no JoinParameters, and keeps one lineage if they are empty. In later
    files, empty JoinParameters are no join.
    """
    names = join_names(group)
    if dialect.is_dict_form:
        is_absent = not isinstance(group.content, dict) or JOIN not in group.content
        return ("MacroTile",) if is_absent else names or ()
    return names or None


def _custom_kernels(group: Node) -> int:
    node = group.content.get(CUSTOM_KERNELS) if isinstance(group.content, dict) else None
    return len(node.content) if node is not None and isinstance(node.content, tuple) else 0


@dataclass
class _Counter:
    """A walk through the phases of one group."""

    listed: ListedPhases
    custom_kernels: int
    dialect: Dialect
    most_oblong: int | None
    sizes: int = COMMON_DEFAULT_SIZES
    made: list[WrittenStep] = field(default_factory=list)

    def steps(self, joined: tuple[str, ...] | None) -> Iterator[WrittenStep]:
        common, fork = self.listed.get(COMMON, ()), self.listed.get(FORK, ())
        forked = [factor for entry in fork for factor in entry.varied]
        if self.dialect is Dialect.FORK_AND_FINAL:
            forked = [factor for entry in common for factor in entry.varied] + forked
            self._change_sizes(common)
        else:
            self._benchmarks(COMMON, 1)
        self._change_sizes(fork)
        lineages = prod(len(factor.settings) for factor in forked)
        if self.custom_kernels:
            lineages = self.custom_kernels + (lineages if forked else 0)
        if lineages > 1:
            self._step(FORK, _names(forked), 1, lineages, 0)
        benchmarks = self._benchmarks(BENCHMARK_FORK, lineages)
        if joined is not None and lineages > 1:
            self._step(JOIN, list(joined), lineages, 1, 0 if benchmarks else self.sizes)
            lineages = min(lineages, self._keys(joined, forked))
        self._benchmarks(BENCHMARK_JOIN, lineages)
        final = self.listed.get(FINAL, ())
        choices = prod(len(factor.settings) for entry in final for factor in entry.varied)
        self._step(FINAL, [], lineages, choices, self._final_sizes(final))
        yield from self.made

    def _final_sizes(self, final: Sequence[ListedEntry]) -> int:
        listed = [entry.sizes for entry in final if entry.sizes is not None]
        if listed:
            return written_sizes(listed[0])
        return VERSION_2_FINAL_SIZES if self.dialect.is_dict_form else FINAL_DEFAULT_SIZES

    def _benchmarks(self, phase: str, lineages: int) -> int:
        """Add the steps of a phase, one for each dict that varies something, and return their number."""
        count = 0
        for entry in self.listed.get(phase, ()):
            self._change_sizes((entry,))
            if entry.varied:
                choices = prod(len(factor.settings) for factor in entry.varied)
                self._step(phase, _names(entry.varied), lineages, choices, self.sizes)
                count += 1
        return count

    def _change_sizes(self, entries: Sequence[ListedEntry]) -> None:
        for entry in entries:
            if entry.sizes is not None:
                self.sizes = written_sizes(entry.sizes)

    def _step(self, phase: str, names: Sequence[str], lineages: int, choices: int, sizes: int) -> None:
        shown = (
            list(names)
            if len(names) <= MOST_NAMED + 1
            else [*names[:MOST_NAMED], f"and_{len(names) - MOST_NAMED}_more"]
        )
        name = "_".join((f"{len(self.made) + 1:02}", SHORT[phase], *shown))
        self.made.append(WrittenStep(name, phase, lineages, choices, sizes))

    # --- joins ----------------------------------------------------------------------------------------------------

    def _keys(self, joined: Sequence[str], forked: Sequence[ListedFactor]) -> int:
        """The number of combinations of the joined values that lineages can have."""
        single, several = self._values(forked)
        needed = {name for each in joined for name in _needed(each, {*single, *several})}
        axes = [(names, settings) for names, settings in _axes(several) if needed & set(names)]
        if prod(len(settings) for _, settings in axes) > MOST_KEYS:
            return prod(len(settings) for _, settings in axes)
        keys = {
            tuple(_key(name, values) for name in joined)
            for chosen in islice(product(*(settings for _, settings in axes)), MOST_KEYS)
            for values in [_merged(single, chosen)]
        }
        # Parts of version 2 that make no whole sides have no macro tile: their lineages never ran.
        limit = self._ratio(single) if self.dialect.is_dict_form else None
        tile = list(joined).index("MacroTile") if "MacroTile" in joined else None
        whole = [key for key in keys if None not in key]
        kept = whole if limit is None or tile is None else [key for key in whole if is_within(key[tile], limit)]  # type: ignore[arg-type]
        return max(len(kept), 1)

    def _ratio(self, single: Mapping[str, Value]) -> int:
        return largest_ratio(self.most_oblong, single.get("MacroTileMaxRatio"), {*single, *self._names})

    @property
    def _names(self) -> set[str]:
        return {
            name for entries in self.listed.values() for entry in entries for f in entry.factors for name in f.names
        }

    def _values(self, forked: Sequence[ListedFactor]) -> tuple[dict[str, Value], dict[str, ListedFactor]]:
        """The parameters with one value, and the factor of each parameter that is forked or tuned before the join."""
        several: dict[str, ListedFactor] = {}
        single: dict[str, Value] = {}
        for phase in (INITIAL, COMMON, FORK, BENCHMARK_FORK):
            for entry in self.listed.get(phase, ()):
                for factor in entry.factors:
                    if factor.varies and (phase == BENCHMARK_FORK or any(factor is each for each in forked)):
                        several.update(dict.fromkeys(map(_newer, factor.names), factor))
                    else:
                        for name, node in factor.settings[0].items():
                            single[_newer(name)] = plain_or_text(node)
        return {name: value for name, value in single.items() if name not in several}, several


def _axes(several: Mapping[str, ListedFactor]) -> Iterator[tuple[tuple[str, ...], list[dict[str, Value]]]]:
    for factor in {id(factor): factor for factor in several.values()}.values():
        settings = [{_newer(name): plain_or_text(node) for name, node in each.items()} for each in factor.settings]
        yield tuple(map(_newer, factor.names)), settings


def _merged(single: Mapping[str, Value], chosen: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    values = dict(single)
    for setting in chosen:
        values.update(setting)
    return values


def _newer(name: str) -> str:
    return RENAMED.get(name) or OLDER_NAMES.get(name) or name


def _needed(name: str, present: set[str]) -> set[str]:
    """The parameters on which a joined value depends."""
    if name == "MacroTile":
        return {"WorkGroup", "ThreadTile", *PARTS}
    if name == "DepthU" and name not in present:
        return {"LoopUnroll", "WorkGroup", *FORMULAS[0].parameters}
    return {_newer(name)}


def _key(name: str, values: Mapping[str, Value]) -> Value | None:
    """The value of a joined name: a macro tile, a depth, or the parameter itself."""
    if name == "MacroTile":
        return macro_tile(_sides("WorkGroup", values), _sides("ThreadTile", values))
    if name == "DepthU" and name not in values:
        unroll, split = values.get("LoopUnroll", 8), values.get("SplitU", 1)
        return unroll * split if is_integer(unroll) and is_integer(split) else (unroll, split)
    return values.get(_newer(name))


def _sides(target: str, values: Mapping[str, Value]) -> Value | None:
    if target in values:
        return values[target]
    formula = formula_for(target, set(values))
    if formula is None:
        return (16, 16, 1) if target == "WorkGroup" else (4, 4)
    return formula.of({name: value for name, value in values.items() if name in formula.parameters})


def _names(factors: Sequence[ListedFactor]) -> list[str]:
    return [name for factor in factors for name in factor.names]
