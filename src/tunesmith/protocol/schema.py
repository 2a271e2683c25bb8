"""The tuning file: Tensile's YAML dialect in its list form, read into phases that are ready to run.

Every mistake is a UserError with file, line and remedy; everything assumed or ignored is a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tunesmith.problems import DEFAULT_OPERATION, OPERATIONS, Node, Operation, read_yaml, unknown_key
from tunesmith.records import ProblemType, UserError, Value
from tunesmith.spaces import Space

from ._notes import Notes
from ._phases import PHASE_KEYS, GroupReader
from ._settings import GlobalParameters, LibraryLogic, read_globals, read_logic
from ._sizes import SizeReader
from ._steps import Phases

Spaces = Callable[[ProblemType], Space]
Derived = Callable[[ProblemType], frozenset[str]]

TOP_KEYS = ("GlobalParameters", "BenchmarkProblems", "LibraryLogic")
IGNORED_TOP_KEYS = ("LibraryClient", "TestParameters")


@dataclass(frozen=True)
class TuningFile:
    """What a tuning file says: one `Phases` for each size group, in its order, and notes for the person."""

    path: Path
    globals: GlobalParameters
    groups: tuple[Phases, ...]
    logic: LibraryLogic
    notes: tuple[str, ...]


def read_tuning_file(
    path: Path, spaces: Spaces, derived: Derived = lambda problem_type: frozenset(), max_size: int | None = None
) -> TuningFile:
    """Read and check a tuning file.

    `spaces` gives the parameters that may be tuned for a problem type, `derived` the names of derived values that a
    join may use. With `max_size`, larger sizes are cut to it and then made unique. Raises UserError for everything
    that is wrong with the file, and nothing else.
    """
    if max_size is not None and max_size < 1:
        raise UserError("--max-size", f"{max_size} is no size", "give a whole number from 1")
    root, notes = read_yaml(path), Notes()
    top = root.mapping("a tuning file")
    for name in top:
        if name in IGNORED_TOP_KEYS:
            notes.say(root.at(name), f"{name} is ignored")
        elif name not in TOP_KEYS:
            raise _misplaced(root, name)
    settings = read_globals(top.get("GlobalParameters"), notes)
    logic = read_logic(top.get("LibraryLogic"), notes)
    if "BenchmarkProblems" not in top:
        raise UserError(root.place, "there is no BenchmarkProblems", "list problem types with their size groups there")
    reader = _ProblemReader(path.parent, spaces, derived, max_size, settings, notes)
    groups = tuple(reader.groups(top["BenchmarkProblems"]))
    if max_size is not None:
        notes.say(str(path), f"sizes above {max_size} are measured as {max_size}, with natural leading dimensions")
    return TuningFile(path, settings, groups, logic, tuple(notes))


@dataclass(frozen=True)
class _ProblemReader:
    folder: Path
    spaces: Spaces
    derived: Derived
    max_size: int | None
    settings: GlobalParameters
    notes: Notes

    def groups(self, node: Node) -> Iterator[Phases]:
        """The size groups of all problem types, numbered within each type."""
        entries = node.sequence("BenchmarkProblems")
        if not entries:
            raise UserError(node.place, "BenchmarkProblems is empty", "list [problem type, size group ...] there")
        seen: Counter[ProblemType] = Counter()
        for entry in entries:
            parts = _parts(entry)
            fields = {name: value.plain(name) for name, value in parts[0].mapping("the problem type").items()}
            operation = _operation(fields, parts[0])
            problem_type = operation.type_of(fields, parts[0].at, self.folder)
            for sentence in operation.assumed(fields):
                self.notes.say_once(parts[0].place, sentence)
            scalars = operation.scalars_of(fields, parts[0].at)
            sizes = SizeReader(problem_type, operation, scalars, self.folder, self.notes, self.max_size)
            space, derived = self.spaces(problem_type), self.derived(problem_type)
            reader = GroupReader(sizes, space, derived, self.settings, self.notes)
            # A problem type alone has one size group, in which everything is as by default; so it is in Tensile.
            for group in parts[1:] or (Node(entry.place, {}),):
                yield reader.read(group, seen[problem_type])
                seen[problem_type] += 1


def _operation(fields: dict[str, Value], node: Node) -> Operation:
    name = fields.get("OperationType", DEFAULT_OPERATION)
    if name not in OPERATIONS:
        what = f"OperationType {name} is not supported"
        raise UserError(node.at("OperationType"), what, f"there are {', '.join(OPERATIONS)}")
    return OPERATIONS[str(name)]


def _parts(entry: Node) -> tuple[Node, ...]:
    """[problem type, size group ...]"""
    if isinstance(entry.content, dict):
        what = "this problem is a dict, as in version 2 of Tensile's format"
        raise UserError(entry.place, what, "make it a list: first the fields of its ProblemType, then its size groups")
    parts = entry.sequence("a problem")
    if not parts:
        raise UserError(entry.place, "this problem is an empty list", "give it a problem type, then size groups")
    return parts


def _misplaced(root: Node, name: str) -> UserError:
    if name == "ProblemType" or name in PHASE_KEYS:
        what = f"{name} stands at the top of the file"
        return UserError(root.at(name), what, "put [problem type, size group ...] into the list of BenchmarkProblems")
    return unknown_key(root.at(name), name, TOP_KEYS, "a tuning file")
