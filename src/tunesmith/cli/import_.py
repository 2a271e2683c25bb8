"""`tunesmith import FILE -o NEW.yaml`: bring a tuning file of Tensile's over into our form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith import session
from tunesmith.report import imported

from .output import Json, Sizes, print_facts


def import_(
    file: Annotated[Path, typer.Argument(help="A tuning file of Tensile's, of any era (docs/from-tensile.md).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The new tuning file.")],
    sizes: Sizes = None,
    as_json: Json = False,
) -> None:
    """Write a tuning file of Tensile's in our form, with comments on what was translated and dropped, and why.

    The commands `plan` and `tune` also take the file as it is.

    Example: `tunesmith import rocblas_sgemm.yaml -o sgemm.yaml`
    """
    print_facts(as_json, imported.outcome_document, imported.outcome, session.import_file(file, out, sizes=sizes))
