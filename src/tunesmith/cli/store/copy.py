"""`tunesmith store copy FROM TO`: measurements, runs and steps of one store added to another."""

from __future__ import annotations

import signal
from typing import Annotated

import typer
from rich.progress import Progress

from tunesmith.records import UserError
from tunesmith.report.store import tables as report
from tunesmith.store import Store, copy_store, store_named

from ..output import Json, messages, print_facts
from ..runs import INTERRUPTED, Quiet

PLACES = "A run's folder, a file, or postgresql://USER@HOST/DATABASE."


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help=PLACES)],
    target: Annotated[str, typer.Argument(metavar="TO", help="The same; a file or tables are made if need be.")],
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Add everything that FROM holds to TO: measurements, runs and their steps. FROM stays as it is.

    What TO has already is not added again, so the same command goes on after Ctrl-C, and brings later what is new. If
    both have a measurement of the same thing, the newer counts: TO keeps its own and gets a newer one beside it; an
    older one is left out, and the command says how many were.

    Example: `tunesmith store copy out postgresql://me@db/tuning`
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    names = store_named(source), store_named(target)
    if names[0].location.is_same(names[1].location):
        raise UserError(str(names[1].location), "is the same store", "name two stores")
    try:
        with (
            Store.read(names[0]) as old,
            Store.open(names[1]) as new,
            Progress(console=messages, transient=True, disable=quiet or as_json) as progress,
        ):
            task = progress.add_task("measurements", total=None)
            copied = copy_store(old, new, lambda done, total: progress.update(task, completed=done, total=total))
    except KeyboardInterrupt:
        messages.print(f"stopped; {names[1].location} keeps what was copied, and the same command goes on")
        raise typer.Exit(INTERRUPTED) from None
    print_facts(as_json, report.copied_document, report.copied, names[0].location, names[1].location, copied)
