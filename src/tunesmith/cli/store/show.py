"""`tunesmith store show STORE`: what a store holds, by device and host."""

from __future__ import annotations

from typing import Annotated

import typer

from tunesmith.report.store import tables as report
from tunesmith.store import Store, store_named

from ..output import Json, print_facts
from .copy import PLACES


def show(store: Annotated[str, typer.Argument(metavar="STORE", help=PLACES)], as_json: Json = False) -> None:
    """Count the measurements of a store by device, driver and host, and its runs.

    Example: `tunesmith store show postgresql://me@db/tuning`
    """
    named = store_named(store)
    with Store.read(named) as opened:
        print_facts(as_json, report.counted_document, report.counted, opened.location, opened.devices(), opened.runs())
