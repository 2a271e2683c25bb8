"""`tunesmith logic export FOLDER -o FILE`: our library logic in Tensile's list form."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.library_logic import pages
from tunesmith.session.library_logic.export import exported

from ..output import Json, print_facts


def export(
    logic: Annotated[Path, typer.Argument(metavar="FOLDER", help="Library logic, or the output folder of a run.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write.")],
    problem_type: Annotated[str, typer.Option("--type", help="Which problem type, where the folder has several.")] = "",
    as_json: Json = False,
) -> None:
    """Write the library logic of a GEMM type as Tensile's library logic, in its list form.

    The file is read back, and must choose the same solution for every exact size. Tensile itself cannot launch the
    kernels, which are tunesmith's.

    Example: `tunesmith logic export out -o exported.yaml`
    """
    print_facts(as_json, pages.export_document, pages.export, exported(logic, out, problem_type))
