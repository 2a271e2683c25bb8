"""`tunesmith tune FILE -o DIR`: measure a tuning file, and write tables and library logic."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tunesmith import session
from tunesmith.report import documents, tables

from .many_devices import Cluster, Devices, ManyDevicesOptions, WaitFor
from .output import Device, Json, MaxSize, Order, Sizes
from .runs import Budget, KeptIn, Out, Quiet, Remeasure, RetryFailed, Wait, carried_out


def tune(
    file: Annotated[Path, typer.Argument(help="A tuning file (docs/tuning-file.md).")],
    out: Out,
    device: Device = None,
    devices: Devices = None,
    cluster: Cluster = None,
    wait_for: WaitFor = 1,
    max_size: MaxSize = None,
    sizes: Sizes = None,
    budget: Budget = None,
    retry_failed: RetryFailed = False,
    remeasure: Remeasure = False,
    store: KeptIn = None,
    wait: Wait = False,
    order: Order = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure a tuning file's phases, write CSV and library logic. The same command goes on with a stopped run.

    Ctrl-C keeps everything that was measured.

    Example: `tunesmith tune examples/quickstart.yaml -o out`

    Example: `tunesmith tune examples/quickstart.yaml -o out --devices all`
    """
    work = partial(
        session.tune,
        file,
        folder=out,
        device=device,
        max_size=max_size,
        sizes=sizes,
        budget_minutes=budget,
        order=order,
        reuse=session.Reuse.of(retry_failed, remeasure),
        store=store,
        wait=wait,
    )
    many = ManyDevicesOptions(devices, cluster, wait_for, device)
    carried_out(work, out, documents.outcome, tables.outcome, quiet=quiet, as_json=as_json, many=many)
