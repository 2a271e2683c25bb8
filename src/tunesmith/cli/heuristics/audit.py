"""`tunesmith heuristics audit SOURCE...`: the results of a study of intensity, and how far to trust them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.logic import write_atomically
from tunesmith.records import UserError
from tunesmith.report.heuristics import fitted as report
from tunesmith.report.heuristics.plot import audit_plot
from tunesmith.session.heuristics.audit import audit_heuristics
from tunesmith.session.heuristics.sources import Grouping, SourceTask, keep_of

from ..output import Json, print_facts
from .fit import Groups, LeastSize, MatrixOnly, Ridge, Seed, Sources, Units, Where


def audit(
    sources: Sources,
    where: Where = [],  # noqa: B006  # typer's own way to say "none"
    least_size: LeastSize = 1,
    matrix_only: MatrixOnly = False,
    groups: Groups = Grouping.MN,
    ridge: Ridge = None,
    units: Units = None,
    seed: Seed = 0,
    plot_out: Annotated[
        Path | None, typer.Option(help="P.svg: a picture of the winners, the lines and the steps.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Repeat the analysis behind IREE's intensity rule on winners of tuning, beside what the analysis left out.

    For each family: lines of work over intensity in the low and the high bucket, with R2, its interval, leave-one-out
    Q2 and leverage; then every metric with one to six buckets, the published rules, and free regressions, held out.

    Example: `tunesmith heuristics audit convolutions.csv`

    Example: `tunesmith heuristics audit winners.csv.gz --where arch=gfx90a --where dtype=f16 --least-size 16`
    """
    task = SourceTask(tuple(sources), keep_of(where), least_size, matrix_only, groups, ridge, units)
    if plot_out and plot_out.suffix.lower() != ".svg":
        raise UserError("--plot-out", f"{plot_out} is no SVG", "give a name that ends in .svg")
    result = audit_heuristics(task, seed)
    if plot_out:
        picture = audit_plot(result)
        if not picture:
            raise UserError("--plot-out", "tables of times have no tiles to draw", "leave out --plot-out")
        write_atomically(plot_out, picture)
    print_facts(as_json, report.audited_document, report.audited, result)
