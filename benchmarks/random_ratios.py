"""From the times of `random_vs_curand.py`: ratios to each of cuRAND's orderings, a table, a summary, CSV.

Pure functions, without a device. A ratio is cuRAND's time over ours: above 1 ours is faster.
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
"""A ratio whose whole interval is below this misses the mark."""
NEAR_MEMSET = 0.4
"""From this share of memset's speed on, memory limits cuRAND too, and not only its arithmetic."""


@dataclass(frozen=True, slots=True)
class Fill:
    """A fill of a buffer of `bytes` bytes."""

    generator: str
    distribution: str
    value_type: str
    bytes: int

    def __str__(self) -> str:
        return f"{self.generator} {self.distribution} {self.value_type}"


@dataclass(frozen=True, slots=True)
class CurandResult:
    """cuRAND in one ordering: 10^9 bytes a second, the host's seconds a call, and its time over ours with the 95 %
    interval over paired blocks."""

    ordering: str
    speed: float
    host: float
    ratio: float
    low: float
    high: float

    @staticmethod
    def of(ordering: str, speed: float, host: float, seconds: Sequence[float], ours: Sequence[float]) -> CurandResult:
        return CurandResult(ordering, speed, host, *map(math.exp, paired_log_ratio(seconds, ours)))


@dataclass(frozen=True, slots=True)
class Row:
    """One fill: speeds in 10^9 bytes a second, `host` in seconds a call; `curand` is empty if cuRAND lacks the fill."""

    fill: Fill
    shape: str
    ours: float
    by_default: float
    memset: float
    host: float
    curand: tuple[CurandResult, ...]

    @property
    def fastest(self) -> CurandResult | None:
        """cuRAND's fastest ordering for this fill."""
        return max(self.curand, key=lambda result: result.speed, default=None)

    @property
    def misses(self) -> tuple[CurandResult, ...]:
        """The orderings against which the whole interval of our ratio is below the mark."""
        return tuple(result for result in self.curand if result.high < MARK)


def geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def sums(rows: Sequence[Row]) -> list[str]:
    """Summary lines for each size, then the fills that miss the mark."""
    lines = []
    for size in sorted({row.fill.bytes for row in rows}, reverse=True):
        rows_of_size = [row for row in rows if row.fill.bytes == size]
        pairs = [(row, fastest) for row in rows_of_size if (fastest := row.fastest)]
        name = f"{size / 2**20:.0f} MiB"
        if pairs:
            near = [fastest.ratio for row, fastest in pairs if fastest.speed >= NEAR_MEMSET * row.memset]
            worst_row, worst = min(pairs, key=lambda pair: pair[1].ratio)
            close = f", {geomean(near):.3f} where it reaches 40 % of memset ({len(near)})" if near else ""
            below = sum(fastest.ratio < 1 for _, fastest in pairs)
            lines.append(
                f"{name}: over cuRAND's fastest ordering {geomean([fastest.ratio for _, fastest in pairs]):.3f}"
                f" (geometric mean of {len(pairs)}){close}; below 1: {below}; the least {worst_row.fill}"
                f" {worst.ratio:.3f} ({worst.low:.3f} to {worst.high:.3f}, {worst.ordering})"
            )
            for ordering in dict.fromkeys(fastest.ordering for row in rows_of_size for fastest in row.curand):
                ratios = [result.ratio for row in rows_of_size for result in row.curand if result.ordering == ordering]
                lines.append(f"{name}: over cuRAND's ordering {ordering} {geomean(ratios):.3f} ({len(ratios)})")
        lines.append(f"{name}: tuned over default {geomean([row.ours / row.by_default for row in rows_of_size]):.3f}")
    missing = [(row, miss) for row in rows for miss in row.misses]
    lines += [
        f"misses the mark of {MARK}: {row.fill}, {row.fill.bytes / 2**20:.0f} MiB, beside the ordering {miss.ordering}:"
        f" {miss.ratio:.3f} ({miss.low:.3f} to {miss.high:.3f})"
        for row, miss in missing
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
        fastest, fill = row.fastest, row.fill
        table.add_row(
            *(fill.generator, fill.distribution, fill.value_type, f"{fill.bytes / 2**20:.0f}", row.shape),
            *(f"{speed:.0f}" for speed in (row.ours, row.by_default, row.memset)),
            *(
                f"{fastest.speed:.0f}" if fastest else "-",
                f"{1e6 * row.host:.0f}",
                f"{1e6 * fastest.host:.0f}" if fastest else "-",
            ),
            *(fastest.ordering if fastest else "-", f"{row.ours / row.memset:.3f}", f"{row.ours / row.by_default:.3f}"),
            *((f"{fastest.ratio:.3f}", f"{fastest.low:.3f} to {fastest.high:.3f}") if fastest else ("-", "-")),
            "misses" if row.misses else "",
        )
    return table


ORDERINGS = ("default", "best", "dynamic")


def flat(row: Row) -> dict[str, object]:
    """A row as columns of the CSV, with six significant digits; None if cuRAND lacks the fill or the ordering."""
    fastest = row.fastest
    cells: dict[str, object] = {**asdict(row.fill), "shape": row.shape}
    cells |= {"ours": row.ours, "by_default": row.by_default, "memset": row.memset, "host": row.host}
    cells |= {
        "ordering": fastest and fastest.ordering,
        "curand": fastest and fastest.speed,
        "curand_host": fastest and fastest.host,
    }
    cells |= {
        "over_curand": fastest and fastest.ratio,
        "over_curand_low": fastest and fastest.low,
        "over_curand_high": fastest and fastest.high,
    }
    by_ordering = {result.ordering: result for result in row.curand}
    for name in ORDERINGS:
        result = by_ordering.get(name)
        cells |= {f"curand_{name}": result and result.speed, f"over_{name}": result and result.ratio}
        cells |= {f"over_{name}_low": result and result.low, f"over_{name}_high": result and result.high}
    return {key: float(f"{value:.6g}") if isinstance(value, float) else value for key, value in cells.items()}


def read_rows(text: str) -> list[Row]:
    """The rows that `csv_text` wrote."""
    return [_row(cells) for cells in csv.DictReader(io.StringIO(text))]


def _row(cells: Mapping[str, str]) -> Row:
    curand = tuple(
        CurandResult(
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
