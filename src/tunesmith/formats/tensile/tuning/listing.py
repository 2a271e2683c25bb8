"""The phases of a size group as the file lists them: dicts with their parameters, values and sizes, nothing changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tunesmith.problems import Node
from tunesmith.records import Value

from .layout import PHASES, SIZES

GROUPS = "Groups"


@dataclass(frozen=True, slots=True)
class ListedFactor:
    """Alternatives of one parameter, or of several parameters that a group sets together."""

    settings: tuple[Mapping[str, Node], ...]
    location: str
    is_group: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for setting in self.settings for name in setting))

    @property
    def varies(self) -> bool:
        return len(self.settings) > 1


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """One dict of a phase: its parameters, and the sizes that hold from here on."""

    location: str
    factors: tuple[ListedFactor, ...] = ()
    sizes: Node | None = None
    sizes_location: str = ""

    @property
    def varied(self) -> tuple[ListedFactor, ...]:
        return tuple(factor for factor in self.factors if factor.varies)


ListedPhases = dict[str, tuple[ListedEntry, ...]]
"""The entries of each phase with dicts that is laid out as it should be."""


def listed_phases(group: Node) -> ListedPhases:
    """The phases of a size group that are lists of dicts. A phase that is laid out otherwise is absent, so that it can
    be refused as it stands."""
    phases: ListedPhases = {}
    content = group.content if isinstance(group.content, dict) else {}
    for name in PHASES:
        if name != "JoinParameters" and name in content and (entries := _entries(content[name])) is not None:
            phases[name] = entries
    return phases


def _entries(node: Node) -> tuple[ListedEntry, ...] | None:
    if node.is_null:
        return ()
    if isinstance(node.content, tuple) and node.content and all(_is_range_part(item) for item in node.content):
        # The design of 2016 has the bare sizes of the final step as the phase itself.
        return (ListedEntry(node.location, (), node, node.location),)
    items = node.content if isinstance(node.content, tuple) else (node,)
    entries = [_entry(item) for item in items]
    return None if None in entries else tuple(entry for entry in entries if entry)


def _is_range_part(item: Node) -> bool:
    is_numbers = isinstance(item.content, tuple) and all(isinstance(number.content, int) for number in item.content)
    return is_numbers or isinstance(item.content, int)


def _entry(item: Node) -> ListedEntry | None:
    """One dict, or the list of dicts by which the design of 2016 has several parameters in one step."""
    dicts = item.content if isinstance(item.content, tuple) else (item,)
    factors, sizes, sizes_location = list[ListedFactor](), None, ""
    for part in dicts:
        if not isinstance(part.content, dict):
            return None
        for name, value in part.content.items():
            location = part.at(name)
            if name == SIZES:
                sizes, sizes_location = value, location
            elif name == GROUPS:
                groups = _groups(value)
                if groups is None:
                    return None
                factors += groups
            else:
                listed = value.content if isinstance(value.content, tuple) else (value,)
                factors.append(ListedFactor(tuple({name: each} for each in listed) or ({name: value},), location))
    return ListedEntry(item.location, tuple(factors), sizes, sizes_location)


def _groups(node: Node) -> list[ListedFactor] | None:
    factors = []
    for group in node.content if isinstance(node.content, tuple) else ():
        members = group.content if isinstance(group.content, tuple) else ()
        settings = tuple(member.content for member in members if isinstance(member.content, dict))
        if not settings or len(settings) < len(members):
            return None
        factors.append(ListedFactor(settings, group.location, is_group=True))
    return factors if isinstance(node.content, tuple) else None


def plain_or_text(node: Node) -> Value:
    """A node's value without locations; the word `{...}` for a mapping and `null` for nothing."""
    match node.content:
        case tuple() as items:
            return tuple(plain_or_text(item) for item in items)
        case dict():
            return "{...}"
        case None:
            return "null"
        case scalar:
            return scalar


def join_names(group: Node) -> tuple[str, ...] | None:
    """The words that a group's JoinParameters list; () for an empty list; None for an absent or null key, or a key with
    something else."""
    node = group.content.get("JoinParameters") if isinstance(group.content, dict) else None
    if node is None or node.is_null:
        return None
    items = node.content if isinstance(node.content, tuple) else (node,)
    return tuple(item.content for item in items if isinstance(item.content, str))


def located_values(factor: ListedFactor, name: str) -> Iterator[Node]:
    """The nodes of a parameter's values, in the file's order."""
    return (setting[name] for setting in factor.settings if name in setting)
