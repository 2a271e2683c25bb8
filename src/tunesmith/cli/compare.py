"""`tunesmith compare DIR`: the tuned library beside NumPy's BLAS."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report import documents, tables
from tunesmith.session.tuning_file import against_numpy

from .output import Json, print_facts


def compare(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or a library logic.")],
    as_json: Json = False,
) -> None:
    """Compare the library with NumPy on every tuned size: blocks of calls take turns, host time on both sides.

    The ratio is a fact, not a verdict: it does not change the exit code. What makes it worth less (a variable that
    slows NumPy's BLAS down, a busy machine, a wide interval) is said below the table.

    Example: `tunesmith compare out/quickstart`
    """
    compared = against_numpy(folder)
    print_facts(as_json, documents.comparison, partial(tables.comparison, folder=folder), compared)
