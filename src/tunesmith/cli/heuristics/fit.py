"""`tunesmith heuristics fit SOURCE... -o FILE`: cut points between sizes, fitted to tuned kernels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.records import UserError
from tunesmith.report.heuristics import choice as choice_report
from tunesmith.report.heuristics import fitted as report
from tunesmith.session.heuristics.fit import FitMethod, FitTask, fit_heuristic
from tunesmith.session.heuristics.fit_choice import FitChoiceTask, fit_choice_file
from tunesmith.session.heuristics.sources import Grouping, SourceTask, keep_of

from ..output import Json, print_facts

Sources = Annotated[
    list[Path], typer.Argument(help="Tables of winners (CSV, also .gz), IREE's specs (.mlir), finals; stores.")
]
Where = Annotated[
    list[str], typer.Option("--where", help="COLUMN=WORD[,WORD] of a table: which rows count. May be repeated.")
]
LeastSize = Annotated[int, typer.Option(min=1, help="Leave out products with an M, N or K below this.")]
MatrixOnly = Annotated[bool, typer.Option("--matrix-only", help="Only winners that use matrix instructions.")]
Groups = Annotated[
    Grouping,
    typer.Option(
        help="What is held out together: products of equal M and N, of a family (Tensile, 2-D convolution ...), of a "
        "source file. A final has no families: there, family means the file, too."
    ),
]
Ridge = Annotated[
    float | None, typer.Option(min=1e-3, help="The device's, in FLOP per byte; that of a known chip if absent.")
]
Units = Annotated[int | None, typer.Option(min=1, help="The device's compute units; those of a known chip if absent.")]
Siblings = Annotated[
    list[Path],
    typer.Option(
        "--sibling",
        help="For --method choice: a run on another device of the same architecture, in a type that is as fast "
        "(bfloat16 for float16), or of single matrices for a model of batches, which teaches what the sources have not "
        "measured. May be repeated.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of folds and resamples.")]


def fit(
    sources: Sources,
    out: Annotated[Path, typer.Option("-o", "--out", help="The heuristic's file, YAML.")],
    method: Annotated[FitMethod, typer.Option(help="How buckets are found.")] = FitMethod.DP,
    metric: Annotated[
        str | None,
        typer.Option(help="mn, mnk, intensity, ridges or waves; chosen by cross-validation if absent."),
    ] = None,
    buckets: Annotated[
        int | None, typer.Option(min=1, max=16, help="How many; chosen by cross-validation if absent.")
    ] = None,
    where: Where = [],  # noqa: B006  # typer's own way to say "none"
    least_size: LeastSize = 1,
    matrix_only: MatrixOnly = False,
    groups: Groups = Grouping.MN,
    ridge: Ridge = None,
    units: Units = None,
    python: Annotated[Path | None, typer.Option(help="Where to write the rule as a Python function, too.")] = None,
    sizes: Annotated[
        list[Path],
        typer.Option("--sizes", help="For --method choice: LIST.csv with the families to hold out. May be repeated."),
    ] = [],  # noqa: B006  # typer's own way to say "none"
    plans: Annotated[
        list[Path],
        typer.Option("--plans", help="For --method choice: a file of `heuristics plans`. May be repeated."),
    ] = [],  # noqa: B006
    siblings: Siblings = [],  # noqa: B006
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fit cut points along a metric to kernels that were tuned, and write them with a configuration for each bucket.

    Cut points that are pinned in FILE stay. Metric and number of buckets are chosen by cross-validation, in which
    groups of products are held out together; the fewest buckets within a standard error of the best are taken.

    Example: `tunesmith heuristics fit winners.csv.gz --where arch=gfx90a --where dtype=f16 -o gfx90a.yaml`

    With --method choice, sources are stores, folders that hold one, and tables of finals. The file then has the
    expected time of every solution with its doubt; beside the logic of a run, the library chooses by it.

    Example: `tunesmith heuristics fit convolutions.csv --method percentile-r2 -o study.yaml`

    Example: `tunesmith heuristics fit results/ --method choice --sizes design.csv -o results/logic/choice.yaml`
    """
    if method is FitMethod.CHOICE:
        bucket_options = {
            "--metric": metric,
            "--buckets": buckets,
            "--where": where,
            "--least-size": least_size > 1,
            "--matrix-only": matrix_only,
            "--groups": groups is not Grouping.MN,
            "--ridge": ridge,
            "--units": units,
            "--python": python,
        }
        for option in (name for name, value in bucket_options.items() if value):
            raise UserError(option, "means nothing to --method choice", "leave it out")
        task = FitChoiceTask(tuple(sources), tuple(sizes), out, tuple(plans), tuple(siblings), seed)
        written = fit_choice_file(task)
        print_facts(as_json, choice_report.fitted_document, choice_report.fitted, written)
        return
    choice_options = ("--sizes", sizes), ("--plans", plans), ("--sibling", siblings)
    for option in (name for name, value in choice_options if value):
        raise UserError(option, f"means nothing to --method {method}", "leave it out")
    source = SourceTask(tuple(sources), keep_of(where), least_size, matrix_only, groups, ridge, units)
    result = fit_heuristic(FitTask(source, out, method, metric, buckets, python, seed))
    print_facts(as_json, report.fitted_document, report.fitted, result)
