"""What `tunesmith characterize` and `calibrate roofline` print: problems in numbers, and measured rooflines."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from rich.console import Group, RenderableType

from tunesmith.models.intensity.published import Bucket
from tunesmith.models.roofline.figures import Roofline
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.intensity.calibrate import RooflinePlan
from tunesmith.session.intensity.characterize import Characterization, CharacterizedProblem

from .. import numbers
from ..run import Document, closing, fields, head
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
"""The table's column headings by the columns' names in CSV and JSON."""

_WORDS = ("problem", "trip_count_bucket", "intensity_bucket")


def characterized(found: Characterization) -> RenderableType:
    """A row for each problem, the number of problems in each bucket, and remarks on what the numbers rest on."""
    columns = tuple(HEADINGS.values())
    shown = table(*columns, right=[heading for name, heading in HEADINGS.items() if name not in _WORDS])
    for problem in found.problems:
        row = _row(problem)
        shown.add_row(*(_text(row[name]) for name in HEADINGS))
    title = f"{found.path.name} on {found.device}" if found.device else f"{found.path.name}, no device"
    counts = (f"by {rule}: {_counted(buckets)}" for rule, buckets in found.census().items())
    return Group(titled(title, shown), *counts, *found.remarks)


def characterized_document(found: Characterization) -> Document:
    """For `--json`."""
    return {
        "file": str(found.path),
        "device": found.device or None,
        "compute_units": found.compute_units,
        "rooflines": [_roofline(roofline) for roofline in found.rooflines.values()],
        "problems": [_row(problem) for problem in found.problems],
        "remarks": list(found.remarks),
    }


def characterized_csv(found: Characterization) -> str:
    """A header and a line for each problem; a cell without a known value is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = [_row(problem) for problem in found.problems]
    writer.writerow(rows[0])
    writer.writerows(["" if cell is None else cell for cell in row.values()] for row in rows)
    return text.getvalue()


def measured(outcome: RunOutcome[RooflinePlan]) -> RenderableType:
    """A row for each data type, then what the run cost and which files it wrote."""
    right = ("peak", "bandwidth", "ridge, FLOP/byte")
    shown = table("data type", *right, "peak of", "bandwidth of", right=right)
    for roofline in outcome.plan.made:
        rates = (
            numbers.rate(roofline.flops_per_second),
            numbers.rate(roofline.bytes_per_second, "B"),
            f"{roofline.roofline.ridge:.4g}",
        )
        shown.add_row(roofline.data_type, *rates, roofline.peak_of, roofline.bandwidth_of)
    return Group(shown, *closing(outcome, outcome.written))


def measured_document(outcome: RunOutcome[RooflinePlan]) -> Document:
    """For `--json`."""
    names = ("data_type", "flops_per_second", "peak_of", "bytes_per_second", "bandwidth_of", "made")
    rooflines = [{**fields(roofline, *names), "ridge": roofline.roofline.ridge} for roofline in outcome.plan.made]
    return {**head(outcome), "rooflines": rooflines}


def _row(problem: CharacterizedProblem) -> Document:
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
    """A float with four significant digits; an integer in full; `?` for None."""
    if cell is None:
        return "?"
    if isinstance(cell, float):
        return f"{cell:.1f}" if 100 <= cell < 1e6 else f"{cell:.4g}"
    return str(cell)
