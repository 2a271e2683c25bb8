"""`tunesmith select LOGIC --size M N B K`: the solution that is launched, and by which rule.

`--logic FILE` names the logic, too, which may then be Tensile's.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.library import DeviceAbsentError, Library, load
from tunesmith.logic import Choice, Logic, Rule, ShippedLogic, logic_files, shipped_names, shipped_under
from tunesmith.records import UserError, printable
from tunesmith.report import documents, tables
from tunesmith.report.library_logic import pages
from tunesmith.session.library_logic.choice import is_ours, tensile_choice

from .output import Json, print_facts


def select(
    context: typer.Context,
    size: Annotated[
        str,
        typer.Option("--size", help="One number for each size of the type; for a GEMM, M N B K."),
    ],
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="LOGIC",
            help="A library logic, or a folder of them; or the name of one that ships.",
            show_default=False,
        ),
    ] = None,
    logic: Annotated[
        Path | None, typer.Option("--logic", metavar="FILE", help="The same; may be a library logic of Tensile.")
    ] = None,
    problem_type: Annotated[
        str,
        typer.Option("--type", help="Which problem type, where the folder has several; a GEMM's need not have logic."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Say which solution the library launches for a size, by which rule (exact; predicted by a choice model; nearest;
    fallback; sibling where another device was measured; vendor where a BLAS is chosen unmeasured; heuristic for a GEMM
    without logic), and expected time.

    By a library logic of Tensile (--logic), say what Tensile launches. The exit code is 1 if it goes on to another
    file.

    Example: `tunesmith select out/logic --size 1024 1024 1 1024`

    Example: `tunesmith select --logic vega10_Cijk_Ailk_Bjlk_SB.yaml --size 1024 1024 1 1024`

    Example: `tunesmith select out/logic --size 1024 1024 1024 --type Cij_Aik_Bkj_DB`

    Example: `tunesmith select nvidia-h200-bf16/Cij_Aki_Bkj_B --size 4096 24 4096`
    """
    if logic is not None and folder is not None and _is_size(folder.name):
        # Without LOGIC before it, the second word after --size is taken for LOGIC.
        size, folder = f"{size} {folder}", None
    sizes, path = sizes_of([size, *context.args]), _path_of(folder, logic)
    shipped = shipped_under(path)
    if not shipped and not path.exists():
        what, names = "is not there, and no logic of that name ships with tunesmith", ", ".join(shipped_names())
        raise UserError(str(path), what, f"name a path, or one of {names}")
    if not shipped and not is_ours(path):
        made = tensile_choice(path, sizes, problem_type)
        print_facts(as_json, pages.answer_document, pages.answer, made)
        if made.index is None:
            raise typer.Exit(1)
        return
    with _library_of(shipped) if shipped else load(path) as library:
        try:
            choice = _choice(library, sizes, problem_type)
        except ValueError as error:
            raise UserError("--size, --type", str(error), "give one number for each size of one type") from error
        has_logic = _has_logic(library, choice)
    if not has_logic and not shipped:
        _say_which_logic_is_not_used(path, choice)
    unfinished = _unfinished(path, choice) if has_logic and not shipped else ""
    print_facts(as_json, documents.choice, tables.choice, sizes, choice, unfinished)


def _path_of(folder: Path | None, logic: Path | None) -> Path:
    """The logic, which is named in one of two ways. Raises UserError for none and for both."""
    if folder is not None and logic is not None:
        raise UserError("--logic", f"{logic} is given beside {folder}", "name one logic")
    path = logic if logic is not None else folder
    if path is None:
        raise UserError("LOGIC", "is missing", "name a library logic, a folder of them, or one that ships")
    return path


def _library_of(shipped: tuple[Path, ShippedLogic]) -> Library:
    file, found = shipped
    return Library([(file, logic) for logic in found.logics])


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


def _is_size(word: str) -> bool:
    return word.replace(",", "").replace("x", "").isdecimal()


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
