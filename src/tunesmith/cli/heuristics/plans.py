"""`tunesmith heuristics plans LIST... -o PLANS.csv`: how the vendor's library would compute products."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.heuristics import lists as report
from tunesmith.session.heuristics.plans import write_plans

from ..output import Json, print_facts


def plans(
    lists: Annotated[
        list[Path], typer.Argument(metavar="LIST...", help="Lists of GEMMs, as `heuristics design` writes.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The products with the library's plans, as CSV.")],
    data_type: Annotated[str, typer.Option("--type", help="The operands' type: b, h, s, tf32, f8, ...")] = "b",
    device: Annotated[str | None, typer.Option("--device", help="The device; the first CUDA device if absent.")] = None,
    as_json: Json = False,
) -> None:
    """Ask cuBLAS which algorithm, tile and parts of K it would take for each product, without computing any.

    A choice model that is fitted with --plans expects the library's times better, and the program that chooses by it
    asks the library, too.

    Example: `tunesmith heuristics plans design.csv next.csv -o plans.csv`
    """
    print_facts(as_json, report.planned_document, report.planned, write_plans(lists, out, data_type, device))
