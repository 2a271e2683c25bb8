"""`tunesmith random select FILES`: the best launch shapes from benchmark files and our own measurements."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.logic.random.decision import RandomObjective
from tunesmith.records import UserError
from tunesmith.report.random import choice as report
from tunesmith.report.random.heatmap import heatmaps
from tunesmith.session.random.select import select_random

from ..output import Json, print_facts


def select(
    files: Annotated[
        list[Path],
        typer.Argument(help="JSON of google-benchmark or primbench; folders of `random tune`, or their stores."),
    ],
    objective: Annotated[
        RandomObjective, typer.Option(help="What the best shape is best in.")
    ] = RandomObjective.GEOMEAN,
    out_dir: Annotated[Path | None, typer.Option(help="Folder for C++ headers and tunesmith_random.json.")] = None,
    plot_out: Annotated[
        Path | None,
        typer.Option(help="P.svg: heat maps P_<architecture>_<generator>.svg."),
    ] = None,
    default_config: Annotated[
        Path | None,
        typer.Option(
            "--default-config",
            "--default-config-dir",
            help="Default shapes: config_defaults.json, or its folder.",
        ),
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="Weights of distributions and types, CSV or JSON.")] = None,
    no_regressions: Annotated[
        bool, typer.Option("--no-regressions", help="Only shapes that are nowhere slower than the default.")
    ] = False,
    merge_from: Annotated[
        Path | None,
        typer.Option(help="Folder of headers to put the shapes into, where --out-dir has none."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose a launch shape for each generator and architecture, as ratio to the default shape's speed.

    Warns where a distribution or type becomes slower, and goes on past what is wrong in a file. The exit code is 1
    where there is something to look at; with `--objective compat` only where rocRAND's script ends with an error.

    Example: `tunesmith random select gfx90a.json gfx1100.json --out-dir config --plot-out plots/random.svg`

    Example: `tunesmith random select out/h200 gfx90a.json --out-dir config`
    """
    if (objective is RandomObjective.WEIGHTED) != (weights is not None):
        raise UserError("--weights", "goes with --objective weighted and with no other", "give both or neither")
    if plot_out and plot_out.suffix.lower() != ".svg":
        raise UserError("--plot-out", f"{plot_out} is no SVG", "give a name that ends in .svg")
    selected = select_random(
        files,
        objective,
        out_dir=out_dir,
        merge_from=merge_from,
        plot_out=plot_out,
        draw=heatmaps,
        default_config=default_config,
        weights=weights,
        no_regressions=no_regressions,
    )
    has_decisions = bool(selected.selection.decisions)
    if as_json or has_decisions:
        print_facts(as_json, report.document, report.tables, selected)
    if not has_decisions:
        sys.stderr.writelines(f"tunesmith: {complaint}\n" for complaint in selected.complaints)
        raise typer.Exit(2)
    if selected.ends_the_original if objective is RandomObjective.COMPAT else report.look_at(selected):
        raise typer.Exit(1)
