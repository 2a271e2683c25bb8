"""`tunesmith tune FILE -o DIR`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.report import ProgressReport, documents, tables
from tunesmith.session import tune as session

from ._output import Device, Json, MaxSize, messages
from ._runs import ended, stoppable


def tune(
    file: Annotated[Path, typer.Argument(help="A tuning file (docs/tuning-file.md).", show_default=False)],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder for results; the same one again goes on.")],
    device: Device = None,
    max_size: MaxSize = None,
    budget: Annotated[
        float | None, typer.Option("--budget", min=0.01, help="Minutes to keep to.", show_default=False)
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")] = False,
    as_json: Json = False,
) -> None:
    """Measure a tuning file's phases, write CSV and library logic. The same command goes on with a stopped run.

    Ctrl-C keeps everything that was measured.

    Example: `tunesmith tune examples/quickstart.yaml -o out`
    """
    with stoppable(out), ProgressReport(messages, quiet or as_json) as progress:
        outcome = session.tune(file, out, device=device, max_size=max_size, budget_minutes=budget, observe=progress)
    ended(as_json, lambda: documents.outcome(outcome), lambda: tables.outcome(outcome), outcome.look_at)
