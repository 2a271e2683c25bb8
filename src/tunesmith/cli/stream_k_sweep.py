"""`tunesmith stream-k sweep LIST.csv --tile MxNxDEPTH -o DIR`: what predictions lose against the best that there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.logic import write_atomically
from tunesmith.report import ProgressReport
from tunesmith.report import stream_k_sweep as report
from tunesmith.session.stream_k.choices import GRIDS
from tunesmith.session.stream_k.kernels import TileFilter
from tunesmith.session.stream_k.sweep import TABLE, SweepOutcome, SweepTask, sweep_stream_k

from ._output import Device, Json, messages
from ._runs import ended, stoppable

PLOT = "sweep.svg"


def sweep(
    products: Annotated[
        Path,
        typer.Argument(
            help="CSV with the columns m, n, k and, if need be, batch, trans_a, trans_b (N or T) and family, of"
            " row-major matrices.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="The sweep's folder: all that was measured, and results.")],
    tile: Annotated[
        str, typer.Option(help="Rows x columns x depth of a macro tile; the usual one without it.", show_default=False)
    ] = "",
    what: Annotated[
        str, typer.Option("--type", help="A data type (s, d, h, b, tf32), a problem type's name, or a tuning file.")
    ] = "s",
    kernel: Annotated[str, typer.Option(help="A kernel family, where several can.", show_default=False)] = "",
    family: Annotated[
        list[str] | None,
        typer.Option(help="Only products with this word in the column family; may be repeated.", show_default=False),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            help="What `tunesmith calibrate stream-k` wrote; calibration.yaml in the sweep's folder without it.",
            show_default=False,
        ),
    ] = None,
    refit: Annotated[
        bool, typer.Option("--refit", help="Fit that calibration anew, to its own runs and the sweep's finalists.")
    ] = False,
    grids: Annotated[int, typer.Option(min=1, help="Grids to try, from 1 to all work-groups, log-spaced.")] = GRIDS,
    compute_units: Annotated[
        int | None, typer.Option(min=1, help="Keep every grid to so many of the device's.", show_default=False)
    ] = None,
    occupancy: Annotated[int, typer.Option(min=1, max=64, help="Work-groups that a compute unit holds at once.")] = 1,
    device: Device = None,
    budget: Annotated[
        float | None, typer.Option("--budget", min=0.01, help="Minutes to keep to.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
    as_json: Json = False,
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
    with stoppable(out), ProgressReport(messages, quiet or as_json) as progress:
        outcome = sweep_stream_k(task, out, device=device, budget_minutes=budget, observe=progress)
    written = _written(outcome)
    ended(as_json, lambda: report.document(outcome, written), lambda: report.swept(outcome, written), outcome.look_at)


def _written(outcome: SweepOutcome) -> list[Path]:
    if not outcome.swept:
        return []
    # Imported here since templates are only needed for pictures.
    from tunesmith.report.stream_k_plot import plot

    picture = outcome.folder / PLOT
    write_atomically(picture, plot(outcome))
    return [outcome.folder / TABLE, picture, *([outcome.refit.path] if outcome.refit else [])]
