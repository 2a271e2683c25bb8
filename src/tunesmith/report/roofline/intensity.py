"""Problems as numbers: a table, CSV and JSON of the same columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from rich.console import Group, RenderableType

from tunesmith.models.intensity.published import Bucket
from tunesmith.models.roofline.figures import Roofline
from tunesmith.session.intensity.characterize import Characterization, Characterized

from ..run import Document
from ..table import table, titled

HEADINGS = {
    "problem": "problem",
    "m": "M",
    "n": "N",
    "k": "K",
    "groups": "groups",
    "mn": "M N",
    "mnk": "M N K",
    "flop_per_element": "FLOP/element",
    "flop_per_byte": "FLOP/byte",
    "flop_per_byte_of_arrays": "of arrays",
    "ridges": "ridges",
    "waves": "waves",
    "trip_count_bucket": "trip count",
    "intensity_bucket": "intensity",
}
"""The table's columns, by the names that they have in CSV and JSON."""

WORDS = ("problem", "trip_count_bucket", "intensity_bucket")


def table_of(found: Characterization) -> RenderableType:
    """A row a problem, how many are in each bucket, and what the numbers rest on."""
    columns = tuple(HEADINGS.values())
    shown = table(*columns, right=[heading for name, heading in HEADINGS.items() if name not in WORDS])
    for problem in found.problems:
        row = _row(problem)
        shown.add_row(*(_text(row[name]) for name in HEADINGS))
    title = f"{found.path.name} on {found.device}" if found.device else f"{found.path.name}, no device"
    counts = (f"by {rule}: {_counted(buckets)}" for rule, buckets in found.census().items())
    return Group(titled(title, shown), *counts, *found.remarks)


def document(found: Characterization) -> Document:
    """For `--json`."""
    return {
        "file": str(found.path),
        "device": found.device or None,
        "compute_units": found.compute_units,
        "rooflines": [_roofline(roofline) for roofline in found.rooflines.values()],
        "problems": [_row(problem) for problem in found.problems],
        "remarks": list(found.remarks),
    }


def as_csv(found: Characterization) -> str:
    """A header and a line for each problem; a cell is empty where nothing is known."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = [_row(problem) for problem in found.problems]
    writer.writerow(rows[0])
    writer.writerows(["" if cell is None else cell for cell in row.values()] for row in rows)
    return text.getvalue()


def _row(problem: Characterized) -> Document:
    listed, product = problem.listed, problem.listed.product
    return {
        "problem": listed.problem,
        "family": listed.family,
        "operation": listed.operation,
        "data_type": listed.data_type,
        "m": product.m,
        "n": product.n,
        "k": product.k,
        "groups": product.batch,
        "mn": product.mn,
        "mnk": product.mnk,
        "flop_per_element": product.intensity,
        "flop_per_byte": product.intensity_of_bytes,
        "flop_per_byte_of_arrays": listed.intensity_of_arrays,
        "ridges": problem.ridges,
        "waves": problem.waves,
        "trip_count_bucket": problem.by_trip_count.value,
        "intensity_bucket": problem.by_intensity.value,
    }


def _roofline(roofline: Roofline) -> Document:
    return {
        "data_type": roofline.data_type,
        "flops_per_second": roofline.flops_per_second,
        "bytes_per_second": roofline.bytes_per_second,
        "ridge": roofline.ridge,
        "provenance": roofline.provenance.value,
        "source": roofline.source,
    }


def _counted(buckets: Mapping[Bucket, int]) -> str:
    return ", ".join(f"{count} {bucket}" for bucket, count in buckets.items() if count)


def _text(cell: object) -> str:
    """A number of four digits and no more, but whole numbers whole."""
    if cell is None:
        return "?"
    if isinstance(cell, float):
        return f"{cell:.1f}" if 100 <= cell < 1e6 else f"{cell:.4g}"
    return str(cell)
