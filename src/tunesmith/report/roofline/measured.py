"""Measured rooflines: a table, and the document for `--json`."""

from __future__ import annotations

from rich.console import Group, RenderableType

from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.intensity.calibrate import RooflinePlan

from .. import numbers
from ..run import Document, closing, fields, head
from ..table import table


def measured(outcome: RunOutcome[RooflinePlan]) -> RenderableType:
    """A row a data type, then what it cost and where it is."""
    right = ("peak", "bandwidth", "ridge, FLOP/byte")
    shown = table("data type", *right, "peak of", "bandwidth of", right=right)
    for known in outcome.plan.made:
        rates = (
            numbers.rate(known.flops_per_second),
            numbers.rate(known.bytes_per_second, "B"),
            f"{known.roofline.ridge:.4g}",
        )
        shown.add_row(known.data_type, *rates, known.peak_of, known.bandwidth_of)
    return Group(shown, *closing(outcome, outcome.written))


def measured_document(outcome: RunOutcome[RooflinePlan]) -> Document:
    """For `--json`."""
    names = ("data_type", "flops_per_second", "peak_of", "bytes_per_second", "bandwidth_of", "made")
    rooflines = [{**fields(known, *names), "ridge": known.roofline.ridge} for known in outcome.plan.made]
    return {**head(outcome), "rooflines": rooflines}
