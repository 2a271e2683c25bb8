"""`tunesmith plan` as text."""

from __future__ import annotations

from rich.console import Group, RenderableType

from tunesmith.session.tune import Forecast

from . import _text
from ._table import table, titled


def plan(made: Forecast) -> RenderableType:
    """Steps with their counts before and after rejections, enqueues beside the exhaustive product, minutes."""
    parts: list[RenderableType] = [*made.notes]
    for group in made.groups:
        counts = ("lineages", "choices", "candidates", "sizes", "enqueues", "legal", "survivors", "time")
        shown = table("step", *counts, right=counts)
        rows = zip(group.forecast.before, group.forecast.after, group.seconds, strict=True)
        for before, after, seconds in rows:
            expected = _text.duration(seconds) if seconds else ""
            numbers = (before.lineages, before.choices, before.candidates, before.sizes, before.enqueues)
            measured = (str(after.enqueues) if before.enqueues else "", str(before.survivors), expected)
            shown.add_row(before.name, *(str(number) if number else "" for number in numbers), *measured)
        forecast = group.forecast
        parts += [
            titled(f"{group.name} on {made.target.name}", shown),
            f"{forecast.enqueues_before} enqueues, {forecast.enqueues_after} after rejections; exhaustive: "
            f"{forecast.exhaustive}",
            "",
        ]
    if made.seconds is not None:
        parts.append(f"expected: {made.seconds / 60:.1f} minutes at most (racing makes it less)")
    return Group(*parts)
