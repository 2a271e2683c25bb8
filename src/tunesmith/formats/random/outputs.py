"""Writing a selection's files: C++ headers and the library's table, each merged with an existing file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.logic import write_atomically
from tunesmith.logic.random.decision import RandomDecision
from tunesmith.logic.random.table import FILE_NAME, RandomTable, TunedShapes, read_table, write_table
from tunesmith.problems import text_of
from tunesmith.records import UNKNOWN_ARCHITECTURE, UserError

from . import rocrand_headers


@dataclass(frozen=True)
class WrittenSelection:
    """Paths of the files that were written, and the errors that kept the others from being written."""

    headers: tuple[Path, ...]
    table: Path | None
    complaints: tuple[UserError, ...]


def write_selection(
    decisions: Sequence[RandomDecision], folder: Path, merge_from: Path | None = None
) -> WrittenSelection:
    """Write a header for each generator and the table into a folder, which is created.

    An existing header keeps its other architectures, and so does the table. If the folder has no such header, the one
    of that name in `merge_from` is the start. A file that cannot be merged stays as it is, and a complaint says so.
    Decisions of an unknown architecture are left out.
    """
    named = [decision for decision in decisions if decision.architecture != UNKNOWN_ARCHITECTURE]
    if not named:
        return WrittenSelection((), None, ())
    can_be_named, refused = _named_in_cpp(named)
    headers, complaints = _headers(can_be_named, folder, merge_from)
    complaints = [*refused, *complaints]
    table = folder / FILE_NAME
    try:
        before = read_table(table) if table.exists() else RandomTable()
    except UserError as error:
        return WrittenSelection(tuple(headers), None, (*complaints, error))
    write_table(before | _table(named), table)
    return WrittenSelection(tuple(headers), table, tuple(complaints))


def _named_in_cpp(decisions: Sequence[RandomDecision]) -> tuple[list[RandomDecision], list[UserError]]:
    """The decisions whose architecture a C++ header can name, and an error for each other architecture."""
    refused: dict[str, UserError] = {}
    for decision in decisions:
        try:
            rocrand_headers.check_architecture(decision.architecture)
        except UserError as error:
            refused[decision.architecture] = error
    return [decision for decision in decisions if decision.architecture not in refused], list(refused.values())


def _headers(
    decisions: Sequence[RandomDecision], folder: Path, merge_from: Path | None
) -> tuple[list[Path], list[UserError]]:
    paths, complaints = [], []
    by_generator: dict[str, list[RandomDecision]] = defaultdict(list)
    for decision in decisions:
        by_generator[decision.generator].append(decision)
    for generator, group in by_generator.items():
        shapes = {decision.architecture: decision.chosen for decision in group}
        try:
            name = rocrand_headers.file_name(generator)
            existing = next((path / name for path in (folder, merge_from) if path and (path / name).is_file()), None)
            before = _text(existing) if existing else ""
            doubts = {decision.architecture: "; ".join(decision.cautions) for decision in group if decision.cautions}
            text = rocrand_headers.header(generator, shapes, group[0].matrix.default, before, str(existing), doubts)
        except UserError as error:
            complaints.append(error)
        else:
            write_atomically(folder / name, text)
            paths.append(folder / name)
    if any(not decision.architecture.startswith("gfx") for decision in decisions):
        target_arch = folder / rocrand_headers.TARGETS_FILE
        before = _text(target_arch) if target_arch.is_file() else ""
        names = [decision.architecture for decision in decisions]
        write_atomically(target_arch, rocrand_headers.targets(names, before))
        paths.append(target_arch)
    return paths, complaints


def _table(decisions: Sequence[RandomDecision]) -> RandomTable:
    entries: dict[str, dict[str, TunedShapes]] = defaultdict(dict)
    for decision in decisions:
        pairs = {(override.distribution, override.value_type): override.shape for override in decision.overrides}
        entries[decision.architecture][decision.generator] = TunedShapes(decision.chosen, pairs, decision.cautions)
    return RandomTable(entries)


def _text(path: Path) -> str:
    return text_of(path, "C++", remedy="move it away, and it is written anew")
