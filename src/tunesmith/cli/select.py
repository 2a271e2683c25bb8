"""`tunesmith select LOGIC --size M N B K`: which solution, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.library import DeviceAbsentError, load
from tunesmith.logic import Choice, Logic, logic_files
from tunesmith.records import UserError, printable
from tunesmith.report import documents, tables

from ._output import Json, print_facts


def select(
    context: typer.Context,
    logic: Annotated[Path, typer.Argument(help="A library logic, or a folder of them.")],
    size: Annotated[
        str,
        typer.Option("--size", help="One number for each size of the type; for a GEMM, M N B K."),
    ],
    problem_type: Annotated[str, typer.Option("--type", help="Which problem type, where the folder has several.")] = "",
    as_json: Json = False,
) -> None:
    """Say which solution the library launches for a size, by which rule (exact, nearest, fallback), and expected time.

    Example: `tunesmith select out/logic --size 1024 1024 1 1024`
    """
    sizes = sizes_of([size, *context.args])
    with load(logic) as library:
        try:
            choice = library.select(*sizes, problem_type=problem_type)
        except DeviceAbsentError as absent:
            said = printable(f"{absent.place} {absent.what}")
            sys.stderr.write(f"tunesmith: {said}; whether the solution is legal was not asked\n")
            choice = library.says(*sizes, problem_type=problem_type)
        except ValueError as error:
            raise UserError("--size, --type", str(error), "give one number for each size of one type") from error
    print_facts(as_json, documents.choice, tables.choice, sizes, choice, _unfinished(logic, choice))


def _unfinished(logic: Path, choice: Choice) -> str:
    """What the run that wrote the chosen solution's logic had not decided yet."""
    documents_ = (Logic.load(path).document for path in logic_files(logic))
    return next((one.unfinished for one in documents_ if one.problem_type == choice.solution.type), "")


def sizes_of(words: list[str]) -> tuple[int, ...]:
    """The numbers after --size. Raises UserError for anything else."""
    try:
        sizes = tuple(int(part) for word in words for part in word.replace(",", " ").replace("x", " ").split())
    except ValueError:
        what = f"{' '.join(words)} is no list of whole numbers"
        raise UserError("--size", what, "write --size 1024 1024 1 1024") from None
    if any(number < 1 for number in sizes):
        raise UserError("--size", f"{' '.join(words)} has a size below 1", "write --size 1024 1024 1 1024")
    return sizes
