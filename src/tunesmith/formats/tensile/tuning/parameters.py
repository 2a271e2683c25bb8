"""The parameters of a size group in our names and values: renamed, combined, held or left as they stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import Protocol

from tunesmith.problems import Node
from tunesmith.records import Value

from .geometry import OLDER_NAMES, PARTS, SideFormula, formula_for
from .layout import PHASES
from .ledger import NameLedger
from .listing import ListedEntry, ListedFactor, ListedPhases, located_values, plain_or_text
from .names import AMBIGUOUS_WIDTHS, HELD, MEANINGS, ONLY_BESIDE_SCHEDULE, RENAMED, VALUES, Instead
from .oblong import SIDES, RatioLimit, without_oblong_tiles
from .record import Fate

SECTION = "parameter"
INITIAL, COMMON, FORK = PHASES[0], PHASES[1], PHASES[2]
MOST_COMBINED = 100_000
"""The most combinations of older parameters that are turned into a list of work-groups or thread tiles."""


class OwnParameter(Protocol):
    """A parameter that some kernel here has."""

    @property
    def default(self) -> Value: ...


class Vocabulary(Protocol):
    """The parameters that kernels here have, by name."""

    def __contains__(self, name: object) -> bool: ...
    def __getitem__(self, name: str) -> OwnParameter: ...


@dataclass(frozen=True)
class ParameterTranslator:
    """Translates the phases of one size group. Names and values that neither Tensile nor a kernel here knows stay, so
    that they are refused where everything else is checked. `limit` is the limit of macro tiles in a dict file."""

    vocabulary: Vocabulary
    ledger: NameLedger
    limit: RatioLimit | None = None

    def phases(self, listed: ListedPhases) -> ListedPhases:
        """The phases in our names. Of a parameter that several phases give, the last with several values stays."""
        listed = {phase: tuple(map(self._renamed, entries)) for phase, entries in listed.items()}
        limit = self.limit.ratio(listed) if self.limit else None
        listed = self._combined(listed)
        if limit is not None:
            usual = {name: _node(self.vocabulary[name].default, "") for name in SIDES if name in self.vocabulary}
            listed = without_oblong_tiles(listed, limit, usual, self.ledger)
        with_schedule = _uses_schedule(listed)
        listed = {
            phase: tuple(self._translated_entry(entry, with_schedule) for entry in entries)
            for phase, entries in listed.items()
        }
        return self._without_repeats(listed)

    def _renamed(self, entry: ListedEntry) -> ListedEntry:
        return replace(entry, factors=tuple(self._renamed_factor(factor) for factor in entry.factors))

    def _renamed_factor(self, factor: ListedFactor) -> ListedFactor:
        older = {name: RENAMED.get(name) or OLDER_NAMES.get(name) for name in factor.names}
        for name, newer in older.items():
            if newer:
                self._note(name, Fate.TRANSLATED, newer, factor)
        settings = tuple({older.get(name) or name: node for name, node in each.items()} for each in factor.settings)
        return replace(factor, settings=settings)

    # --- work-groups and thread tiles of version 2 --------------------------------------------------------------------

    def _combined(self, listed: ListedPhases) -> ListedPhases:
        """The phases with WorkGroup and ThreadTile instead of the parts that version 2 gives."""
        names = {name for entries in listed.values() for entry in entries for f in entry.factors for name in f.names}
        if not names & PARTS:
            return listed
        made: dict[tuple[str, int], list[ListedFactor]] = {}
        for target in SIDES:
            formula = formula_for(target, names)
            if formula is not None and target not in names:
                for position, factor in self._list_of_sides(formula, listed):
                    made.setdefault(position, []).append(factor)
        return {
            phase: tuple(
                replace(
                    entry,
                    factors=(
                        *(f for f in entry.factors if f.is_group or not set(f.names) & PARTS),
                        *made.get((phase, index), ()),
                    ),
                )
                for index, entry in enumerate(entries)
            )
            for phase, entries in listed.items()
        }

    def _list_of_sides(
        self, formula: SideFormula, listed: ListedPhases
    ) -> Iterator[tuple[tuple[str, int], ListedFactor]]:
        """The list of work-groups or thread tiles, with its phase and the index of its dict."""
        found = [
            (phase, index, factor)
            for phase in PHASES
            for index, entry in enumerate(listed.get(phase, ()))
            for factor in entry.factors
            if not factor.is_group and factor.names[0] in formula.parameters
        ]
        if not found:
            # Only groups of today's fork have them. No version had both, so they stay as they stand.
            return
        position = _position([(phase, index) for phase, index, factor in found if factor.varies], found)
        values: dict[str, tuple[Value, ...]] = {}
        for phase, index, factor in found:
            name, listed_values = factor.names[0], tuple(map(plain_or_text, located_values(factor, factor.names[0])))
            is_combined = factor.varies and (phase == position[0] == FORK or (phase, index) == position)
            becomes = f"a part of {formula.target}"
            if factor.varies and not is_combined:
                becomes = f"{becomes}, at its first value: {formula.target} is chosen in {position[0]}"
            self._note(name, Fate.TRANSLATED if is_combined or not factor.varies else Fate.HELD, becomes, factor)
            if is_combined or name not in values:
                values[name] = listed_values if is_combined else listed_values[:1]
        names, location = list(values), found[0][2].location
        combinations = (dict(zip(names, chosen, strict=True)) for chosen in product(*values.values()))
        found_sides = map(formula.of, islice(combinations, MOST_COMBINED))
        sides = dict.fromkeys(made for made in found_sides if made is not None)
        if not sides:
            self.ledger.add(
                SECTION, formula.target, Fate.HELD, "its default: no combination makes whole sides", location
            )
            return
        nodes = [Node(location, tuple(Node(location, side) for side in each)) for each in sides]
        yield position, ListedFactor(tuple({formula.target: node} for node in nodes), location)

    # --- one dict -------------------------------------------------------------------------------------------------

    def _translated_entry(self, entry: ListedEntry, with_schedule: bool) -> ListedEntry:
        factors = []
        for factor in entry.factors:
            own = self._group(factor, with_schedule) if factor.is_group else self._single(factor, with_schedule)
            factors += [own] if own else []
        return replace(entry, factors=tuple(factors))

    def _single(self, factor: ListedFactor, with_schedule: bool) -> ListedFactor | None:
        """A parameter with its values in our terms, each once; None if the parameter is held."""
        (name,) = factor.names
        if reason := self._held(name, with_schedule):
            self._note(name, Fate.HELD, reason, factor, weak=name in self.vocabulary)
            return None
        values: dict[tuple[type, Value], Node] = {}
        uses_default = False
        for node in located_values(factor, name):
            own = self._value(name, node)
            uses_default |= own is Instead.DEFAULT
            if own is Instead.DEFAULT and factor.varies:
                own = _node(self.vocabulary[name].default, node.location)
            if isinstance(own, Node):
                plain = plain_or_text(own)
                values.setdefault((type(plain), plain), own)
        if not values and uses_default:
            return None
        return replace(factor, settings=tuple({name: node} for node in values.values())) if values else None

    def _group(self, factor: ListedFactor, with_schedule: bool) -> ListedFactor | None:
        """A group of a fork. All its members set the same parameters, which are at their defaults where the file sets
        them in other members only."""
        members = []
        for setting in factor.settings:
            own = {}
            for name, node in setting.items():
                if reason := self._held(name, with_schedule):
                    weak = name in self.vocabulary
                    self.ledger.add(SECTION, name, Fate.HELD, reason, node.location, (plain_or_text(node),), weak)
                elif isinstance(value := self._value(name, node), Node):
                    own[name] = value
            members.append(own)
        names = dict.fromkeys(name for member in members for name in member)
        if not names:
            return None
        whole = [
            {name: member.get(name) or self._default(name, factor.location) for name in names} for member in members
        ]
        distinct = {
            tuple((name, plain_or_text(node)) for name, node in member.items()): member for member in reversed(whole)
        }
        return replace(factor, settings=tuple(reversed(distinct.values())))

    def _default(self, name: str, location: str) -> Node:
        default = self.vocabulary[name].default if name in self.vocabulary else None
        return _node(default, location)

    def _held(self, name: str, with_schedule: bool) -> str:
        """What holds instead of a parameter without a meaning; "" for one that has a meaning, or is unknown."""
        if name in ONLY_BESIDE_SCHEDULE and not with_schedule:
            return ONLY_BESIDE_SCHEDULE[name]
        return "" if name in self.vocabulary else HELD.get(name, "")

    def _value(self, name: str, node: Node) -> Node | Instead:
        """A value in our terms: the node itself if nothing is to be changed."""
        if name == "MatrixInstruction" and isinstance(node.content, tuple):
            self.ledger.add(SECTION, name, Fate.HELD, MEANINGS[name], node.location, (plain_or_text(node),))
            return Instead.LEFT_OUT
        table = VALUES.get(name)
        value = node.content
        if table is None or isinstance(value, (bool, tuple, dict)) or value is None or value not in table:
            return node
        own = table[value]
        fate = Fate.HELD if isinstance(own, Instead) else Fate.TRANSLATED
        becomes = MEANINGS.get(name) or (own.value if isinstance(own, Instead) else f"{own}")
        self.ledger.add(SECTION, name, fate, becomes, node.location, (value,), weak=value in AMBIGUOUS_WIDTHS)
        return own if isinstance(own, Instead) else _node(own, node.location)

    # --- several phases -------------------------------------------------------------------------------------------

    def _without_repeats(self, listed: ListedPhases) -> ListedPhases:
        kept: dict[str, ListedFactor] = {}
        every = [f for phase in PHASES[1:] for entry in listed.get(phase, ()) for f in entry.factors]
        for factor in every:
            for name in factor.names:
                if name not in kept or factor.varies or not kept[name].varies:
                    kept[name] = factor
        repeated = [f for f in every if any(kept[name] is not f for name in f.names)]
        for factor in repeated:
            for name in factor.names:
                other = kept[name]
                if other is not factor:
                    what = f"its values at {other.location}"
                    self.ledger.add(SECTION, name, Fate.DROPPED, what, factor.location, _plain(factor, name), weak=True)
        return {
            phase: entries
            if phase == INITIAL
            else tuple(
                replace(entry, factors=tuple(f for f in entry.factors if not any(f is each for each in repeated)))
                for entry in entries
            )
            for phase, entries in listed.items()
        }

    def _note(self, name: str, fate: Fate, becomes: str, factor: ListedFactor, weak: bool = False) -> None:
        self.ledger.add(SECTION, name, fate, becomes, factor.location, _plain(factor, name), weak)


def _position(varied: list[tuple[str, int]], found: list[tuple[str, int, ListedFactor]]) -> tuple[str, int]:
    """Where a combined list stands: in the fork if a part varies there, else where the first part varies, else where
    the last part with one value is given outside of the initial values."""
    in_fork = [position for position in varied if position[0] == FORK]
    if in_fork or varied:
        return (in_fork or varied)[0]
    outside = [(phase, index) for phase, index, _ in found if phase != INITIAL]
    return outside[-1] if outside else found[0][:2]


def _uses_schedule(listed: ListedPhases) -> bool:
    """Whether some value names a kernel with a Schedule, or the language of such kernels."""
    for entries in listed.values():
        for factor in (factor for entry in entries for factor in entry.factors):
            for setting in factor.settings:
                if "Schedule" in setting or any(
                    name == "KernelLanguage" and node.content == "Triton" for name, node in setting.items()
                ):
                    return True
    return False


def _plain(factor: ListedFactor, name: str) -> Iterable[Value]:
    return (plain_or_text(node) for node in located_values(factor, name))


def _node(value: Value | None, location: str) -> Node:
    if isinstance(value, tuple):
        return Node(location, tuple(_node(item, location) for item in value))
    return Node(location, value)


def own_names(listed: Mapping[str, tuple[ListedEntry, ...]], phase: str) -> set[str]:
    """The parameters with several values in a phase."""
    return {name for entry in listed.get(phase, ()) for factor in entry.varied for name in factor.names}
