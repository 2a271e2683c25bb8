"""Reads one phase of a tuning file as entries: one for each dict, with its sizes and its parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.problems import Mistakes, Node, shortened, unknown_key
from tunesmith.records import Configuration, UserError, Value
from tunesmith.spaces import Space

from .notes import Notes
from .tensile import FOREIGN_PARAMETERS, RENAMED_PARAMETERS

SIZES, GROUPS = "ProblemSizes", "Groups"
"""The keys of a phase that are not parameters."""


@dataclass(frozen=True, slots=True)
class Factor:
    """Alternative settings of one parameter, or of several parameters that a group sets together."""

    names: tuple[str, ...]
    settings: tuple[Configuration, ...]
    location: str

    @property
    def varies(self) -> bool:
        return len(self.settings) > 1


@dataclass(frozen=True, slots=True)
class PhaseEntry:
    """One dict of a phase. `sizes` is the value of its ProblemSizes, which hold from the dict's own step on."""

    location: str
    factors: tuple[Factor, ...] = ()
    sizes: Node | None = None

    @property
    def varied(self) -> tuple[Factor, ...]:
        return tuple(factor for factor in self.factors if factor.varies)


@dataclass(frozen=True)
class EntryReader:
    """Reads phases with one space of parameters. Mistakes are added to `mistakes`, and wrong parts are left out."""

    space: Space
    notes: Notes
    mistakes: Mistakes

    def entries(self, phase: str, node: Node | None) -> tuple[PhaseEntry, ...]:
        """The dicts of a phase. A single dict counts as a list of one dict, a missing phase as an empty list."""
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
        """One parameter with its distinct values. A value that is no list counts as a list of one value."""
        parameter = self.space[self.known(name, location, phase)]
        listed = node.content if isinstance(node.content, tuple) else (node,)
        if not listed:
            raise UserError(
                location, f"{name} has no values", f"list at least one, such as [{shortened(parameter.default)}]"
            )
        mistakes = Mistakes()
        values = mistakes.each(lambda item: parameter.check(item.plain(name), item.location), listed)
        mistakes.tell()
        settings = tuple(dict.fromkeys(Configuration({name: value}) for value in values))
        if len(settings) < len(values):
            self.notes.add(location, f"{name} lists a value more than once; it is measured once")
        return Factor((name,), settings, location)

    def _group(self, node: Node) -> Factor:
        """The alternatives of a group: a list of dicts, each of which sets the same parameters."""
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
        """`name` if it is a parameter. Raises the most helpful UserError otherwise, from all keys that the phase may
        have."""
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
        """The remedy for a renamed parameter: the replacement if this space has it, else to remove the parameter."""
        replacement = RENAMED_PARAMETERS[name]
        is_available = any(word in self.space for word in re.findall(r"\w+", replacement))
        return f"use {replacement}" if is_available else "remove it"


def items(phase: str, node: Node | None) -> Sequence[Node]:
    """The items of a phase's list; empty for a missing or empty phase."""
    if node is None or node.is_null:
        return ()
    return (node,) if isinstance(node.content, dict) else node.sequence(phase)


def _listed(names: Configuration) -> str:
    return ", ".join(names) or "nothing"
