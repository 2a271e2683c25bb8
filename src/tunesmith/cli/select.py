"""`tunesmith select LOGIC --size M N B K`: the solution that is launched, and by which rule."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.library import DeviceAbsentError, Library, load
from tunesmith.logic import Choice, Logic, Rule, logic_files
from tunesmith.records import UserError, printable
from tunesmith.report import documents, tables

from .output import Json, print_facts


def select(
    context: typer.Context,
    logic: Annotated[Path, typer.Argument(help="A library logic, or a folder of them.")],
    size: Annotated[
        str,
        typer.Option("--size", help="One number for each size of the type; for a GEMM, M N B K."),
    ],
    problem_type: Annotated[
        str,
        typer.Option("--type", help="Which problem type, where the folder has several; a GEMM's need not have logic."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Say which solution the library launches for a size, by which rule (exact, nearest, fallback; vendor where a CPU's
    BLAS is chosen; heuristic for a GEMM without logic), and expected time.

    Example: `tunesmith select out/logic --size 1024 1024 1 1024`

    Example: `tunesmith select out/logic --size 1024 1024 1024 --type Cij_Aik_Bkj_DB`
    """
    sizes = sizes_of([size, *context.args])
    with load(logic) as library:
        try:
            choice = _choice(library, sizes, problem_type)
        except ValueError as error:
            raise UserError("--size, --type", str(error), "give one number for each size of one type") from error
        has_logic = _has_logic(library, choice)
    if not has_logic:
        _say_which_logic_is_not_used(logic, choice)
    unfinished = _unfinished(logic, choice) if has_logic else ""
    print_facts(as_json, documents.choice, tables.choice, sizes, choice, unfinished)


def _choice(library: Library, sizes: tuple[int, ...], problem_type: str) -> Choice:
    """The choice that is launched here; if the logic's device is absent, the logic's first choice."""
    try:
        _ = library.target  # if its device is absent, the logic's own answer is better than a policy's for another one
    except DeviceAbsentError as absent:
        with suppress(ValueError):
            choice = library.says(*sizes, problem_type=problem_type)
            reason = printable(f"{absent.location} {absent.what}")
            sys.stderr.write(f"tunesmith: {reason}; whether the solution is legal was not asked\n")
            return choice
    return library.select(*sizes, problem_type=problem_type)


def _has_logic(library: Library, choice: Choice) -> bool:
    """Whether the choice is for a type with a logic; also true for the answer of a logic whose device is absent."""
    if choice.rule not in (Rule.HEURISTIC, Rule.VENDOR):
        return True
    try:
        return choice.solution.type in library.problem_types
    except DeviceAbsentError:
        return False


def _say_which_logic_is_not_used(logic: Path, choice: Choice) -> None:
    """The device for which a logic of the choice's type was made, if there is such a logic."""
    chosen_by = "a policy" if choice.rule is Rule.HEURISTIC else "no logic"
    for path in logic_files(logic):
        document = Logic.load(path).document
        if document.problem_type == choice.solution.type:
            origin = printable(f"{path} was made on {document.origin.device} ({document.origin.api})")
            sys.stderr.write(f"tunesmith: {origin}, which the library does not work on; {chosen_by} chose\n")


def _unfinished(logic: Path, choice: Choice) -> str:
    """What is not decided yet in the logic of the chosen solution's type, in words."""
    logics = (Logic.load(path).document for path in logic_files(logic))
    return next((document.unfinished for document in logics if document.problem_type == choice.solution.type), "")


def sizes_of(words: list[str]) -> tuple[int, ...]:
    """The numbers after --size. Raises UserError for words that are no positive whole numbers."""
    try:
        sizes = tuple(int(part) for word in words for part in word.replace(",", " ").replace("x", " ").split())
    except ValueError:
        what = f"{' '.join(words)} is no list of whole numbers"
        raise UserError("--size", what, "write --size 1024 1024 1 1024") from None
    if any(number < 1 for number in sizes):
        raise UserError("--size", f"{' '.join(words)} has a size below 1", "write --size 1024 1024 1 1024")
    return sizes
