"""What `random_vs_curand.py` makes of its times: ratios to each of cuRAND's orderings, a table, sums, CSV.

Pure: nothing here knows a device. A ratio is cuRAND's time over ours, so above 1 ours is faster.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from rich.table import Table

from tunesmith.bench.statistics import paired_log_ratio

MARK = 0.97
"""No ratio's interval may lie wholly below this."""
NEAR_MEMSET = 0.4
"""From this part of memset's speed on, cuRAND is limited by more than its own arithmetic."""


@dataclass(frozen=True, slots=True)
class Fill:
    """What is filled; `bytes` long."""

    generator: str
    distribution: str
    value_type: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.generator} {self.distribution} {self.value_type}"


@dataclass(frozen=True, slots=True)
class Theirs:
    """cuRAND in one ordering: 10^9 bytes a second, the host's seconds a call, and its time over ours with the 95 %
    interval over paired blocks."""

    ordering: str
    speed: float
    host: float
    ratio: float
    low: float
    high: float

    @staticmethod
    def of(ordering: str, speed: float, host: float, seconds: Sequence[float], ours: Sequence[float]) -> Theirs:
        return Theirs(ordering, speed, host, *map(math.exp, paired_log_ratio(seconds, ours)))


@dataclass(frozen=True, slots=True)
class Row:
    """One fill: speeds in 10^9 bytes a second, `host` in seconds a call; `curand` is empty where cuRAND has no such
    fill."""

    fill: Fill
    shape: str
    ours: float
    by_default: float
    memset: float
    host: float
    curand: tuple[Theirs, ...]

    @property
    def fastest(self) -> Theirs | None:
        """cuRAND's fastest ordering here."""
        return max(self.curand, key=lambda one: one.speed, default=None)

    @property
    def misses(self) -> tuple[Theirs, ...]:
        """The orderings beside which ours is below the mark beyond doubt."""
        return tuple(one for one in self.curand if one.high < MARK)


def geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def sums(rows: Sequence[Row]) -> list[str]:
    """A summary for each size in lines, and what misses the mark."""
    lines = []
    for size in sorted({row.fill.bytes for row in rows}, reverse=True):
        there = [row for row in rows if row.fill.bytes == size]
        both = [(row, one) for row in there if (one := row.fastest)]
        name = f"{size / 2**20:.0f} MiB"
        if both:
            near = [one.ratio for row, one in both if one.speed >= NEAR_MEMSET * row.memset]
            worst_row, worst = min(both, key=lambda pair: pair[1].ratio)
            close = f", {geomean(near):.3f} where it reaches 40 % of memset ({len(near)})" if near else ""
            below = sum(one.ratio < 1 for _, one in both)
            lines.append(
                f"{name}: over cuRAND's fastest ordering {geomean([one.ratio for _, one in both]):.3f}"
                f" (geometric mean of {len(both)}){close}; below 1: {below}; the least {worst_row.fill}"
                f" {worst.ratio:.3f} ({worst.low:.3f} to {worst.high:.3f}, {worst.ordering})"
            )
            for ordering in dict.fromkeys(one.ordering for row in there for one in row.curand):
                ratios = [one.ratio for row in there for one in row.curand if one.ordering == ordering]
                lines.append(f"{name}: over cuRAND's ordering {ordering} {geomean(ratios):.3f} ({len(ratios)})")
        lines.append(f"{name}: tuned over default {geomean([row.ours / row.by_default for row in there]):.3f}")
    missing = [(row, one) for row in rows for one in row.misses]
    lines += [
        f"misses the mark of {MARK}: {row.fill}, {row.fill.bytes / 2**20:.0f} MiB, beside the ordering {one.ordering}:"
        f" {one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})"
        for row, one in missing
    ]
    return lines if missing or not rows else [*lines, f"no interval lies below {MARK}"]


def shown(rows: Sequence[Row]) -> Table:
    table = Table(box=None, header_style="", pad_edge=False)
    for column in ("generator", "distribution", "type"):
        table.add_column(column)
    for column in ("MiB", "shape", "ours", "default", "memset", "cuRAND", "us", "us"):
        table.add_column(column, justify="right")
    table.add_column("ordering")
    for column in ("/memset", "/default", "/cuRAND", "95 %"):
        table.add_column(column, justify="right")
    table.add_column("")
    for row in rows:
        one, fill = row.fastest, row.fill
        table.add_row(
            *(fill.generator, fill.distribution, fill.value_type, f"{fill.bytes / 2**20:.0f}", row.shape),
            *(f"{speed:.0f}" for speed in (row.ours, row.by_default, row.memset)),
            *(f"{one.speed:.0f}" if one else "-", f"{1e6 * row.host:.0f}", f"{1e6 * one.host:.0f}" if one else "-"),
            *(one.ordering if one else "-", f"{row.ours / row.memset:.3f}", f"{row.ours / row.by_default:.3f}"),
            *((f"{one.ratio:.3f}", f"{one.low:.3f} to {one.high:.3f}") if one else ("-", "-")),
            "misses" if row.misses else "",
        )
    return table


ORDERINGS = ("default", "best", "dynamic")


def flat(row: Row) -> dict[str, object]:
    """A row as columns of the CSV, with four figures and more; empty where cuRAND has no such thing."""
    one = row.fastest
    made: dict[str, object] = {**asdict(row.fill), "shape": row.shape}
    made |= {"ours": row.ours, "by_default": row.by_default, "memset": row.memset, "host": row.host}
    made |= {"ordering": one and one.ordering, "curand": one and one.speed, "curand_host": one and one.host}
    made |= {"over_curand": one and one.ratio, "over_curand_low": one and one.low, "over_curand_high": one and one.high}
    known = {each.ordering: each for each in row.curand}
    for name in ORDERINGS:
        there = known.get(name)
        made |= {f"curand_{name}": there and there.speed, f"over_{name}": there and there.ratio}
        made |= {f"over_{name}_low": there and there.low, f"over_{name}_high": there and there.high}
    return {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in made.items()}


def read_rows(text: str) -> list[Row]:
    """The rows that `csv_text` wrote."""
    return [_row(cells) for cells in csv.DictReader(io.StringIO(text))]


def _row(cells: Mapping[str, str]) -> Row:
    curand = tuple(
        Theirs(
            name,
            float(cells[f"curand_{name}"]),
            float(cells["curand_host"]),
            *(float(cells[f"over_{name}{end}"]) for end in ("", "_low", "_high")),
        )
        for name in ORDERINGS
        if cells[f"curand_{name}"]
    )
    fill = Fill(cells["generator"], cells["distribution"], cells["value_type"], int(cells["bytes"]))
    speeds = (float(cells[name]) for name in ("ours", "by_default", "memset", "host"))
    return Row(fill, cells["shape"], *speeds, curand)


def csv_text(rows: Sequence[Row]) -> str:
    text = io.StringIO(newline="")
    flats = [flat(row) for row in rows]
    writer = csv.DictWriter(text, list(flats[0]) if flats else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(flats)
    return text.getvalue()
