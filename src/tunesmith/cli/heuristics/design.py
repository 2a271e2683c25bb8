"""`tunesmith heuristics design -o LIST.csv`: products to tune, so that a choice model has broad data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.heuristics import lists as report
from tunesmith.session.heuristics.design import WantedProducts, write_design

from ..output import Json, print_facts

Out = Annotated[Path, typer.Option("-o", "--out", help="The list: m, n, k, batch, trans_a, trans_b, family, as CSV.")]
Count = Annotated[int, typer.Option("--count", min=1, max=100_000, help="How many products.")]
Families = Annotated[
    list[str], typer.Option("--family", help="Only products of this family of the design; several are possible.")
]
Without = Annotated[list[Path], typer.Option("--without", help="A list whose sizes stay out: what is judged on later.")]


def design(
    out: Out,
    count: Count = 400,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed gives other products of the same kind.")] = 1,
    without: Without = [],  # noqa: B006  # typer's own way to say "none"
    family: Families = [],  # noqa: B006
    batched: Annotated[bool, typer.Option("--batched", help="Batches of matrices instead of single ones.")] = False,
    as_json: Json = False,
) -> None:
    """Write a list of GEMMs that fills the space of sizes evenly, with all alignments and layouts.

    Half of the families are boxes of log sizes, the others are the products of published kinds of models. With
    --batched, all are batches: attention's heads, a mixture's experts, and others. A tuning file names the list in
    ProblemSizes: - File: LIST.csv; its measured matrices are what a choice model is fitted on.

    Example: `tunesmith heuristics design --count 400 --seed 1 --without judged.csv -o design.csv`
    """
    asked_for = WantedProducts(count, seed, tuple(without), tuple(family))
    print_facts(as_json, report.written_document, report.written, write_design(out, asked_for, batched))
