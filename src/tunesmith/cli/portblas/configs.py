"""`tunesmith portblas configs`: the parameter sets that are found by name."""

from __future__ import annotations

from typing import Annotated

import typer

from tunesmith.formats.portblas.parameter_files import RuleSet
from tunesmith.report.portblas import lists as report
from tunesmith.session.portblas.sets import listed_sets

from ..output import Json, print_facts
from .generate import Folders


def configs(
    folder: Folders = None,
    mode: Annotated[RuleSet, typer.Option(help="Whose rules decide what is valid.")] = RuleSet.OURS,
    as_json: Json = False,
) -> None:
    """List the sets that ship and your own: JSON files in --folder and in the folders of TUNESMITH_PORTBLAS_SETS.

    A set is found by its file's name; of two with the same name yours counts.

    Example: `tunesmith portblas configs`

    Example: `tunesmith portblas configs --folder my_sets --json`
    """
    sets = listed_sets(folder or (), mode)
    print_facts(as_json, report.sets_document, report.sets, sets)
    if report.look_at(sets):
        raise typer.Exit(1)
