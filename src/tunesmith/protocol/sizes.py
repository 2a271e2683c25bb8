"""Reads the `ProblemSizes` of a tuning file as problems of a type, with their weights."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.problems import (
    LIMIT,
    Mistakes,
    Node,
    Operation,
    clamp_sizes,
    exact_sizes,
    range_sizes,
    shortened,
    unknown_key,
)
from tunesmith.problems.lists import ListedProblem, ListReader
from tunesmith.records import Configuration, Problem, ProblemType, UserError, Value

from .notes import Notes
from .steps import Weights

Sizes = tuple[int, ...]
WeightedProblems = tuple[tuple[Problem, ...], Weights]

COMMON_DEFAULT: tuple[Value, ...] = (2880,)
FINAL_DEFAULT: tuple[Value, ...] = (64, 64, 64, 512)
"""Tensile's sizes of the first index for a phase, or the final step, without ProblemSizes."""

FORMS = ("Range", "Exact", "File")
FAMILY = "Family"
"""A key beside File."""


@dataclass(frozen=True)
class SizeReader:
    """Makes problems of one type with the scalars to measure with, cut to `max_size` if that is given.

    Paths are relative to `folder`. `notes` gets a note about rows of a list that are of other types. If `is_known` is
    False, some fields of the type are wrong; then no sizes are read, since they may be right for the intended type.
    `lists` reads the files whose names have these suffixes, the operation reads all others.
    """

    problem_type: ProblemType
    operation: Operation
    scalars: Configuration
    folder: Path
    notes: Notes
    max_size: int | None = None
    is_known: bool = True
    lists: Mapping[str, ListReader] = field(default_factory=dict)

    def read(self, node: Node) -> WeightedProblems:
        """The distinct problems of a `ProblemSizes`, in its order, with the weights from lists."""
        if not self.is_known:
            return (), {}
        found: dict[tuple[Sizes, Sizes], None] = {}
        weights: dict[tuple[Sizes, Sizes], float] = defaultdict(float)
        mistakes = Mistakes()
        for form in _forms(node, mistakes):
            with mistakes.caught():
                if form.name == "File":
                    for row in self._rows(form):
                        listed = row.sizes, self._leading(row)
                        found[listed] = None
                        weights[listed] += row.weight
                else:
                    found.update(dict.fromkeys(self._listed_sizes(form)))
                if len(found) > LIMIT:
                    raise UserError(form.location, f"ProblemSizes makes more than {LIMIT:,} sizes", "give larger steps")
        mistakes.tell()
        if not found:
            raise UserError(node.location, "ProblemSizes names no size", "give it a Range, an Exact or a File")
        return self._problems(list(found)), self._weights(weights)

    def default(self, first: tuple[Value, ...]) -> tuple[tuple[Problem, ...], str]:
        """The default problems: sizes `first` for the first index, the other sizes equal to it or 1. Also the Range
        that gives them."""
        indices = self.problem_type.indices
        descriptors = [first, *((1,) if index in self.operation.single else 0 for index in indices[1:])]
        entries = [(descriptor, "default sizes") for descriptor in descriptors]
        listed = range_sizes(entries, self.problem_type, "default sizes")
        text = ", ".join(str(list(each)) if isinstance(each, tuple) else str(each) for each in descriptors)
        return self._problems([(sizes, ()) for sizes in listed]), f"Range: [{text}]"

    def _listed_sizes(self, form: _Form) -> list[tuple[Sizes, Sizes]]:
        """The sizes and leading dimensions of a Range or an Exact."""
        what = f"ProblemSizes.{form.name}"
        if isinstance(form.value.content, dict):
            raise UserError(form.value.location, f"{what} with keys is not supported", "give a list of sizes")
        entries = [(entry.plain(what), entry.location) for entry in form.value.sequence(what)]
        if form.name == "Range":
            listed: list[tuple[Sizes, Sizes]] = [
                (sizes, ()) for sizes in range_sizes(entries, self.problem_type, form.location)
            ]
        else:
            listed = [exact_sizes(entries, self.problem_type, self.operation, form.location)]
        for sizes, _ in listed:
            if wrong := self.operation.wrong_sizes(self.problem_type, sizes):
                named = ", ".join(f"{name} {size}" for name, size in zip(self.problem_type.indices, sizes, strict=True))
                raise UserError(form.location, f"{what}: {wrong} ({named})", "give sizes that go together")
        return listed

    def _rows(self, form: _Form) -> list[ListedProblem]:
        """The rows of a File that are of this type and of the requested families. Adds a note about rows of other
        types."""
        location, name = form.location, form.value.word("ProblemSizes.File")
        kind, path = self.problem_type, self.folder / name
        read = self.lists.get(path.suffix.lower(), self.operation.listed)
        rows = _of_families(read(kind, path, location), form.family, name)
        fitting = [row for row in rows if row.sizes]
        others = Counter(row.layout for row in rows if not row.sizes)
        layouts = ", ".join(f"{count} {layout}" for layout, count in others.items())
        if not fitting:
            raise self.operation.none_listed(kind, location, name, layouts)
        if others:
            what = f"{name}: {len(rows) - len(fitting)} of {len(rows)} rows are not of {kind.name}"
            self.notes.add_once(location, f"{what} and are left out ({layouts})")
        return fitting

    def _leading(self, row: ListedProblem) -> Sizes:
        """The leading dimensions of a row, each raised to the natural one; () if all are natural."""
        if not row.leading:
            return ()
        natural = tuple(least for _, least in self.operation.leading(self.problem_type, row.sizes))
        leading = tuple(max(pair) for pair in zip(row.leading, natural, strict=True))
        return () if leading == natural else leading

    def _problems(self, sizes: Sequence[tuple[Sizes, Sizes]]) -> tuple[Problem, ...]:
        problems = tuple(Problem(self.problem_type, extents, leading, self.scalars) for extents, leading in sizes)
        return problems if self.max_size is None else clamp_sizes(problems, self.max_size)

    def _weights(self, listed: Mapping[tuple[Sizes, Sizes], float]) -> Weights:
        """The weights by problem. The weights of sizes that become equal by `max_size` are added up."""
        weights: dict[Problem, float] = defaultdict(float)
        for row, weight in listed.items():
            (problem,) = self._problems([row])
            weights[problem] += weight
        return dict(weights)


@dataclass(frozen=True, slots=True)
class _Form:
    """A Range, an Exact or a File, with the `Family` beside a File."""

    name: str
    value: Node
    location: str
    family: Node | None


def _forms(node: Node, mistakes: Mistakes) -> Iterator[_Form]:
    items = (node,) if isinstance(node.content, dict) else node.sequence("ProblemSizes")
    for item in items:
        with mistakes.caught():
            if isinstance(item.content, (tuple, int)):
                what = "ProblemSizes holds bare sizes, as in version 2 of Tensile's format"
                raise UserError(item.location, what, "write them as `- Range: [...]`")
            fields = item.mapping("an item of ProblemSizes")
            yield from _forms_of(item, fields, mistakes)


def _forms_of(item: Node, fields: Mapping[str, Node], mistakes: Mistakes) -> Iterator[_Form]:
    for name, value in fields.items():
        if name not in (*FORMS, FAMILY):
            mistakes.add(unknown_key(item.at(name), name, (*FORMS, FAMILY), "ProblemSizes"))
        elif name != FAMILY:
            yield _Form(name, value, item.at(name), fields.get(FAMILY))
        elif "File" not in fields:
            mistakes.add(UserError(item.at(name), f"{FAMILY} stands without a File", "name the File in the same item"))


def _of_families(rows: Sequence[ListedProblem], node: Node | None, name: str) -> list[ListedProblem]:
    """The rows of the families that `node` names, by a word or a list of words; all rows without a node."""
    if node is None:
        return list(rows)
    offered = list(dict.fromkeys(row.family for row in rows))
    nodes = node.content if isinstance(node.content, tuple) else (node,)
    families = [family.word(FAMILY) for family in nodes]
    if not families:
        raise UserError(node.location, f"{FAMILY} names none", "name some, or leave it out for all rows")
    for family in families:
        if family not in offered:
            has = ", ".join(shortened(each) for each in offered if each) or "none: it needs a column family"
            raise UserError(node.location, f"{name} has no family {shortened(family)}", f"it has {has}")
    return [row for row in rows if row.family in families]
