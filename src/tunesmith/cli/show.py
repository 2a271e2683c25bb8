"""`tunesmith show DIR`: the results of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report import documents, tables
from tunesmith.session.tuning_file import summarise

from .output import Json, print_facts


def show(
    folder: Annotated[Path, typer.Argument(help="The folder given to `tunesmith tune -o`.")],
    as_json: Json = False,
) -> None:
    """Show winners per step, the table of the final, failures by reason, and what it cost.

    Example: `tunesmith show out`
    """
    summary = summarise(folder)
    print_facts(as_json, documents.summary, tables.summary, summary)
    if summary.failures:
        raise typer.Exit(1)
