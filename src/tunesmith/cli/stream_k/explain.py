"""`tunesmith stream-k explain --size M N B K --tile MxNxDEPTH`: how a product is launched, and why."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.records import UserError
from tunesmith.report import ProgressReport
from tunesmith.report.stream_k import explained as report
from tunesmith.session.stream_k.explain import ExplainTask, explain_stream_k
from tunesmith.session.stream_k.kernels import TileFilter

from ..output import Device, Json, Occupancy, messages, print_facts
from ..select import sizes_of


def explain(
    context: typer.Context,
    size: Annotated[str, typer.Option("--size", help="M, N, batch and K.")],
    tile: Annotated[str, typer.Option(help="Rows x columns x depth of a macro tile, such as 128x128x64.")],
    problem_type: Annotated[
        str, typer.Option("--type", help="A data type (s, d, h, b, tf32) or a problem type's name.")
    ] = "s",
    calibration: Annotated[Path | None, typer.Option(help="What `tunesmith calibrate stream-k` wrote.")] = None,
    device: Device = None,
    compute_units: Annotated[int | None, typer.Option(min=1, help="For a device that is not here.")] = None,
    occupancy: Occupancy = 1,
    measure: Annotated[bool, typer.Option("--measure", help="Time every line, in alternating blocks.")] = False,
    as_json: Json = False,
) -> None:
    """Print what is launched for a product, what else was considered, what the models expect of it, and why.

    With a calibration, the device need not be there. The variables TUNESMITH_STREAMK_... override, as in the library;
    with --measure, what is predicted and what they say are timed side by side.

    Example: `tunesmith stream-k explain --size 4096 4000 1 8192 --tile 128x256x64 --compute-units 132`

    Example: `tunesmith stream-k explain --size 512 480 1 2048 --tile 32x16 --calibration calibration.yaml --measure`
    """
    sizes = sizes_of([size, *context.args])
    if len(sizes) != 4:
        raise UserError("--size", f"{len(sizes)} numbers", "write M, N, batch and K, such as --size 4096 4096 1 4096")
    m, n, batch, k = sizes
    task = ExplainTask(
        sizes=(m, n, batch, k),
        tile=TileFilter.of(tile),
        type=problem_type,
        calibration=calibration,
        device=device,
        compute_units=compute_units,
        occupancy=occupancy,
        measure=measure,
    )
    with ProgressReport(messages, quiet=as_json or not measure) as progress:
        explanation = explain_stream_k(task, os.environ, progress)
    print_facts(as_json, report.explained_document, report.explained, explanation)
