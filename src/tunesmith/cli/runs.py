"""A command that works for minutes: how it is watched, stopped and ended."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import RenderableType

from tunesmith.records import printable
from tunesmith.report import CompilingReport, ProgressReport
from tunesmith.session.frame.record import RunOutcome

from .output import messages, print_facts

INTERRUPTED = 130

Out = Annotated[Path, typer.Option("-o", "--out", help="Folder for results; the same one again goes on.")]
Budget = Annotated[float | None, typer.Option("--budget", min=0.01, help="Minutes to keep to.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Measure again what failed in an earlier run.")]
Remeasure = Annotated[bool, typer.Option("--remeasure", help="Measure everything again, whatever the folder has.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")]

PlanT = TypeVar("PlanT")


def carried_out(
    work: Callable[..., RunOutcome[PlanT]],
    folder: Path,
    document: Callable[[RunOutcome[PlanT]], Mapping[str, Any]],
    tables: Callable[[RunOutcome[PlanT]], RenderableType],
    *,
    quiet: bool,
    as_json: bool,
    report: type[ProgressReport] | type[CompilingReport] = ProgressReport,
) -> None:
    """Do the work with an observer, and print what came of it; the exit code is 1 where there is something to look at.

    Ctrl-C and a termination end it, and say that everything so far is in `folder`.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with report(messages, quiet or as_json) as progress:
            outcome = work(observe=progress)
    except KeyboardInterrupt:
        done = "compiled" if report is CompilingReport else "measured"
        messages.print(
            f"stopped; everything {done} is in {printable(str(folder))}, and the same command goes on from there"
        )
        raise typer.Exit(INTERRUPTED) from None
    print_facts(as_json, document, tables, outcome)
    if outcome.look_at:
        raise typer.Exit(1)
