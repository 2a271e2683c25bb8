"""`tunesmith calibrate roofline TYPE -o FILE`: a device's peak, bandwidth and ridge, measured."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report.roofline import tables as report
from tunesmith.session import Reuse
from tunesmith.session.intensity.calibrate import calibrate_roofline, roofline_runs

from ..output import Device, Json
from ..runs import Budget, Quiet, Remeasure, RetryFailed, carried_out


def roofline(
    types: Annotated[list[str], typer.Argument(help="Data types: s, d, h, b, f8, b8, i8, tf32.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="The file of rooflines; what it holds already stays.")],
    device: Device = None,
    budget: Budget = None,
    retry_failed: RetryFailed = False,
    remeasure: Remeasure = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Time a large product (by the vendor's BLAS, else by our fastest default) and a large copy, and write both rates.

    The file is for `tunesmith characterize --roofline`. Measurements are kept in a folder beside it: the same command
    measures nothing again, unless --remeasure asks for it.

    Example: `tunesmith calibrate roofline s d -o roofline.yaml`
    """
    reuse = Reuse.of(retry_failed, remeasure)
    work = partial(calibrate_roofline, types, out, device=device, budget_minutes=budget, reuse=reuse)
    carried_out(work, roofline_runs(out), report.measured_document, report.measured, quiet=quiet, as_json=as_json)
