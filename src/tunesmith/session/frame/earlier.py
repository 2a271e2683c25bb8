"""Files that an earlier run left in the folder: read if possible, and kept under another name if not added to."""

from __future__ import annotations

import filecmp
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.logic import Document, Logic, logic_files, write_atomically
from tunesmith.records import ProblemType, Solution, Target, UserError

SizeKey = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and leading dimensions of a problem: a row's key in a logic."""


def rows_of(document: Document) -> dict[SizeKey, tuple[Solution, ...]]:
    """For each size of a logic, its winner, then the solutions that tied with it."""
    return {
        (row.sizes, row.leading): tuple(document.solutions[index].solution for index in (row.solution, *row.ties))
        for row in document.rows
    }


@dataclass(frozen=True)
class EarlierLogic:
    """The logic that a file has for a problem type on a device.

    If the file exists but has none, `trouble` says why: nothing of the file goes into the new one, and the file must be
    kept. `damaged` means that the file cannot be read as library logic.
    """

    document: Document | None = None
    trouble: str = ""
    damaged: bool = False
    rows: Mapping[SizeKey, tuple[Solution, ...]] = field(default_factory=dict)

    @staticmethod
    def read(path: Path, kind: ProblemType, target: Target) -> EarlierLogic:
        """Read a file. Never raises, since new results must be written whatever is in the file."""
        if not path.exists():
            return EarlierLogic()
        document = _read(path)
        if isinstance(document, str):
            return EarlierLogic(trouble=document, damaged=True)
        if not document.origin.is_of(target):
            return EarlierLogic(trouble=f"is for {document.origin.device} ({document.origin.api})")
        if document.problem_type != kind:
            return EarlierLogic(trouble=f"is for another problem type that is called {kind.name} too")
        return EarlierLogic(document, rows=rows_of(document))


def readable(folder: Path, complain: Callable[[str], None]) -> Iterator[Document]:
    """All readable library logic of a folder; `complain` gets a sentence about each other logic file."""
    for path in logic_files(folder) if folder.is_dir() else ():
        document = _read(path)
        if isinstance(document, str):
            complain(f"{path} {document}, so nothing of it is used")
        else:
            yield document


def keep_aside(path: Path) -> Path:
    """Rename a file to `NAME.earlier-1`, or the next free number; no reader of results looks for such names.

    If a file of the same content was kept before, nothing is renamed and that file's path is returned. Raises UserError
    if the file cannot be renamed.
    """
    names = (path.with_name(f"{path.name}.earlier-{number}") for number in itertools.count(1))
    try:
        for aside in names:
            if not aside.exists():
                return path.rename(aside)
            if path.is_file() and aside.is_file() and filecmp.cmp(path, aside, shallow=False):
                return aside
    except OSError as error:
        remedy = "move it away, and run the same command again: it measures nothing anew"
        raise UserError(str(path), f"is in the way and cannot be renamed ({error.strerror})", remedy) from error
    raise AssertionError("numbers do not end")


def write_table(
    own: Collection[str], found: Callable[[str], Collection[str]], say: Callable[[str], None], path: Path, text: str
) -> None:
    """Write a table. A table at `path` with entries that are not this run's `own` is kept under another name.

    `found` returns the names of the entries in a table's text; it may raise anything if the text is no table.
    """
    if path.is_file():
        try:
            others = sorted(set(found(path.read_text(encoding="utf-8"))) - set(own))
            what = f"has {', '.join(others[:3])}{' and more' if len(others) > 3 else ''}" if others else ""
        except Exception as error:  # whatever is wrong with the file, the run's results must be written
            what = f"cannot be read ({type(error).__name__}: {error})"
        if what:
            say(f"{path} {what}, which this run does not have; it is kept as {keep_aside(path).name}")
    write_atomically(path, text)


def _read(path: Path) -> Document | str:
    """The document, or the reason why it cannot be used."""
    try:
        return Logic.load(path).document
    except UserError as error:
        return f"cannot be used ({error.location}: {error.what})"
    except Exception as error:  # whatever is wrong with the file, the run's results must be written
        return f"cannot be read ({type(error).__name__}: {error})"
