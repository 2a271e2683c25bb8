"""`tunesmith calibrate stream-k WHAT -o FILE`: the costs of launches of stream-K kernels on a device."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.stream_k import explained as report
from tunesmith.session.stream_k.calibrate import CalibrationTask, calibrate_stream_k, runs_folder
from tunesmith.session.stream_k.kernels import TileFilter

from ..output import ComputeUnits, Family, Occupancy
from ..runs import RunOptions, carried_out, takes_run_options


@takes_run_options
def stream_k(
    what: Annotated[
        list[str],
        typer.Argument(help="Tuning files, data types (s, d, h, b, tf32), or problem types' names."),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The calibration file; what it holds already stays.")],
    tile: Annotated[
        str, typer.Option(help="Only this tile: rows x columns x depth, such as 128x128x64; any depth without it.")
    ] = "",
    kernel: Family = "",
    compute_units: ComputeUnits = None,
    occupancy: Occupancy = 1,
    *,
    run: RunOptions,
) -> None:
    """Make some forty short runs for each kernel and tile, fit costs to them, and write a file that a person can read.

    Of a tuning file, every tile that it forks is calibrated; of a type, the usual tile of the device's kernels. Runs
    are kept in a folder beside the file: Ctrl-C loses nothing, and the same command goes on. In the file, a cost that
    is put right by `adjusted:` stays so when it is calibrated again.

    Example: `tunesmith calibrate stream-k s -o calibration.yaml`

    Example: `tunesmith calibrate stream-k examples/wiki.yaml --tile 64x64 -o calibration.yaml`
    """
    task = CalibrationTask(tuple(what), TileFilter.of(tile) if tile else None, kernel, compute_units, occupancy)
    work = partial(
        calibrate_stream_k,
        task,
        out,
        device=run.device,
        budget_minutes=run.budget,
        reuse=run.reuse,
        store=run.store,
        wait=run.wait,
    )
    folder, document = runs_folder(out), report.calibrated_document
    carried_out(work, folder, document, report.calibrated, quiet=run.quiet, as_json=run.as_json)
