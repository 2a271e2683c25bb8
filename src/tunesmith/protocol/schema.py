"""Reads a tuning file, Tensile's YAML dialect in its list form, into phases that are ready to run.

Every mistake is a UserError with file, line and remedy. Everything assumed or ignored is a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tunesmith.problems import DEFAULT_OPERATION, OPERATIONS, Mistakes, Node, Operation, read_yaml, unknown_key
from tunesmith.problems.lists import ListReader
from tunesmith.records import Configuration, ProblemType, UserError, Value
from tunesmith.spaces import Space

from .notes import Notes
from .phases import PHASE_KEYS, Families, GroupReader
from .settings import GlobalParameters, LibraryLogic, read_globals, read_logic
from .sizes import SizeReader
from .steps import Phases

Spaces = Callable[[ProblemType], Space]
Derived = Callable[[ProblemType], frozenset[str]]

TOP_KEYS = ("GlobalParameters", "BenchmarkProblems", "LibraryLogic")
IGNORED_TOP_KEYS = ("LibraryClient", "TestParameters")


@dataclass(frozen=True)
class TuningFile:
    """The contents of a tuning file: the `Phases` of each size group in the file's order, settings, and notes for the
    user."""

    path: Path
    globals: GlobalParameters
    groups: tuple[Phases, ...]
    logic: LibraryLogic
    notes: tuple[str, ...]


def read_tuning_file(
    path: Path,
    spaces: Spaces,
    derived: Derived = lambda problem_type: frozenset(),
    max_size: int | None = None,
    families: Families = lambda problem_type, values: {},
    lists: Mapping[str, ListReader] | None = None,
    root: Node | None = None,
    may_be_empty: bool = False,
) -> TuningFile:
    """Read and check a tuning file.

    `spaces` gives the parameters that may be tuned for a problem type, and raises LookupError for an operation that
    cannot be tuned. `derived` gives the names of derived values that a join may use. `families` is used for notes about
    parameters that no chosen family has. `lists` reads lists of problems by the suffixes of their names; the operation
    reads all others. With `max_size`, larger sizes are cut to it and then made unique.
    `root` is the file's content if it was read already, or translated from another form. If it `may_be_empty`, it needs
    no problems. Raises a single UserError with all mistakes in the file, and nothing else.
    """
    if max_size is not None and max_size < 1:
        raise UserError("--max-size", f"{max_size} is no size", "give a whole number from 1")
    root, notes, mistakes = root or read_yaml(path), Notes(), Mistakes()
    top = root.mapping("a tuning file")
    for name in top:
        if name in IGNORED_TOP_KEYS:
            notes.add(root.at(name), f"{name} is ignored")
        elif name not in TOP_KEYS:
            mistakes.add(_misplaced(root, name))
    settings, logic, groups = GlobalParameters(), LibraryLogic(), tuple[Phases, ...]()
    with mistakes.caught():
        settings = read_globals(top.get("GlobalParameters"), notes, mistakes)
    with mistakes.caught():
        logic = read_logic(top.get("LibraryLogic"), notes, mistakes)
    with mistakes.caught():
        if "BenchmarkProblems" not in top:
            what = "there is no BenchmarkProblems"
            raise UserError(root.location, what, "list problem types with their size groups there")
        reader = _ProblemReader(
            path.parent, spaces, derived, families, dict(lists or {}), max_size, settings, notes, mistakes
        )
        groups = tuple(reader.groups(top["BenchmarkProblems"], may_be_empty))
    mistakes.tell()
    if max_size is not None:
        notes.add(str(path), f"sizes above {max_size} are measured as {max_size}, with natural leading dimensions")
    return TuningFile(path, settings, groups, logic, tuple(notes))


@dataclass(frozen=True)
class _ProblemReader:
    folder: Path
    spaces: Spaces
    derived: Derived
    families: Families
    lists: Mapping[str, ListReader]
    max_size: int | None
    settings: GlobalParameters
    notes: Notes
    mistakes: Mistakes

    def groups(self, node: Node, may_be_empty: bool) -> Iterator[Phases]:
        """The size groups of all problem types, numbered within each type."""
        entries = node.sequence("BenchmarkProblems")
        if not entries and not may_be_empty:
            raise UserError(node.location, "BenchmarkProblems is empty", "list [problem type, size group ...] there")
        groups_read: Counter[ProblemType] = Counter()
        for entry in entries:
            with self.mistakes.caught():
                yield from self._groups(entry, groups_read)

    def _groups(self, entry: Node, groups_read: Counter[ProblemType]) -> Iterator[Phases]:
        parts = _parts(entry)
        node, fields = parts[0], dict[str, Value]()
        for name, value in node.mapping("the problem type").items():
            with self.mistakes.caught():
                fields[name] = value.plain(name)
        operation = _operation(fields, node)
        before = self.mistakes.count
        problem_type = self._type(operation, fields, node)
        scalars = Configuration()
        with self.mistakes.caught():
            scalars = operation.scalars_of(fields, node.at)
        is_right = self.mistakes.count == before
        for sentence in operation.assumed(fields) if is_right else ():
            self.notes.add_once(node.location, sentence)
        sizes = SizeReader(
            problem_type, operation, scalars, self.folder, self.notes, self.max_size, is_right, self.lists
        )
        try:
            space, derived = self.spaces(problem_type), self.derived(problem_type)
        except LookupError as error:
            raise UserError(node.at("OperationType"), str(error), "take an operation that has kernels") from None
        reader = GroupReader(sizes, space, derived, self.families, self.settings, self.notes, self.mistakes)
        # A problem type without size groups has one group with all defaults, as in Tensile.
        for group in parts[1:] or (Node(entry.location, {}),):
            with self.mistakes.caught():
                yield reader.read(group, groups_read[problem_type])
                groups_read[problem_type] += 1

    def _type(self, operation: Operation, fields: dict[str, Value], node: Node) -> ProblemType:
        """The problem type. If some fields are wrong, the type of the other fields, so that its groups can be read."""
        try:
            return operation.type_of(fields, node.at, self.folder)
        except UserError as error:
            self.mistakes.add(error)
            wrong = {mistake.location for mistake in error.errors}
        right = {name: value for name, value in fields.items() if node.at(name) not in wrong}
        return operation.type_of(right, node.at, self.folder)


def _operation(fields: dict[str, Value], node: Node) -> Operation:
    name = fields.get("OperationType", DEFAULT_OPERATION)
    if name not in OPERATIONS:
        what = f"OperationType {name} is not supported"
        raise UserError(node.at("OperationType"), what, f"there are {', '.join(OPERATIONS)}")
    return OPERATIONS[str(name)]


def _parts(entry: Node) -> tuple[Node, ...]:
    """The parts of an entry: the problem type, then the size groups."""
    if isinstance(entry.content, dict):
        what = "this problem is a dict, as in version 2 of Tensile's format"
        raise UserError(
            entry.location, what, "make it a list: first the fields of its ProblemType, then its size groups"
        )
    parts = entry.sequence("a problem")
    if not parts:
        raise UserError(entry.location, "this problem is an empty list", "give it a problem type, then size groups")
    return parts


def _misplaced(root: Node, name: str) -> UserError:
    if name == "ProblemType" or name in PHASE_KEYS:
        what = f"{name} stands at the top of the file"
        return UserError(root.at(name), what, "put [problem type, size group ...] into the list of BenchmarkProblems")
    return unknown_key(root.at(name), name, TOP_KEYS, "a tuning file")
