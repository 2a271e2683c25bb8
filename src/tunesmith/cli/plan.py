"""`tunesmith plan FILE`: the steps of a run and the minutes that it will take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith import session
from tunesmith.report import documents, tables

from .output import Device, Json, MaxSize, Order, Sizes, print_facts


def plan(
    file: Annotated[Path, typer.Argument(help="A tuning file (docs/tuning-file.md).")],
    device: Device = None,
    max_size: MaxSize = None,
    sizes: Sizes = None,
    calibrate: Annotated[
        bool | None,
        typer.Option(
            "--calibrate/--no-calibrate",
            help="Time a few configurations to forecast the minutes; if absent, not those of a kernel of your own.",
        ),
    ] = None,
    order: Order = None,
    as_json: Json = False,
) -> None:
    """Show every step before running: lineages x candidates x sizes, enqueues, the exhaustive product, minutes.

    The exit code is 1 where nothing legal is left to measure.

    Counts are given before rejections and after; what is legal later may depend on who wins. Of a tuning file of
    Tensile's, the counts as written are given too, and what became of every name.

    Example: `tunesmith plan examples/wiki.yaml --max-size 256`
    """
    forecast = session.plan(file, device=device, max_size=max_size, sizes=sizes, order=order, calibrate=calibrate)
    print_facts(as_json, documents.plan, tables.plan, forecast)
    if not forecast.is_possible:
        raise typer.Exit(1)
