"""Macro tiles of dict files: those more oblong than the file's limit are left out of the fork."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tunesmith.problems import Node

from .geometry import is_within, largest_ratio, macro_tile
from .layout import FORK, PHASES
from .ledger import NameLedger
from .listing import ListedFactor, ListedPhases, plain_or_text

SIDES = ("WorkGroup", "ThreadTile")
"""The parameters that make a macro tile."""
MOST_PAIRS = 100_000
"""The most pairs of a work-group and a thread tile that are looked at. A fork with more is left as it is."""


@dataclass(frozen=True, slots=True)
class RatioLimit:
    """The limit of macro tiles in a dict file. `of_file` is MaxMacroTileRatio of the settings, or None."""

    of_file: int | None

    def ratio(self, listed: ListedPhases) -> int:
        """The largest ratio of a macro tile's sides in a size group with these phases, which have the file's names."""
        factors = [factor for entries in listed.values() for entry in entries for factor in entry.factors]
        own = [factor for factor in factors if factor.names == ("MacroTileMaxRatio",)]
        of_group = plain_or_text(own[-1].settings[0]["MacroTileMaxRatio"]) if own else None
        return largest_ratio(self.of_file, of_group, {name for factor in factors for name in factor.names})


def without_oblong_tiles(
    listed: ListedPhases, ratio: int, usual: Mapping[str, Node], ledger: NameLedger
) -> ListedPhases:
    """The phases without macro tiles above the ratio. A fork over work-groups and thread tiles becomes one over pairs
    of both; of a fork over one of them, values are left out.

    `usual` has the kernel's defaults. Nothing changes if another phase varies the tiles, if there are more than
    `MOST_PAIRS`, or if none would be left.
    """
    factors = {name: _factors(listed, PHASES, name) for name in SIDES}
    forked = {name: factor for name in SIDES for factor in _factors(listed, (FORK,), name) if factor.varies}
    if not forked or any(f.varies and f is not forked.get(name) for name in SIDES for f in factors[name]):
        return listed
    settings = {
        name: forked[name].settings if name in forked else factors[name][-1].settings if factors[name] else ()
        for name in SIDES
    }
    work_groups, thread_tiles = (settings[name] or ({name: usual[name]},) for name in SIDES)
    if len(work_groups) * len(thread_tiles) > MOST_PAIRS:
        return listed
    pairs = [{**work_group, **thread_tile} for work_group in work_groups for thread_tile in thread_tiles]
    kept = [pair for pair in pairs if _is_within(pair, ratio)]
    if len(kept) in (0, len(pairs)):
        return listed
    first = next(iter(forked.values()))
    ledger.remark(first.location, f"macro tiles more oblong than {ratio} to 1 are left out, as in version 2")
    left = ListedFactor(
        tuple({name: pair[name] for name in forked} for pair in kept), first.location, is_group=len(forked) > 1
    )
    others = [factor for factor in forked.values() if factor is not first]
    fork = tuple(
        replace(entry, factors=tuple(left if f is first else f for f in entry.factors if f not in others))
        for entry in listed[FORK]
    )
    return {**listed, FORK: fork}


def _factors(listed: ListedPhases, phases: tuple[str, ...], name: str) -> list[ListedFactor]:
    factors = [factor for phase in phases for entry in listed.get(phase, ()) for factor in entry.factors]
    return [factor for factor in factors if factor.names == (name,) and not factor.is_group]


def _is_within(pair: Mapping[str, Node], ratio: int) -> bool:
    tile = macro_tile(*(plain_or_text(pair[name]) for name in SIDES))
    return tile is not None and is_within(tile, ratio)
