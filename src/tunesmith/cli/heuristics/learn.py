"""`tunesmith heuristics learn MODEL -o LIST.csv`: the products that would teach a choice model most."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.heuristics import lists as report
from tunesmith.session.heuristics.design import WantedProducts, write_products_to_learn

from ..output import Json, print_facts
from .design import Count, Families, Out, Without


def learn(
    model: Annotated[Path, typer.Argument(help="A choice model, by `tunesmith heuristics fit --method choice`.")],
    out: Out,
    count: Count = 100,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed considers other products.")] = 1,
    without: Without = [],  # noqa: B006  # typer's own way to say "none"
    family: Families = [],  # noqa: B006
    file: Annotated[
        Path | None,
        typer.Option("--file", help="Also write a tuning file that measures the model's solutions on the list."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a list of the products that would teach a choice model most, each family of the design with its share.

    Tune the list, and fit again to both runs. The tuning file of --file has no steps, since the model's solutions have
    been through them.

    Example: `tunesmith heuristics learn tuned/logic/choice.yaml --count 100 -o next.csv --file next.yaml`
    """
    asked_for = WantedProducts(count, seed, tuple(without), tuple(family))
    written = write_products_to_learn(model, out, asked_for, file)
    print_facts(as_json, report.learned_document, report.written, written)
