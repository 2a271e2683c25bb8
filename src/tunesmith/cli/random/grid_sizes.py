"""`tunesmith random grid-sizes`: grids worth measuring on a device."""

from __future__ import annotations

from typing import Annotated

import typer

from tunesmith.devices import choose
from tunesmith.logic.random import grids as random_grids
from tunesmith.report.random import choice as report

from ..output import Device, Json, print_facts


def grid_sizes(
    compute_units: Annotated[
        int | None,
        typer.Option("--compute-units", min=1, help="Multiprocessors of a device that is not here."),
    ] = None,
    device: Device = None,
    as_json: Json = False,
) -> None:
    """Print grid sizes for a device: the usual ones and multiples of its compute units, separated by commas.

    Example: `tunesmith random grid-sizes --compute-units 132`
    """
    target = choose(device) if compute_units is None else None
    units = target.compute_units if target else compute_units or 0
    name, sizes = target.name if target else None, random_grids.grid_sizes(units)
    print_facts(as_json, report.grids, report.grid_list, units, name, sizes)
