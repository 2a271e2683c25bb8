"""`tunesmith random select FILES`: the best launch shapes from benchmark files and our own measurements."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.formats import read_random
from tunesmith.formats.random_outputs import write_selection
from tunesmith.formats.random_settings import read_defaults, read_weights
from tunesmith.logic import write_atomically
from tunesmith.logic.random_choice import DEFAULT_SHAPES, Decision, Objective, choose
from tunesmith.records import UserError
from tunesmith.report import random_choice as report

from ._output import Json, console, print_json


def select(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="JSON of google-benchmark or primbench; folders of `random tune`, or their stores.", show_default=False
        ),
    ],
    objective: Annotated[Objective, typer.Option(help="What the best shape is best in.")] = Objective.GEOMEAN,
    out_dir: Annotated[
        Path | None, typer.Option(help="Folder for C++ headers and tunesmith_random.json.", show_default=False)
    ] = None,
    plot_out: Annotated[
        Path | None,
        typer.Option(help="P.svg: heat maps P_<architecture>_<generator>.svg.", show_default=False),
    ] = None,
    default_config: Annotated[
        Path | None,
        typer.Option(
            "--default-config",
            "--default-config-dir",
            help="Default shapes: config_defaults.json, or its folder.",
            show_default=False,
        ),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="Weights of distributions and types, CSV or JSON.", show_default=False)
    ] = None,
    no_regressions: Annotated[
        bool, typer.Option("--no-regressions", help="Only shapes that are nowhere slower than the default.")
    ] = False,
    merge_from: Annotated[
        Path | None,
        typer.Option(help="Folder of headers to put the shapes into, where --out-dir has none.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Choose a launch shape for each generator and architecture, as ratio to the default shape's speed.

    Warns where a distribution or type becomes slower, and goes on past what is wrong in a file.

    Example: `tunesmith random select gfx90a.json gfx1100.json --out-dir config --plot-out plots/random.svg`

    Example: `tunesmith random select out/h200 gfx90a.json --out-dir config`
    """
    if (objective is Objective.WEIGHTED) != (weights is not None):
        raise UserError("--weights", "goes with --objective weighted and with no other", "give both or neither")
    if plot_out and plot_out.suffix.lower() != ".svg":
        raise UserError("--plot-out", f"{plot_out} is no SVG", "give a name that ends in .svg")
    defaults = {**DEFAULT_SHAPES, **(read_defaults(default_config) if default_config else {})}
    weighed = read_weights(weights) if weights else None
    reading = read_random(files)
    made = choose(reading.rows, objective, defaults, weighed, no_regressions)
    complaints = [*reading.complaints, *made.complaints]
    written: dict[str, Sequence[Path]] = {}
    if out_dir and made.decisions:
        outputs = write_selection(made.decisions, out_dir, merge_from)
        complaints += outputs.complaints
        written = {"header": outputs.headers, "table": [outputs.table] if outputs.table else []}
    if plot_out:
        written["plot"] = _plots(made.decisions, plot_out)
    if as_json:
        print_json(report.document(made, complaints, written))
    if not made.decisions:
        sys.stderr.writelines(f"tunesmith: {complaint}\n" for complaint in complaints)
        raise typer.Exit(2)
    if not as_json:
        console.print(report.selection(made, complaints, written))
    if report.look_at(made, complaints):
        raise typer.Exit(1)


def _plots(decisions: Sequence[Decision], path: Path) -> list[Path]:
    # Imported here since templates are only needed for pictures.
    from tunesmith.report.random_heatmap import heatmaps

    paths = []
    for decision, svg in heatmaps(decisions):
        name = re.sub(r"[^\w.-]", "_", f"{path.stem}_{decision.architecture}_{decision.generator}{path.suffix}")
        write_atomically(path.with_name(name), svg)
        paths.append(path.with_name(name))
    return paths
