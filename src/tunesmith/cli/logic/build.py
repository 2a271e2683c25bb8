"""`tunesmith logic build STORE -o FOLDER`: library logic from measurements, without the device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.library_logic import pages
from tunesmith.session.library_logic.stored import logic_of_store, write_stored

from ..output import Json, print_facts


def build(
    store: Annotated[str, typer.Argument(metavar="STORE", help="A run's folder, a store's file, or its URL.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write logic and tables.")],
    device: Annotated[
        str, typer.Option("--device", help="NAME, API:NAME or API:NAME:ARCHITECTURE, if the store has several.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Write the library logic of all that a store has, and the tables, without measuring.

    It is for a run that was stopped, and for a store in which several runs or hosts have measured. At each size the
    fastest solution wins; if it was in a race of finalists, the winner of that race.

    Example: `tunesmith logic build out -o built`

    Example: `tunesmith logic build postgresql://host/tunesmith --device 'NVIDIA H200' -o built`
    """
    made = logic_of_store(store, device)
    write_stored(made, out)
    print_facts(as_json, pages.built_document, pages.built, out, made)
