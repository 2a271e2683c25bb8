"""The `ProblemSizes` of a tuning file as problems of a type, with what each of them counts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.problems import LIMIT, Mistakes, Node, Operation, clamp, exact_sizes, range_sizes, shown, unknown_key
from tunesmith.problems.lists import ListedProblem
from tunesmith.records import Configuration, Problem, ProblemType, UserError, Value

from .notes import Notes
from .steps import Weights

Sizes = tuple[int, ...]
Sized = tuple[tuple[Problem, ...], Weights]

COMMON_DEFAULT: tuple[Value, ...] = (2880,)
FINAL_DEFAULT: tuple[Value, ...] = (64, 64, 64, 512)
"""Tensile's sizes of the first index where a phase, or the final step, names none."""

FORMS = ("Range", "Exact", "File")
FAMILY = "Family"
"""Stands beside a File."""


@dataclass(frozen=True)
class SizeReader:
    """Makes problems of one type with the scalars to measure with, cut to `max_size` if that is given.

    Paths are relative to `folder`; `notes` are told of rows that a list has for other types. Of a type that `is_known`
    only in part, since something is wrong with its fields, no sizes are read: they might be right for what was meant.
    """

    problem_type: ProblemType
    operation: Operation
    scalars: Configuration
    folder: Path
    notes: Notes
    max_size: int | None = None
    is_known: bool = True

    def read(self, node: Node) -> Sized:
        """Every size of the value of a `ProblemSizes`, in its order, each once, with the weights that lists give."""
        if not self.is_known:
            return (), {}
        found: dict[tuple[Sizes, Sizes], None] = {}
        weights: dict[Sizes, float] = defaultdict(float)
        mistakes = Mistakes()
        for form in _forms(node, mistakes):
            with mistakes.caught():
                if form.name == "File":
                    for row in self._rows(form):
                        found[row.sizes, ()] = None
                        weights[row.sizes] += row.weight
                else:
                    found.update(dict.fromkeys(self._spelled(form)))
                if len(found) > LIMIT:
                    raise UserError(form.location, f"ProblemSizes makes more than {LIMIT:,} sizes", "give larger steps")
        mistakes.tell()
        if not found:
            raise UserError(node.location, "ProblemSizes names no size", "give it a Range, an Exact or a File")
        return self._problems(list(found)), self._weights(weights)

    def default(self, first: tuple[Value, ...]) -> tuple[tuple[Problem, ...], str]:
        """The sizes `first` of the first index, the others like it or 1, and the Range that says so."""
        indices = self.problem_type.indices
        descriptors = [first, *((1,) if index in self.operation.single else 0 for index in indices[1:])]
        sizes = range_sizes([(each, "default sizes") for each in descriptors], self.problem_type, "default sizes")
        text = ", ".join(str(list(each)) if isinstance(each, tuple) else str(each) for each in descriptors)
        return self._problems([(each, ()) for each in sizes]), f"Range: [{text}]"

    def _spelled(self, form: _Form) -> list[tuple[Sizes, Sizes]]:
        """Sizes and leading dimensions of a Range or an Exact."""
        what = f"ProblemSizes.{form.name}"
        if isinstance(form.value.content, dict):
            raise UserError(form.value.location, f"{what} with keys is not supported", "give a list of sizes")
        entries = [(entry.plain(what), entry.location) for entry in form.value.sequence(what)]
        if form.name == "Range":
            spelled: list[tuple[Sizes, Sizes]] = [
                (sizes, ()) for sizes in range_sizes(entries, self.problem_type, form.location)
            ]
        else:
            spelled = [exact_sizes(entries, self.problem_type, self.operation, form.location)]
        for sizes, _ in spelled:
            if wrong := self.operation.wrong_sizes(self.problem_type, sizes):
                named = ", ".join(f"{name} {size}" for name, size in zip(self.problem_type.indices, sizes, strict=True))
                raise UserError(form.location, f"{what}: {wrong} ({named})", "give sizes that go together")
        return spelled

    def _rows(self, form: _Form) -> list[ListedProblem]:
        """The rows of a File that are of this type and of the families asked for; those of other types are said."""
        location, name = form.location, form.value.word("ProblemSizes.File")
        kind, path = self.problem_type, self.folder / name
        rows = _of_families(self.operation.listed(kind, path, location), form.family, name)
        fitting = [row for row in rows if row.sizes]
        others = Counter(row.layout for row in rows if not row.sizes)
        said = ", ".join(f"{count} {layout}" for layout, count in others.items())
        if not fitting:
            raise self.operation.none_listed(kind, location, name, said)
        if others:
            what = f"{name}: {len(rows) - len(fitting)} of {len(rows)} rows are not of {kind.name}"
            self.notes.say_once(location, f"{what} and are left out ({said})")
        return fitting

    def _problems(self, sizes: Sequence[tuple[Sizes, Sizes]]) -> tuple[Problem, ...]:
        problems = tuple(Problem(self.problem_type, each, leading, self.scalars) for each, leading in sizes)
        return problems if self.max_size is None else clamp(problems, self.max_size)

    def _weights(self, listed: Mapping[Sizes, float]) -> Weights:
        """By problem: sizes that `max_size` makes one count together."""
        weights: dict[Problem, float] = defaultdict(float)
        for sizes, weight in listed.items():
            (problem,) = self._problems([(sizes, ())])
            weights[problem] += weight
        return dict(weights)


@dataclass(frozen=True, slots=True)
class _Form:
    """A Range, an Exact or a File; the latter with the `Family` beside it."""

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
            given = item.mapping("an item of ProblemSizes")
            yield from _forms_of(item, given, mistakes)


def _forms_of(item: Node, given: Mapping[str, Node], mistakes: Mistakes) -> Iterator[_Form]:
    for name, value in given.items():
        if name not in (*FORMS, FAMILY):
            mistakes.add(unknown_key(item.at(name), name, (*FORMS, FAMILY), "ProblemSizes"))
        elif name != FAMILY:
            yield _Form(name, value, item.at(name), given.get(FAMILY))
        elif "File" not in given:
            mistakes.add(UserError(item.at(name), f"{FAMILY} stands without a File", "name the File in the same item"))


def _of_families(rows: Sequence[ListedProblem], asked: Node | None, name: str) -> list[ListedProblem]:
    """The rows of the families that are asked for, one word or a list of them; all where none is."""
    if asked is None:
        return list(rows)
    known = list(dict.fromkeys(row.family for row in rows))
    wanted = [one.word(FAMILY) for one in (asked.content if isinstance(asked.content, tuple) else (asked,))]
    if not wanted:
        raise UserError(asked.location, f"{FAMILY} names none", "name some, or leave it out for all rows")
    for family in wanted:
        if family not in known:
            has = ", ".join(shown(each) for each in known if each) or "none: it needs a column family"
            raise UserError(asked.location, f"{name} has no family {shown(family)}", f"it has {has}")
    return [row for row in rows if row.family in wanted]
