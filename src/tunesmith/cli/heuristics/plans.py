"""`tunesmith heuristics plans LIST... -o PLANS.csv`: how the vendor's library would compute products."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report import CountReport
from tunesmith.report.heuristics import lists as report
from tunesmith.session.heuristics.plans import CTRL_C, write_plans

from ..output import Json, messages, print_facts
from ..runs import INTERRUPTED, Quiet


def plans(
    lists: Annotated[
        list[Path], typer.Argument(metavar="LIST...", help="Lists of GEMMs, as `heuristics design` writes.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The products with the library's plans, as CSV.")],
    data_type: Annotated[str, typer.Option("--type", help="The operands' type: b, h, s, tf32, f8, ...")] = "b",
    device: Annotated[str | None, typer.Option("--device", help="The device; the first CUDA device if absent.")] = None,
    times: Annotated[
        bool,
        typer.Option("--times", help="Also time cuBLAS at each product: 70 a second on an H200."),
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Ask cuBLAS which algorithm, tile and parts of K it would take for each product, without computing it.

    A choice model that is fitted with --plans expects the library's times better, and the program that chooses by it
    asks the library, too. With --times every product is computed: those that no tuning measured teach the model how
    fast the library is there. Ctrl-C writes what is known so far, and the same command goes on.

    Example: `tunesmith heuristics plans design.csv next.csv -o plans.csv`

    Example: `tunesmith heuristics plans many.csv -o times.csv --times`
    """
    with CountReport(messages, "asking the library", quiet or as_json) as progress:
        written = write_plans(lists, out, data_type, device, times, progress)
    print_facts(as_json, report.planned_document, report.planned, written)
    if written.stopped:
        raise typer.Exit(INTERRUPTED if written.stopped == CTRL_C else 1)
