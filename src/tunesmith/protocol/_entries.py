"""One phase of a tuning file as entries: a dict each, with the sizes that it sets and the parameters that it varies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tunesmith.problems import Node, shown, unknown_key
from tunesmith.records import Configuration, UserError, Value
from tunesmith.spaces import Space

from ._notes import Notes
from ._tensile import FOREIGN_PARAMETERS, RENAMED_PARAMETERS


@dataclass(frozen=True, slots=True)
class Factor:
    """Settings of which one is taken: of one parameter, or of several that a group sets together."""

    names: tuple[str, ...]
    settings: tuple[Configuration, ...]
    place: str

    @property
    def varies(self) -> bool:
        return len(self.settings) > 1


@dataclass(frozen=True, slots=True)
class Entry:
    """One dict of a phase. `sizes` is the value of its ProblemSizes; they hold for its own step already."""

    place: str
    factors: tuple[Factor, ...] = ()
    sizes: Node | None = None

    @property
    def varied(self) -> tuple[Factor, ...]:
        return tuple(factor for factor in self.factors if factor.varies)


@dataclass(frozen=True)
class EntryReader:
    """Reads phases against one space of parameters."""

    space: Space
    notes: Notes

    def entries(self, phase: str, node: Node | None) -> tuple[Entry, ...]:
        """The dicts of a phase; a single dict counts as a list of it, and nothing as an empty list."""
        return tuple(self._entry(phase, item) for item in items(phase, node))

    def _entry(self, phase: str, item: Node) -> Entry:
        factors: list[Factor] = []
        sizes = None
        for name, value in item.mapping(f"an item of {phase}").items():
            place = item.at(name)
            if name == "ProblemSizes":
                sizes = value
            elif name == "Groups" and phase == "ForkParameters":
                factors += [self._group(each) for each in value.sequence("Groups")]
            else:
                factors.append(self._factor(name, value, place))
        return Entry(item.place, tuple(factors), sizes)

    def _factor(self, name: str, node: Node, place: str) -> Factor:
        """One parameter with its values, each once. A value that is no list counts as a list of it."""
        parameter = self.space[self.known(name, place)]
        listed = node.content if isinstance(node.content, tuple) else (node,)
        if not listed:
            raise UserError(place, f"{name} has no values", f"list at least one, such as [{shown(parameter.default)}]")
        values = [parameter.check(item.plain(name), item.place) for item in listed]
        settings = tuple(dict.fromkeys(Configuration({name: value}) for value in values))
        if len(settings) < len(values):
            self.notes.say(place, f"{name} lists a value more than once; it is measured once")
        return Factor((name,), settings, place)

    def _group(self, node: Node) -> Factor:
        """A list of dicts, each of which sets the same parameters to one value."""
        members = node.sequence("an item of Groups")
        if not members:
            raise UserError(node.place, "an item of Groups is empty", "list at least one dict, or remove it")
        settings = [Configuration(self._setting(member)) for member in members]
        names = set(settings[0])
        for member, setting in zip(members, settings, strict=True):
            if set(setting) != names:
                what = f"this member of a group sets {_listed(setting)}, the first sets {_listed(settings[0])}"
                raise UserError(member.place, what, "let all members of a group set the same parameters")
        return Factor(tuple(settings[0]), tuple(dict.fromkeys(settings)), node.place)

    def _setting(self, member: Node) -> Iterator[tuple[str, Value]]:
        for name, value in member.mapping("a member of a group").items():
            place = member.at(name)
            yield name, self.space[self.known(name, place)].check(value.plain(name), place)

    def known(self, name: str, place: str) -> str:
        """`name`, when it is a parameter; else the UserError that helps most."""
        if name in self.space:
            return name
        if name in RENAMED_PARAMETERS:
            raise UserError(place, f"{name} is no parameter any more", f"use {RENAMED_PARAMETERS[name]}")
        if name in FOREIGN_PARAMETERS:
            raise UserError(place, f"{name} is a parameter of Tensile's that no kernel here has", "remove it")
        raise unknown_key(place, name, [parameter.name for parameter in self.space], "the space of parameters")


def items(phase: str, node: Node | None) -> Sequence[Node]:
    """The items of a phase's list; a phase that is absent or empty has none."""
    if node is None or node.is_null:
        return ()
    return (node,) if isinstance(node.content, dict) else node.sequence(phase)


def _listed(names: Configuration) -> str:
    return ", ".join(names) or "nothing"
