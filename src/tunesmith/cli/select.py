"""`tunesmith select LOGIC --size M N B K`: which solution, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tunesmith.library import load
from tunesmith.logic import Choice
from tunesmith.records import UserError, thaw
from tunesmith.report import tables

from ._output import Json, console, print_json


def select(
    context: typer.Context,
    logic: Annotated[Path, typer.Argument(help="A library logic, or a folder of them.", show_default=False)],
    size: Annotated[str, typer.Option("--size", help="One number an index: M N B K.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Say which solution the library launches for a size, by which rule (exact, nearest, fallback), and how long it takes.

    Example: `tunesmith select out/logic --size 1024 1024 1 1024`
    """
    sizes = _sizes([size, *context.args])
    library = load(logic)
    try:
        choices = library.choices(sizes)
    except ValueError as error:
        raise UserError("--size", str(error), "give one number for each index of the problem type") from error
    if as_json:
        print_json({"choices": [{"problem_type": name, **_document(choice)} for name, choice in choices.items()]})
    else:
        console.print(tables.choices(sizes, choices))


def _sizes(words: list[str]) -> tuple[int, ...]:
    try:
        sizes = tuple(int(part) for word in words for part in word.replace(",", " ").replace("x", " ").split())
    except ValueError:
        raise UserError("--size", f"{' '.join(words)} is no list of whole numbers", "write --size 1024 1024 1 1024") from None
    if any(number < 1 for number in sizes):
        raise UserError("--size", f"{' '.join(words)} has a size below 1", "write --size 1024 1024 1 1024")
    return sizes


def _document(choice: Choice) -> dict[str, Any]:
    return {
        "solution": choice.name,
        "kernel": choice.solution.kernel,
        "configuration": {name: thaw(value) for name, value in choice.solution.configuration.items()},
        "rule": choice.rule.value,
        "expected_seconds": choice.expected_seconds,
        "neighbour": list(choice.neighbour),
        "distance": choice.distance,
    }
