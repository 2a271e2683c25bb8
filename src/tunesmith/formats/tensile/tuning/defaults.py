"""The default lists of version 2, which it tried of parameters that a file does not give.

They are not in the file, so they are not counted as written, and they do not run. They are told, so that a user can
write those that matter into the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tunesmith.problems import Node
from tunesmith.records import Value

from .geometry import OLDER_NAMES
from .layout import PHASES
from .listing import ListedPhases, join_names, listed_phases
from .names import RENAMED

COMMON, FORK, BENCHMARK_FORK, JOIN, BENCHMARK_JOIN = PHASES[1:6]


@dataclass(frozen=True, slots=True)
class DefaultLists:
    """The lists with several values of one version, by phase, and the names by which a file of it can be told."""

    version: str
    marks: frozenset[str]
    phases: Mapping[str, Mapping[str, tuple[Value, ...]]]


_LOADS = ("NumLoadsCoalescedA", "NumLoadsCoalescedB")
VERSION_2_0 = DefaultLists(
    "2.0",
    frozenset(("WorkGroupEdge", "WorkGroupShape", "ThreadTileEdge", "LoopUnroll")),
    {
        FORK: {"WorkGroupEdge": (16, 8), "ThreadTileEdge": (1, 2, 4, 6, 8)},
        BENCHMARK_FORK: {"LoopUnroll": (16, 8, 4)},
        BENCHMARK_JOIN: dict.fromkeys(_LOADS, (1, 2, 3, 4, 6, 8)),
    },
)
VERSION_2_4 = DefaultLists(
    "2.4",
    frozenset(("NumThreads", "GroupShape", "ThreadTileNumElements", "DepthU")),
    {
        FORK: {
            "ThreadTileNumElements": (16, 4, 36, 64),
            **dict.fromkeys(_LOADS, (1, -1)),
            "DepthU": (4, 8, 16),
            "SplitU": (1, 2, 4),
        },
    },
)
_LATER = frozenset(("WorkGroup", "ThreadTile"))
"""Names of version 3, whose defaults have one value each."""


def untold_lists(group: Node) -> Iterator[str]:
    """Sentences about the default lists that version 2 added to a size group of a dict file.

    A phase that stands in the file without a value got none, and so did a parameter that any phase mentions.
    """
    parameters = _parameters(listed_phases(group))
    names = parameters | set(map(_newer, join_names(group) or ()))
    lists = _version(parameters)
    if lists is None:
        return
    content = group.content if isinstance(group.content, dict) else {}
    for phase, defaults in lists.phases.items():
        added = {name: values for name, values in defaults.items() if name not in names}
        if added and not (phase in content and content[phase].is_null):
            shown = ", ".join(f"{name}: {list(values)}" for name, values in added.items())
            yield (
                f"version {lists.version} also tried its own lists in {phase}, which the file does not give: {shown}; "
                "here each of these parameters keeps one value, unless you write its list"
            )
    if lists is VERSION_2_0 and JOIN not in content:
        yield "version 2.0 joined over DepthU, too: write JoinParameters with MacroTile and DepthU for that"


def _parameters(listed: ListedPhases) -> frozenset[str]:
    """The parameters of the phases, by their newer names. Initial values do not count."""
    phases = (COMMON, FORK, BENCHMARK_FORK, BENCHMARK_JOIN)
    factors = [factor for phase in phases for entry in listed.get(phase, ()) for factor in entry.factors]
    return frozenset(_newer(name) for factor in factors for name in factor.names)


def _newer(name: str) -> str:
    return RENAMED.get(name) or OLDER_NAMES.get(name) or name


def _version(names: frozenset[str]) -> DefaultLists | None:
    """The version whose names a group has; the last one if nothing tells, and None for names of version 3."""
    if names & _LATER:
        return None
    return VERSION_2_0 if names & VERSION_2_0.marks and not names & VERSION_2_4.marks else VERSION_2_4
