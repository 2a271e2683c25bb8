"""One phase of a tuning file as entries: a dict each, with the sizes that it sets and the parameters that it varies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.problems import Mistakes, Node, shown, unknown_key
from tunesmith.records import Configuration, UserError, Value
from tunesmith.spaces import Space

from .notes import Notes
from .tensile import FOREIGN_PARAMETERS, RENAMED_PARAMETERS

SIZES, GROUPS = "ProblemSizes", "Groups"
"""Keys of a phase that are no parameters."""


@dataclass(frozen=True, slots=True)
class Factor:
    """Settings of which one is taken: of one parameter, or of several that a group sets together."""

    names: tuple[str, ...]
    settings: tuple[Configuration, ...]
    location: str

    @property
    def varies(self) -> bool:
        return len(self.settings) > 1


@dataclass(frozen=True, slots=True)
class PhaseEntry:
    """One dict of a phase. `sizes` is the value of its ProblemSizes; they hold for its own step already."""

    location: str
    factors: tuple[Factor, ...] = ()
    sizes: Node | None = None

    @property
    def varied(self) -> tuple[Factor, ...]:
        return tuple(factor for factor in self.factors if factor.varies)


@dataclass(frozen=True)
class EntryReader:
    """Reads phases against one space of parameters; what is wrong goes to `mistakes` and is left out."""

    space: Space
    notes: Notes
    mistakes: Mistakes

    def entries(self, phase: str, node: Node | None) -> tuple[PhaseEntry, ...]:
        """The dicts of a phase; a single dict counts as a list of it, and nothing as an empty list."""
        with self.mistakes.caught():
            return tuple(self.mistakes.each(lambda item: self._entry(phase, item), items(phase, node)))
        return ()

    def _entry(self, phase: str, item: Node) -> PhaseEntry:
        factors: list[Factor] = []
        sizes = None
        for name, value in item.mapping(f"an item of {phase}").items():
            with self.mistakes.caught():
                if name == SIZES:
                    sizes = value
                elif name == GROUPS and phase == "ForkParameters":
                    factors += self.mistakes.each(self._group, value.sequence(GROUPS))
                else:
                    factors.append(self._factor(name, value, item.at(name), phase))
        return PhaseEntry(item.location, tuple(factors), sizes)

    def _factor(self, name: str, node: Node, location: str, phase: str) -> Factor:
        """One parameter with its values, each once. A value that is no list counts as a list of it."""
        parameter = self.space[self.known(name, location, phase)]
        listed = node.content if isinstance(node.content, tuple) else (node,)
        if not listed:
            raise UserError(
                location, f"{name} has no values", f"list at least one, such as [{shown(parameter.default)}]"
            )
        mistakes = Mistakes()
        values = mistakes.each(lambda item: parameter.check(item.plain(name), item.location), listed)
        mistakes.tell()
        settings = tuple(dict.fromkeys(Configuration({name: value}) for value in values))
        if len(settings) < len(values):
            self.notes.say(location, f"{name} lists a value more than once; it is measured once")
        return Factor((name,), settings, location)

    def _group(self, node: Node) -> Factor:
        """A list of dicts, each of which sets the same parameters to one value."""
        members = node.sequence("an item of Groups")
        if not members:
            raise UserError(node.location, "an item of Groups is empty", "list at least one dict, or remove it")
        mistakes = Mistakes()
        settings = mistakes.each(self._setting, members)
        mistakes.tell()
        names = set(settings[0])
        for member, setting in zip(members, settings, strict=True):
            if set(setting) != names:
                what = f"this member of a group sets {_listed(setting)}, the first sets {_listed(settings[0])}"
                raise UserError(member.location, what, "let all members of a group set the same parameters")
        return Factor(tuple(settings[0]), tuple(dict.fromkeys(settings)), node.location)

    def _setting(self, member: Node) -> Configuration:
        mistakes, values = Mistakes(), dict[str, Value]()
        for name, value in member.mapping("a member of a group").items():
            with mistakes.caught():
                location = member.at(name)
                values[name] = self.space[self.known(name, location)].check(value.plain(name), location)
        mistakes.tell()
        return Configuration(values)

    def known(self, name: str, location: str, phase: str = "") -> str:
        """`name`, when it is a parameter; else the UserError that helps most, of all keys that the phase may have."""
        if name in self.space:
            return name
        if name in RENAMED_PARAMETERS:
            raise UserError(location, f"{name} is no parameter any more", self._instead(name))
        if name in FOREIGN_PARAMETERS:
            raise UserError(location, f"{name} is a parameter of Tensile's that no kernel here has", "remove it")
        keys = [SIZES] if phase else []
        keys += [GROUPS] if phase == "ForkParameters" else []
        raise unknown_key(
            location, name, [*(parameter.name for parameter in self.space), *keys], "the space of parameters"
        )

    def _instead(self, name: str) -> str:
        """What to use instead, where this space has it."""
        said = RENAMED_PARAMETERS[name]
        named = [word for word in re.findall(r"\w+", said) if word in self.space]
        return f"use {said}" if named else "remove it"


def items(phase: str, node: Node | None) -> Sequence[Node]:
    """The items of a phase's list; a phase that is absent or empty has none."""
    if node is None or node.is_null:
        return ()
    return (node,) if isinstance(node.content, dict) else node.sequence(phase)


def _listed(names: Configuration) -> str:
    return ", ".join(names) or "nothing"
