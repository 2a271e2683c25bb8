"""JoinParameters in our form."""

from __future__ import annotations

from collections.abc import Container

from tunesmith.problems import Node

from .geometry import FORMULAS, OLDER_NAMES, PARTS
from .ledger import NameLedger
from .names import HELD, RENAMED
from .record import Fate

SECTION = "join"
DERIVED = ("MacroTile", "DepthU", "NumThreads")


def translated_join(
    node: Node | None, joined: tuple[str, ...] | None, forked: Container[str], location: str, ledger: NameLedger
) -> Node | None:
    """A join over names of ours; an empty list keeps one lineage, and None keeps all.

    `node` is the file's own list, `joined` its names by the era's rules. A name that has one value here joins nothing
    and is left out. Unknown names stay, so that they are refused where everything else is checked.
    """
    if joined is None:
        return None
    if node is None or not isinstance(node.content, tuple):
        return Node(location, tuple(Node(location, name) for name in joined))
    kept: dict[str, Node] = {}
    for item in node.content:
        name = item.content
        if not isinstance(name, str):
            return node
        newer = _ours(name)
        if newer != name:
            ledger.add(SECTION, name, Fate.TRANSLATED, newer, item.location)
        if newer in forked or newer in DERIVED or not (newer in HELD or newer in _SINGLE):
            kept.setdefault(newer, Node(item.location, newer))
        else:
            ledger.add(
                SECTION, name, Fate.DROPPED, "it has one value here, so it joins nothing", item.location, weak=True
            )
    return Node(node.location, tuple(kept.values()))


def _ours(name: str) -> str:
    newer = RENAMED.get(name) or OLDER_NAMES.get(name) or name
    if newer in PARTS and newer not in DERIVED:
        return next(formula.target for formula in FORMULAS if newer in formula.parameters)
    return newer


_SINGLE = frozenset(
    [
        "KernelLanguage",
        "MatrixInstruction",
        "WorkGroup",
        "ThreadTile",
        "VectorWidth",
        "LoopUnroll",
        "NumLoadsCoalescedA",
        "NumLoadsCoalescedB",
        "PrefetchGlobalRead",
        "EdgeType",
        "GlobalSplitU",
        "WorkGroupMapping",
        "LdsPad",
        "GlobalReadVectorWidth",
        "StoreVectorWidth",
    ]
)
"""Parameters of ours with Tensile's names, over which a file of Tensile's may join though they have one value."""
