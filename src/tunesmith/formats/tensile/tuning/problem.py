"""Translates one problem of a Tensile tuning file: its type, and the phases and sizes of its size groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tunesmith.problems import Node

from .counting import joined_over, written_group
from .defaults import untold_lists
from .joins import translated_join
from .layout import CUSTOM_KERNELS, FINAL, PHASES, SIZES, LaidOutProblem
from .ledger import NameLedger
from .listing import GROUPS, ListedEntry, ListedPhases, listed_phases, plain_or_text
from .oblong import RatioLimit
from .parameters import ParameterTranslator, Vocabulary
from .record import Dialect, Fate, RejectedProblem, WrittenGroup
from .sizes import SizeTranslator
from .types import translated_type, type_name

INITIAL, COMMON, FORK, JOIN = PHASES[0], PHASES[1], PHASES[2], "JoinParameters"
_VERSION_2_FINAL = (16, 16, 16, 128)
"""The sizes of each index in the final step of version 2, if a file gives none."""


@dataclass(frozen=True)
class TranslatedProblem:
    """A problem's entry in our form, None if no kernel computes it; its groups as written; the rejection."""

    entry: Node | None
    groups: tuple[WrittenGroup, ...]
    rejection: RejectedProblem | None


@dataclass(frozen=True)
class ProblemTranslator:
    """Translates the problems of a file in one dialect.

    `scalars` are Alpha and Beta of the file's settings, `most_oblong` their MaxMacroTileRatio.
    """

    dialect: Dialect
    vocabulary: Vocabulary
    scalars: Mapping[str, float]
    most_oblong: int | None
    ledger: NameLedger

    def problem(self, problem: LaidOutProblem) -> TranslatedProblem:
        """The problem in our form. One of another tool's operation stays as it stands."""
        name = type_name(problem.type)
        written = tuple(
            written_group(group, number, name, self.dialect, self.most_oblong)
            for number, group in enumerate(problem.groups)
        )
        if not problem.is_tensile:
            return TranslatedProblem(problem.entry, written, None)
        own_type, rejection = translated_type(problem.type, self.scalars, self.ledger)
        if rejection is not None:
            self._look_for_signs(problem)
            location = problem.type.at(rejection.detail.partition(":")[0])
            refused = RejectedProblem(location, name, rejection.reason, rejection.detail, written)
            return TranslatedProblem(None, written, refused)
        groups = tuple(self._group(group, problem) for group in problem.groups)
        return TranslatedProblem(Node(problem.entry.location, (own_type, *groups)), written, None)

    def _look_for_signs(self, problem: LaidOutProblem) -> None:
        """Note whether the groups of a rejected problem have a sign of Tensile. Their names are not told."""
        looking = replace(self, ledger=NameLedger())
        for group in problem.groups:
            looking._group(group, problem)
        self.ledger.is_foreign |= looking.ledger.is_foreign

    def _group(self, group: Node, problem: LaidOutProblem) -> Node:
        if not isinstance(group.content, dict):
            return group
        listed = listed_phases(group)
        limit = RatioLimit(self.most_oblong) if self.dialect.is_dict_form else None
        own = ParameterTranslator(self.vocabulary, self.ledger, limit).phases(listed)
        own = self._with_todays_fork(own, group)
        sizes = self._sizes_of(problem.type)
        content: dict[str, Node] = {}
        for name, node in group.content.items():
            if name == CUSTOM_KERNELS:
                becomes = "left out: they are assembly kernels of Tensile's own tree"
                self.ledger.add("size group", name, Fate.DROPPED, becomes, group.at(name), (plain_or_text(node),))
            elif name in own:
                content[name] = _phase(node.location, own[name], sizes)
            elif name != JOIN:
                content[name] = node
        for phase in (INITIAL, COMMON, FORK):
            if phase in own and phase not in content:
                content[phase] = _phase(group.location, own[phase], sizes)
        joined = self._join(group, own)
        if joined is not None:
            content[JOIN] = joined
        if self.dialect.is_dict_form:
            self._version_2_sizes(content, group, problem.type)
        if self.dialect is Dialect.VERSION_2:
            for sentence in untold_lists(group):
                self.ledger.remark(group.location, sentence)
        kept = {name: node for name, node in content.items() if name == JOIN or node.content not in ((), None)}
        return Node(group.location, kept, {name: group.at(name) for name in kept})

    def _join(self, group: Node, own: ListedPhases) -> Node | None:
        node = group.content.get(JOIN) if isinstance(group.content, dict) else None
        forked = {name for entry in own.get(FORK, ()) for factor in entry.varied for name in factor.names}
        joined = joined_over(group, self.dialect)
        location = group.at(JOIN)
        if not self.dialect.is_dict_form and joined is None:
            if node is not None and node.content == ():
                self.ledger.remark(location, "empty JoinParameters are no join, as in version 3 and later")
                return None
            return node
        if self.dialect.is_dict_form and forked:
            if node is None:
                self.ledger.remark(location, "there are no JoinParameters: the macro tile is joined, as in version 2")
            elif not joined:
                self.ledger.remark(location, "JoinParameters are empty: one lineage is kept, as in version 2")
        return translated_join(node, joined, forked, location, self.ledger) if forked or joined else None

    def _with_todays_fork(self, own: ListedPhases, group: Node) -> ListedPhases:
        """In today's dialect, several values in BenchmarkCommonParameters are a fork."""
        varied = [entry for entry in own.get(COMMON, ()) if entry.varied]
        if self.dialect is not Dialect.FORK_AND_FINAL or not varied:
            return own
        what = f"several values in {COMMON} are a fork, as in today's Tensile"
        self.ledger.remark(varied[0].location, what)
        moved = [replace(entry, factors=entry.varied, sizes=None) for entry in varied]
        common = tuple(
            replace(entry, factors=tuple(factor for factor in entry.factors if not factor.varies))
            for entry in own[COMMON]
        )
        return {**own, COMMON: common, FORK: (*moved, *own.get(FORK, ()))}

    def _sizes_of(self, type_node: Node) -> SizeTranslator:
        fields = type_node.content if isinstance(type_node.content, dict) else {}

        def flag(name: str, default: bool) -> bool:
            return bool(plain_or_text(fields[name])) if name in fields else default

        return SizeTranslator(flag("TransposeA", False), flag("TransposeB", True), flag("Batched", False), self.ledger)

    def _version_2_sizes(self, content: dict[str, Node], group: Node, type_node: Node) -> None:
        """Write out the final sizes of version 2 if the group gives none."""
        final = content.get(FINAL)
        items = final.content if final is not None and isinstance(final.content, tuple) else ()
        if any(isinstance(item.content, dict) and SIZES in item.content for item in items) or (
            final is not None and not final.is_null and not isinstance(final.content, tuple)
        ):
            return
        self.ledger.remark(group.location, "a final step without sizes measures those of version 2: 16, 32, 64 and 112")
        span = Node(group.location, tuple(Node(group.location, number) for number in _VERSION_2_FINAL))
        bare = Node(group.location, (span, span, span))
        sizes = self._sizes_of(type_node).sizes(bare)
        others = tuple(items)
        content[FINAL] = Node(group.location, (Node(group.location, {SIZES: sizes}, {}), *others))


def _phase(location: str, entries: tuple[ListedEntry, ...], sizes: SizeTranslator) -> Node:
    """A phase's list of dicts. Dicts of which nothing is left are left out."""
    items = []
    for entry in entries:
        fields: dict[str, Node] = {}
        places: dict[str, str] = {}
        groups = []
        if entry.sizes is not None:
            fields[SIZES], places[SIZES] = sizes.sizes(entry.sizes), entry.sizes_location
        for factor in entry.factors:
            if factor.is_group:
                members = tuple(
                    Node(factor.location, dict(setting), {name: node.location for name, node in setting.items()})
                    for setting in factor.settings
                )
                groups.append(Node(factor.location, members))
            else:
                (name,) = factor.names
                nodes = tuple(setting[name] for setting in factor.settings)
                fields[name], places[name] = Node(factor.location, nodes), factor.location
        if groups:
            fields[GROUPS], places[GROUPS] = Node(groups[0].location, tuple(groups)), groups[0].location
        if fields:
            items.append(Node(entry.location, fields, places))
    return Node(location, tuple(items))
