"""The layout of a Tensile tuning file: which dialect it is in, and its problems with their size groups.

Every dialect has the same parts. Here they are found; nothing in them is read or changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tunesmith.problems import DEFAULT_OPERATION, Node
from tunesmith.records import UserError

from .names import RENAMED_PHASES, TENSILE_OPERATIONS
from .record import Dialect

PHASES = (
    "InitialSolutionParameters",
    "BenchmarkCommonParameters",
    "ForkParameters",
    "BenchmarkForkParameters",
    "JoinParameters",
    "BenchmarkJoinParameters",
    "BenchmarkFinalParameters",
)
CUSTOM_KERNELS = "CustomKernels"
GROUPED_FORK = "GroupForkParameters"
"""The key that early files of the split form have instead of Groups in the fork."""
FORK, FINAL = PHASES[2], PHASES[-1]
SIZES = "ProblemSizes"


@dataclass(frozen=True, slots=True)
class LaidOutProblem:
    """A problem type with its size groups. `entry` is the file's own node, which holds both."""

    entry: Node
    type: Node
    groups: tuple[Node, ...]

    @property
    def is_tensile(self) -> bool:
        """Whether the operation is one of Tensile's, so that the problem may be translated."""
        if not isinstance(self.type.content, dict):
            return False
        operation = self.type.content.get("OperationType")
        name = operation.content if operation else DEFAULT_OPERATION
        return isinstance(name, str) and name in TENSILE_OPERATIONS


@dataclass(frozen=True)
class Layout:
    """A file's parts. `malformed` are entries of BenchmarkProblems that are no problems, `top` all keys at the top."""

    dialect: Dialect
    location: str
    settings: Node | None
    settings_location: str
    problems: tuple[LaidOutProblem, ...]
    malformed: tuple[Node, ...]
    top: Mapping[str, Node]


def layout_of(root: Node, sizes: Node | None = None) -> Layout | None:
    """The layout of a file; None if the file has no problems. `sizes` are those of a sizes file.

    Raises UserError for a sizes file beside a file that has sizes of its own.
    """
    if not isinstance(root.content, dict):
        return None
    top = root.content
    if "BenchmarkProblems" in top:
        if sizes is not None:
            what = "a sizes file is given for a file with BenchmarkProblems, which have sizes of their own"
            raise UserError(sizes.location, what, "leave --sizes out")
        return _listed(root, top)
    if "ProblemType" in top:
        return _split(root, top, sizes)
    return None


def _listed(root: Node, top: Mapping[str, Node]) -> Layout | None:
    listed = top["BenchmarkProblems"].content
    if not isinstance(listed, tuple):
        return None
    problems, malformed, dicts = list[LaidOutProblem](), list[Node](), 0
    for entry in listed:
        if isinstance(entry.content, dict) and "ProblemType" in entry.content:
            dicts += 1
            problems.append(_dict_problem(entry, entry.content))
        elif isinstance(entry.content, tuple) and entry.content:
            groups = entry.content[1:] or (Node(entry.location, {}),)
            problems.append(
                LaidOutProblem(entry, entry.content[0], tuple(Node(g.location, {}) if g.is_null else g for g in groups))
            )
        else:
            malformed.append(entry)
    name = "Parameters" if "Parameters" in top and "GlobalParameters" not in top else "GlobalParameters"
    return Layout(
        _dialect(top, problems, dicts),
        root.location,
        top.get(name),
        root.at(name),
        tuple(problems),
        tuple(malformed),
        top,
    )


def _dialect(top: Mapping[str, Node], problems: list[LaidOutProblem], dicts: int) -> Dialect:
    if dicts:
        is_design = "Parameters" in top or any(
            isinstance(problem.entry.content, dict) and problem.entry.content.keys() & RENAMED_PHASES.keys()
            for problem in problems
        )
        return Dialect.DESIGN if is_design else Dialect.VERSION_2
    is_today = any(_is_today(group) for problem in problems for group in problem.groups)
    return Dialect.FORK_AND_FINAL if is_today else Dialect.SIZE_GROUPS


def _is_today(group: Node) -> bool:
    """Whether a size group has Groups, custom kernels, or sizes as a dict."""
    if not isinstance(group.content, dict):
        return False
    if CUSTOM_KERNELS in group.content:
        return True
    fork, final = group.content.get(FORK), group.content.get(FINAL)
    return any("Groups" in item for item in _dicts(fork)) or any(
        isinstance(size.content, dict)
        for item in _dicts(final)
        if SIZES in item
        for form in _dicts(item[SIZES])
        for size in form.values()
    )


def _dicts(node: Node | None) -> Iterator[Mapping[str, Node]]:
    if node is None:
        return
    for item in node.content if isinstance(node.content, tuple) else (node,):
        if isinstance(item.content, dict):
            yield item.content


def _dict_problem(entry: Node, fields: dict[str, Node]) -> LaidOutProblem:
    """A problem of a dict file: all its keys but ProblemType are its only size group."""
    kept = {RENAMED_PHASES.get(name, name): value for name, value in fields.items() if name != "ProblemType"}
    places = {RENAMED_PHASES.get(name, name): entry.at(name) for name in fields}
    return LaidOutProblem(entry, fields["ProblemType"], (Node(entry.location, kept, places),))


def _split(root: Node, top: Mapping[str, Node], sizes: Node | None) -> Layout:
    """The split form: the phases stand at the top, and the sizes come from a file of their own."""
    group = {name: top[name] for name in (*PHASES, CUSTOM_KERNELS) if name in top}
    places = {name: root.at(name) for name in group}
    if GROUPED_FORK in top:
        group[FORK], places[FORK] = _with_groups(top.get(FORK), top[GROUPED_FORK]), root.at(GROUPED_FORK)
    if sizes is not None:
        if FINAL in group and not group[FINAL].is_null:
            what = f"{FINAL} stands in the file, and a sizes file is given"
            raise UserError(root.at(FINAL), what, "leave one of the two out")
        group[FINAL] = Node(sizes.location, (Node(sizes.location, {SIZES: sizes}, {SIZES: sizes.location}),))
        places[FINAL] = sizes.location
    problem = LaidOutProblem(root, top["ProblemType"], (Node(root.at("ProblemType"), group, places),))
    settings = top.get("GlobalParameters")
    return Layout(Dialect.SPLIT, root.location, settings, root.at("GlobalParameters"), (problem,), (), top)


def _with_groups(fork: Node | None, groups: Node) -> Node:
    """The fork with one more dict, which has the groups."""
    if fork is None or fork.is_null:
        listed: tuple[Node, ...] = ()
    else:
        listed = fork.content if isinstance(fork.content, tuple) else (fork,)
    added = Node(groups.location, {"Groups": groups}, {"Groups": groups.location})
    return Node(groups.location, (*listed, added))
