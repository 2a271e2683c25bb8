"""What an earlier run left in the folder: read where it can be, kept under another name where it is not added to."""

from __future__ import annotations

import filecmp
import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.logic import Document, Logic, logic_files, write_atomically
from tunesmith.records import ProblemType, Solution, Target, UserError

Where = tuple[tuple[int, ...], tuple[int, ...]]
"""Sizes and leading dimensions."""


def rows_of(document: Document) -> dict[Where, tuple[Solution, ...]]:
    """The solution of each size, then what could not be told from it."""
    return {
        (row.sizes, row.leading): tuple(document.solutions[index].solution for index in (row.solution, *row.ties))
        for row in document.rows
    }


@dataclass(frozen=True)
class EarlierLogic:
    """The logic that a file has for a problem type on a device. `trouble` says why a file that is there has none: then
    nothing of it goes into what is written, and it must be kept. `damaged`: it is no library logic that can be read."""

    document: Document | None = None
    trouble: str = ""
    damaged: bool = False
    rows: Mapping[Where, tuple[Solution, ...]] = field(default_factory=dict)

    @staticmethod
    def read(path: Path, kind: ProblemType, target: Target) -> EarlierLogic:
        """Never raises: what was measured has to be written, whatever lies there."""
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
    """All library logic of a folder that can be read; a sentence for the rest."""
    for path in logic_files(folder) if folder.is_dir() else ():
        document = _read(path)
        if isinstance(document, str):
            complain(f"{path} {document}, so nothing of it is used")
        else:
            yield document


def keep_aside(path: Path) -> Path:
    """Give a file another name, which no reader of results looks for: `NAME.earlier-1`, or the next that is free.

    A file of the same content that was kept before is enough. Raises UserError where the folder does not allow it.
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
    """Write a table. One that lies there and has something beside this run's `own` is kept under another name; `found`
    says what a table's text has, and may raise anything for what is none."""
    if path.is_file():
        try:
            others = sorted(set(found(path.read_text(encoding="utf-8"))) - set(own))
            what = f"has {', '.join(others[:3])}{' and more' if len(others) > 3 else ''}" if others else ""
        except Exception as error:  # whatever is wrong with the file, a run's results are worth more
            what = f"cannot be read ({type(error).__name__}: {error})"
        if what:
            say(f"{path} {what}, which this run does not have; it is kept as {keep_aside(path).name}")
    write_atomically(path, text)


def _read(path: Path) -> Document | str:
    """The document, or why there is none."""
    try:
        return Logic.load(path).document
    except UserError as error:
        return f"cannot be used ({error.location}: {error.what})"
    except Exception as error:  # whatever is wrong with the file, a run's results are worth more
        return f"cannot be read ({type(error).__name__}: {error})"
