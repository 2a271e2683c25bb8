"""The settings of a Tensile tuning file: GlobalParameters, LibraryLogic and the other keys at its top."""

from __future__ import annotations

import re
from collections.abc import Container

from tunesmith.problems import Node
from tunesmith.problems.keys import is_integer
from tunesmith.protocol.tensile import ANSWERED_GLOBALS, ANSWERED_LOGIC, IGNORED_GLOBALS, IGNORED_LOGIC

from .ledger import NameLedger
from .listing import plain_or_text
from .names import INITIAL_SCALARS, TOP_WITHOUT_MEANING
from .record import Fate

GLOBALS, LOGIC, TOP = "global parameter", "library logic key", "key at the top"
SCALARS = {"DataInitTypeAlpha": "Alpha", "DataInitTypeBeta": "Beta"}
OBLONG = "MaxMacroTileRatio"
_NOT_IN_FILE_NAMES = re.compile(r"[^A-Za-z0-9_.+-]+")


def initial_scalars(settings: Node | None) -> dict[str, float]:
    """Alpha and Beta as the file's DataInitTypeAlpha and DataInitTypeBeta give them, where they are 0, 1 or 2."""
    scalars = {}
    for name, scalar in SCALARS.items():
        node = settings.content.get(name) if settings is not None and isinstance(settings.content, dict) else None
        if node is not None and is_integer(node.content) and node.content in INITIAL_SCALARS:
            scalars[scalar] = INITIAL_SCALARS[node.content]
    return scalars


def most_oblong(settings: Node | None) -> int | None:
    """The file's MaxMacroTileRatio; None if it gives none."""
    node = settings.content.get(OBLONG) if settings and isinstance(settings.content, dict) else None
    return node.content if node is not None and is_integer(node.content) else None


def translated_globals(settings: Node | None, ledger: NameLedger, limits_tiles: bool = False) -> Node | None:
    """The global parameters without those of Tensile's that mean nothing here. Others stay as they stand.

    `limits_tiles`: MaxMacroTileRatio holds, as in dict files.
    """
    if settings is None or not isinstance(settings.content, dict):
        return settings
    honoured = {
        name: f"{scalar} of each problem type"
        for name, scalar in SCALARS.items()
        if scalar in initial_scalars(settings)
    }
    if limits_tiles and most_oblong(settings) is not None:
        honoured[OBLONG] = "macro tiles that are more oblong are left out"
    kept = {}
    for name, value in settings.content.items():
        written = (plain_or_text(value),)
        if name in honoured:
            ledger.add(GLOBALS, name, Fate.HONOURED, honoured[name], settings.at(name), written, weak=True)
        elif name in ANSWERED_GLOBALS:
            ledger.add(GLOBALS, name, Fate.DROPPED, ANSWERED_GLOBALS[name], settings.at(name), written, weak=True)
        elif name in IGNORED_GLOBALS:
            ledger.add(GLOBALS, name, Fate.DROPPED, "it means nothing here", settings.at(name), written, weak=True)
        else:
            kept[name] = value
    return Node(settings.location, kept, {name: settings.at(name) for name in kept})


def translated_logic(node: Node | None, ledger: NameLedger) -> Node | None:
    """The library logic's names. A mapping for ArchitectureName counts by its Architecture, and what cannot stand in
    the name of a file becomes a hyphen."""
    if node is None or not isinstance(node.content, dict):
        return None if node is None or node.is_null else node
    kept: dict[str, Node] = {}
    for name, value in node.content.items():
        written = (plain_or_text(value),)
        if name in ANSWERED_LOGIC or name in IGNORED_LOGIC:
            becomes = ANSWERED_LOGIC.get(name, "the analysis of times differs here")
            ledger.add(LOGIC, name, Fate.DROPPED, becomes, node.at(name), written, weak=True)
        elif name in ("ArchitectureName", "ScheduleName"):
            own = _file_name_part(value)
            if own is not value:
                shown = own.content if isinstance(own.content, str) else ""
                is_weak = not isinstance(value.content, dict)
                ledger.add(LOGIC, name, Fate.TRANSLATED, shown or "left out", node.at(name), written, is_weak)
            if own.content:
                kept[name] = own
        else:
            kept[name] = value
    return Node(node.location, kept, {name: node.at(name) for name in kept})


def _file_name_part(value: Node) -> Node:
    """A value as a part of a file's name; the node itself if nothing is to be changed."""
    word = value
    if isinstance(value.content, dict):
        word = value.content.get("Architecture", Node(value.location, ""))
    if not isinstance(word.content, str):
        return word
    fit = _NOT_IN_FILE_NAMES.sub("-", word.content).strip("-.+")[:64]
    return word if fit == word.content else Node(word.location, fit)


def translated_top(root: Node, taken: Container[str], ledger: NameLedger) -> dict[str, Node]:
    """The keys at the top that are left: unknown ones, which are refused where everything else is checked."""
    kept = {}
    for name, value in root.content.items() if isinstance(root.content, dict) else ():
        if name in taken:
            continue
        if name in TOP_WITHOUT_MEANING:
            ledger.add(TOP, name, Fate.DROPPED, TOP_WITHOUT_MEANING[name], root.at(name), weak=True)
        else:
            kept[name] = value
    return kept
