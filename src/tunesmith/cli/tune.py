"""`tunesmith tune FILE -o DIR`: the main job."""

from __future__ import annotations

import signal
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tunesmith import session
from tunesmith.report import ProgressReport, tables
from tunesmith.store import RunState

from ._output import Device, Json, MaxSize, console, print_json

INTERRUPTED = 130


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
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with ProgressReport(Console(stderr=True, highlight=False), quiet or as_json) as progress:
            outcome = session.tune(file, out, device=device, max_size=max_size, budget_minutes=budget, observe=progress)
    except KeyboardInterrupt:
        Console(stderr=True).print(f"stopped; everything measured is in {out}, and the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(_document(outcome))
    else:
        console.print(tables.outcome(outcome))
    if outcome.look_at:
        raise typer.Exit(1)


def _document(outcome: session.Outcome) -> dict[str, Any]:
    finished = outcome.state is RunState.FINISHED
    return {
        "finished": finished,
        "device": outcome.target.name,
        "selector": outcome.target.selector,
        "seconds": outcome.seconds,
        "measured": outcome.ledger.measured,
        "reused": outcome.ledger.reused,
        "cost_seconds": asdict(outcome.ledger.cost),
        "drift": asdict(outcome.drift) if outcome.drift else None,
        "csv": [str(group.csv) for group in outcome.groups],
        "logic": [str(path) for path, _ in outcome.logic],
        "winners": [row for _, logic in outcome.logic for row in tables.winner_rows(logic)],
        "look_at": outcome.look_at,
    }
