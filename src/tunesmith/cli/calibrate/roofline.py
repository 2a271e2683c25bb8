"""`tunesmith calibrate roofline TYPE -o FILE`: a device's peak, bandwidth and ridge, measured."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.roofline import tables as report
from tunesmith.session.intensity.calibrate import calibrate_roofline, roofline_runs

from ..runs import RunOptions, carried_out, takes_run_options


@takes_run_options
def roofline(
    types: Annotated[list[str], typer.Argument(help="Data types: s, d, h, b, f8, b8, i8, tf32.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The file of rooflines; what it holds already stays.")],
    *,
    run: RunOptions,
) -> None:
    """Time a large product (by the vendor's BLAS, else by our fastest default) and a large copy, and write both rates.

    The file is for `tunesmith characterize --roofline`. Measurements are kept in a folder beside it: the same command
    measures nothing again, unless --remeasure asks for it.

    Example: `tunesmith calibrate roofline s d -o roofline.yaml`
    """
    work = partial(
        calibrate_roofline,
        types,
        out,
        device=run.device,
        budget_minutes=run.budget,
        reuse=run.reuse,
        store=run.store,
        wait=run.wait,
    )
    folder, document = roofline_runs(out), report.measured_document
    carried_out(work, folder, document, report.measured, quiet=run.quiet, as_json=run.as_json)
