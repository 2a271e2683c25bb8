"""`tunesmith characterize FILE`: the products of a file in numbers, beside a device's roofline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.logic import write_atomically
from tunesmith.report.roofline import tables as report
from tunesmith.report.roofline.plot import plot
from tunesmith.session.intensity.characterize import CharacterizeTask
from tunesmith.session.intensity.characterize import characterize as characterized

from .output import Device, Json, print_facts


def characterize(
    file: Annotated[
        Path,
        typer.Argument(help="A tuning file, or a list of GEMMs or convolutions (CSV; docs/intensity.md)."),
    ],
    device: Device = None,
    chip: Annotated[
        str | None, typer.Option(help="Published figures of a chip that is not here, such as MI300X.")
    ] = None,
    data_type: Annotated[
        str, typer.Option("--type", help="Data type of a list that names none: s, d, h, b, f8, b8, i8, tf32.")
    ] = "s",
    roofline: Annotated[Path | None, typer.Option(help="What `tunesmith calibrate roofline` wrote.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the table there.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Draw the roofline with all problems there.")] = None,
    as_json: Json = False,
) -> None:
    """Show M, N, K of each problem's product, its arithmetic intensity, waves, and the bucket of each published rule.

    A convolution is the product that implicit GEMM makes of it. The ridge is measured (--roofline), else published for
    the device or --chip, else unknown: the last lines say which.

    Example: `tunesmith characterize examples/quickstart.yaml --chip MI300X`

    Example: `tunesmith characterize convolutions.csv --type b --chip MI300X --csv table.csv --svg roofline.svg`
    """
    characterization = characterized(CharacterizeTask(file, data_type, device, chip, roofline))
    if csv:
        write_atomically(csv, report.characterized_csv(characterization))
    if svg:
        write_atomically(svg, plot(characterization))
    print_facts(as_json, report.characterized_document, report.characterized, characterization)
