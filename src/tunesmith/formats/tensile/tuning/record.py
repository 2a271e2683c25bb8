"""What became of a Tensile tuning file: its dialect, what was translated or left out, and its steps as written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from tunesmith.records import Value


class Dialect(StrEnum):
    """The forms that Tensile's tuning files have had, told apart by their shape."""

    DESIGN = "the design of December 2016 and January 2017 (Parameters at the top, six phases)"
    VERSION_2 = "version 2 (each problem is a dict, with bare ranges)"
    SIZE_GROUPS = "version 3 and later (each problem is a list with size groups)"
    FORK_AND_FINAL = "today's (fork and final, with Groups, custom kernels or sizes as a dict)"
    SPLIT = "the split form (ProblemType at the top, sizes in a file of their own)"

    @property
    def is_dict_form(self) -> bool:
        return self in (Dialect.DESIGN, Dialect.VERSION_2)


class Fate(StrEnum):
    """What became of a name of the file."""

    HONOURED = "honoured"
    TRANSLATED = "translated"
    HELD = "held"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Treatment:
    """One name of the file and its fate. `written` has the distinct values, `lengths` the lengths of the lists of
    values that the file gives, `becomes` says in words what holds instead, `location` is the first mention."""

    section: str
    name: str
    fate: Fate
    becomes: str
    location: str
    written: tuple[Value, ...] = ()
    mentions: int = 1


@dataclass(frozen=True, slots=True)
class WrittenStep:
    """A step of a size group, counted from the written values alone: every lineage tries every choice on every size."""

    name: str
    phase: str
    lineages: int
    choices: int
    sizes: int

    @property
    def enqueues(self) -> int:
        return self.lineages * self.choices * self.sizes


@dataclass(frozen=True, slots=True)
class WrittenGroup:
    """The steps of one size group as written. `problem` is the location of its problem, `varied` the numbers of values
    of all parameters with several. `final_sizes` counts the sizes of the last step."""

    location: str
    problem: str
    group: int
    steps: tuple[WrittenStep, ...]
    varied: tuple[int, ...]
    final_sizes: int

    @property
    def enqueues(self) -> int:
        return sum(step.enqueues for step in self.steps)

    @property
    def exhaustive(self) -> int:
        """The product of the lengths of all value lists and the number of final sizes."""
        return prod(self.varied) * self.final_sizes


@dataclass(frozen=True, slots=True)
class RejectedProblem:
    """A problem of the file that no kernel computes, with the constant reason and the detail for a person."""

    location: str
    name: str
    reason: str
    detail: str
    groups: tuple[WrittenGroup, ...]


@dataclass(frozen=True)
class TensileImport:
    """A file of Tensile's, translated. `groups` are those that are planned, in the file's order. `remarks` are
    sentences about the dialect, each with its location."""

    dialect: Dialect
    treatments: tuple[Treatment, ...]
    groups: tuple[WrittenGroup, ...]
    rejected: tuple[RejectedProblem, ...]
    remarks: tuple[tuple[str, str], ...] = ()

    @property
    def written(self) -> tuple[WrittenGroup, ...]:
        """The size groups of the planned and then of the rejected problems."""
        return (*self.groups, *(group for problem in self.rejected for group in problem.groups))

    def sentences(self) -> Iterator[str]:
        """The import as lines of text, for a command that shows notes: dialect, remarks, one line for each name and
        for each rejected problem."""
        yield f"read as a tuning file of Tensile's: {self.dialect}"
        yield from (f"{location}: {sentence}" for location, sentence in self.remarks)
        for treatment in self.treatments:
            yield f"{treatment.location}: {treatment.section} {treatment.name} is {treatment.fate}: {treatment.becomes}"
        for problem in self.rejected:
            yield f"{problem.location}: {problem.name} is left out: {problem.reason} ({problem.detail})"
