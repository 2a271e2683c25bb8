"""`tunesmith stream-k sweep LIST.csv --tile MxNxDEPTH -o DIR`: how much time predictions lose against the best
launch."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.stream_k import sweep as report
from tunesmith.report.stream_k.plot import plot
from tunesmith.session.stream_k.choices import GRIDS
from tunesmith.session.stream_k.kernels import TileFilter
from tunesmith.session.stream_k.sweep import SweepTask, sweep_stream_k

from ..many_devices import Cluster, Devices, ManyDevicesOptions, WaitFor
from ..output import ComputeUnits, Family, Occupancy
from ..runs import RunOptions, carried_out, takes_run_options


@takes_run_options
def sweep(
    products: Annotated[
        Path,
        typer.Argument(
            help="CSV with the columns m, n, k and, if need be, batch, trans_a, trans_b (N or T) and family, of"
            " row-major matrices.",
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The sweep's folder: all that was measured, and results.")],
    tile: Annotated[str, typer.Option(help="Rows x columns x depth of a macro tile; the usual one without it.")] = "",
    what: Annotated[
        str, typer.Option("--type", help="A data type (s, d, h, b, tf32), a problem type's name, or a tuning file.")
    ] = "s",
    kernel: Family = "",
    family: Annotated[
        list[str] | None,
        typer.Option(help="Only products with this word in the column family; may be repeated."),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            help="What `tunesmith calibrate stream-k` wrote; calibration.yaml in the sweep's folder without it.",
        ),
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit that calibration anew, to its own runs and the sweep's finalists.")
    ] = False,
    grids: Annotated[int, typer.Option(min=1, help="Grids to try, from 1 to all work-groups, log-spaced.")] = GRIDS,
    compute_units: ComputeUnits = None,
    occupancy: Occupancy = 1,
    devices: Devices = None,
    cluster: Cluster = None,
    wait_for: WaitFor = 1,
    *,
    run: RunOptions,
) -> None:
    """Measure a list of products with many grids and numbers of split tiles, and print how close predictions come.

    All choices of a product race; what was chosen by any way to decide, and the fastest of the others, are then
    measured side by side. Everything is kept in the folder: Ctrl-C loses nothing, and the same command goes on. It also
    holds a table of all times and a plot of time against the tiles beyond whole waves.

    Example: `tunesmith stream-k sweep products.csv --tile 64x64 -o sweep`

    Example: `tunesmith stream-k sweep products.csv --type bf16 --calibration calibration.yaml --refit -o sweep`
    """
    task = SweepTask(
        products=products,
        what=what,
        tile=TileFilter.of(tile) if tile else None,
        kernel=kernel,
        families=tuple(family or ()),
        calibration=calibration,
        refit=refit,
        grids=grids,
        compute_units=compute_units,
        occupancy=occupancy,
    )
    work = partial(
        sweep_stream_k,
        task,
        folder=out,
        device=run.device,
        budget_minutes=run.budget,
        reuse=run.reuse,
        store=run.store,
        wait=run.wait,
        draw=plot,
    )
    many = ManyDevicesOptions(devices, cluster, wait_for, run.device)
    carried_out(work, out, report.document, report.swept, quiet=run.quiet, as_json=run.as_json, many=many)
