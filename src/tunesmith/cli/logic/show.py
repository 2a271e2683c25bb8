"""`tunesmith logic show FILE`: what is in a library logic, Tensile's or ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.library_logic import pages
from tunesmith.session.library_logic.summary import summary_of

from ..output import Json, print_facts


def show(
    file: Annotated[
        Path,
        typer.Argument(help="A library logic: Tensile's in any form, or tunesmith's; or the name of one that ships."),
    ],
    as_json: Json = False,
) -> None:
    """Show what is in a library logic: the device, the problem type, solutions, exact sizes and rules for other sizes.

    Example: `tunesmith logic show vega10_Cijk_Ailk_Bjlk_SB.yaml`

    Example: `tunesmith logic show out/logic/Cij_Aik_Bjk_SB.yaml --json`

    Example: `tunesmith logic show nvidia-h100-bf16/Cij_Aki_Bkj_B`
    """
    print_facts(as_json, pages.summary_document, pages.summary, summary_of(file))
