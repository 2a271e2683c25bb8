"""The `ProblemSizes` of a tuning file as problems of a type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tunesmith.problems import LIMIT, Node, Operation, clamp, exact_sizes, range_sizes, unknown_key
from tunesmith.records import Configuration, Problem, ProblemType, UserError, Value

Sizes = tuple[int, ...]

COMMON_DEFAULT: tuple[Value, ...] = (2880,)
FINAL_DEFAULT: tuple[Value, ...] = (64, 64, 64, 512)
"""Tensile's sizes of the first index where a phase, or the final step, names none."""


@dataclass(frozen=True)
class SizeReader:
    """Makes problems of one type with the scalars to measure with, cut to `max_size` if that is given."""

    problem_type: ProblemType
    operation: Operation
    scalars: Configuration
    max_size: int | None = None

    def read(self, node: Node) -> tuple[Problem, ...]:
        """Every size of the value of a `ProblemSizes`, in its order, each once."""
        found: dict[tuple[Sizes, Sizes], None] = {}
        for form, value, place in _forms(node):
            entries = [(entry.plain(f"ProblemSizes.{form}"), entry.place) for entry in _entries(form, value)]
            if form == "Range":
                found.update(dict.fromkeys((sizes, ()) for sizes in range_sizes(entries, self.problem_type, place)))
            else:
                found[exact_sizes(entries, self.problem_type, self.operation, place)] = None
            if len(found) > LIMIT:
                raise UserError(place, f"ProblemSizes makes more than {LIMIT:,} sizes", "give larger steps")
        if not found:
            raise UserError(node.place, "ProblemSizes names no size", "give it a Range or an Exact")
        return self._problems(list(found))

    def default(self, first: tuple[Value, ...]) -> tuple[tuple[Problem, ...], str]:
        """The sizes `first` of the first index, the others like it and batch 1, and the Range that says so."""
        indices = self.problem_type.indices
        descriptors = [first, *((1,) if index == "Batch" else 0 for index in indices[1:])]
        sizes = range_sizes([(each, "default sizes") for each in descriptors], self.problem_type, "default sizes")
        text = ", ".join(str(list(each)) if isinstance(each, tuple) else str(each) for each in descriptors)
        return self._problems([(each, ()) for each in sizes]), f"Range: [{text}]"

    def _problems(self, sizes: Sequence[tuple[Sizes, Sizes]]) -> tuple[Problem, ...]:
        problems = tuple(Problem(self.problem_type, each, leading, self.scalars) for each, leading in sizes)
        return problems if self.max_size is None else clamp(problems, self.max_size)


def _forms(node: Node) -> Iterator[tuple[str, Node, str]]:
    """(Range or Exact, value, place of the key) for each in a `ProblemSizes`."""
    items = (node,) if isinstance(node.content, dict) else node.sequence("ProblemSizes")
    for item in items:
        if isinstance(item.content, (tuple, int)):
            what = "ProblemSizes holds bare sizes, as in version 2 of Tensile's format"
            raise UserError(item.place, what, "write them as `- Range: [...]`")
        for form, value in item.mapping("an item of ProblemSizes").items():
            if form not in ("Range", "Exact"):
                raise unknown_key(item.at(form), form, ("Range", "Exact"), "ProblemSizes")
            yield form, value, item.at(form)


def _entries(form: str, node: Node) -> tuple[Node, ...]:
    if isinstance(node.content, dict):
        raise UserError(node.place, f"ProblemSizes.{form} with keys is not supported", "give a list of sizes")
    return node.sequence(f"ProblemSizes.{form}")
