"""From the times of `gemm_vs_cublas.py`: ratios with intervals, summaries by family, a table, CSV, JSON, SVG.

Pure functions, without a device. A ratio is the vendor's time over another side's: above 1 that side is faster.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from rich.console import Group, RenderableType

from tunesmith.bench.statistics import median_interval, paired_log_ratio
from tunesmith.problems.gemm.listed import ListedGemm
from tunesmith.records import Estimate
from tunesmith.report.table import table, titled

OURS, OWN, EXHAUSTIVE, VENDOR, AGAIN = "ours", "own", "exhaustive", "vendor", "vendor again"
"""The sides: the logic's choice; the best of our own kernels in the tuning run, and in the whole space; the vendor's
library; and the vendor's library once more, whose ratio is the noise."""

VENDOR_KERNEL = "VendorBlas"
"""The kernel family that is the vendor's library."""

EVERYTHING = "all"
"""The summary of all families together."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds a call, a number for each block: on the device alone, and for a caller who waits for the last call."""

    kernel: tuple[float, ...]
    host: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Ratio:
    """The vendor's time over a side's, with its 95 % interval over paired blocks."""

    ratio: float
    low: float
    high: float

    @staticmethod
    def of(vendor: Sequence[float], side: Sequence[float]) -> Ratio:
        return Ratio(*map(math.exp, paired_log_ratio(vendor, side)))


@dataclass(frozen=True)
class Row:
    """One problem. `floor` is the roofline's time in seconds; `rule` says why the logic chose `solution`, of the family
    `kernel`; `own` names the best of our own kernels, or is empty without one."""

    problem: ListedGemm
    floor: float
    solution: str
    kernel: str
    rule: str
    own: str
    sides: Mapping[str, Samples]

    @property
    def vendor_chosen(self) -> bool:
        return self.kernel == VENDOR_KERNEL

    def ratio(self, side: str = OURS, clock: str = "kernel") -> Ratio | None:
        """The vendor's time over the side's; None for a side that was not measured."""
        if side not in self.sides:
            return None
        return Ratio.of(getattr(self.sides[VENDOR], clock), getattr(self.sides[side], clock))

    @cached_property
    def ours(self) -> Ratio:
        return Ratio.of(self.sides[VENDOR].kernel, self.sides[OURS].kernel)

    def time(self, side: str, clock: str = "kernel") -> Estimate | None:
        return median_interval(getattr(self.sides[side], clock)) if side in self.sides else None

    @property
    def size(self) -> str:
        p = self.problem
        batch = f"{p.batch}x " if p.batch > 1 else ""
        return f"{batch}{p.m}x{p.n}x{p.k} {p.layout.split(' batched')[0].replace(' ', '')}"


@dataclass(frozen=True, slots=True)
class Summary:
    """A family in numbers. All ratios are of kernel times, except `host`. `below` and `vendor_chosen` are shares of the
    problems. `own` and `exhaustive` are None if that side was not measured. `noise` is the geometric mean of the
    vendor's ratio to itself; 95 % of these ratios are within `noise_95` of 1."""

    family: str
    count: int
    geomean: float
    percentile_5: float
    worst: float
    below: float
    vendor_chosen: float
    host: float
    own: float | None
    exhaustive: float | None
    noise: float
    noise_95: float


def geomean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def families(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by family, in the order of the list."""
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.problem.family or "-", []).append(row)
    return grouped


def summaries(rows: Sequence[Row]) -> list[Summary]:
    """A summary for each family; if there are several families, then one for all."""
    grouped = families(rows)
    each = [summary(name, members) for name, members in grouped.items()]
    return [*each, summary(EVERYTHING, rows)] if len(grouped) > 1 else each


def summary(name: str, rows: Sequence[Row]) -> Summary:
    """The summary of some rows. Raises ValueError without rows."""
    if not rows:
        raise ValueError("no problem, no summary")
    ours = [row.ours.ratio for row in rows]
    noise = _known(rows, AGAIN)
    return Summary(
        family=name,
        count=len(rows),
        geomean=geomean(ours),
        percentile_5=float(np.percentile(ours, 5)),
        worst=min(ours),
        below=sum(ratio < 1 for ratio in ours) / len(rows),
        vendor_chosen=sum(row.vendor_chosen for row in rows) / len(rows),
        host=geomean(_known(rows, OURS, "host")),
        own=_geomean_or_none(_known(rows, OWN)),
        exhaustive=_geomean_or_none(_known(rows, EXHAUSTIVE)),
        noise=geomean(noise),
        noise_95=math.expm1(float(np.percentile(np.abs(np.log(noise)), 95))),
    )


def _known(rows: Sequence[Row], side: str, clock: str = "kernel") -> list[float]:
    return [ratio.ratio for row in rows if (ratio := row.ratio(side, clock))]


def _geomean_or_none(ratios: Sequence[float]) -> float | None:
    return geomean(ratios) if ratios else None


def shown(rows: Sequence[Row]) -> RenderableType:
    """Two tables for a terminal: all problems, then all families."""
    columns = ("ours us", "±", "vendor us", "floor", "vendor/ours", "95 %", "host", "own", "exhaustive", "A/A")
    problems = table("family", "problem", *columns, "rule", "kernel", right=columns)
    for row in rows:
        ours, vendor, ratio = row.time(OURS), row.time(VENDOR), row.ours
        assert ours is not None
        assert vendor is not None
        doubt = f"{50 * (ours.high - ours.low) / ours.seconds:.1f} %"
        others = (row.ratio(OURS, "host"), row.ratio(OWN), row.ratio(EXHAUSTIVE), row.ratio(AGAIN))
        problems.add_row(
            *(row.problem.family, row.size, f"{1e6 * ours.seconds:.2f}", doubt, f"{1e6 * vendor.seconds:.2f}"),
            *(f"{row.floor / ours.seconds:.2f}", f"{ratio.ratio:.3f}", f"{ratio.low:.2f}..{ratio.high:.2f}"),
            *(_number(ratio_or_none.ratio if ratio_or_none else None) for ratio_or_none in others),
            *(row.rule, row.kernel),
        )
    names = (
        "problems",
        "geomean",
        "5th pct",
        "worst",
        "below 1",
        "vendor",
        "host",
        "own",
        "exhaustive",
        "A/A",
        "A/A 95 %",
    )
    by_family = table("family", *names, right=names)
    for family_summary in summaries(rows):
        by_family.add_row(
            *(
                family_summary.family,
                str(family_summary.count),
                *map(_number, (family_summary.geomean, family_summary.percentile_5, family_summary.worst)),
            ),
            *(f"{100 * family_summary.below:.0f} %", f"{100 * family_summary.vendor_chosen:.0f} %"),
            *map(_number, (family_summary.host, family_summary.own, family_summary.exhaustive, family_summary.noise)),
            f"±{100 * family_summary.noise_95:.1f} %",
        )
    return Group(titled("the vendor's time over ours, by problem", problems), "", titled("by family", by_family))


def _number(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


def flat(row: Row) -> dict[str, Any]:
    """A row as the columns of the CSV and the keys of the JSON; times in seconds, None if not measured."""
    cells: dict[str, Any] = {name: value for name, value in asdict(row.problem).items() if name != "weight"}
    cells |= {"kernel": row.kernel, "rule": row.rule, "solution": row.solution, "own_solution": row.own}
    cells["floor"] = row.floor
    for side in (OURS, VENDOR, OWN, EXHAUSTIVE):
        for clock in ("kernel", "host"):
            time = row.time(side, clock)
            cells[f"{side}_{clock}"] = time and time.seconds
    for name, side, clock in _RATIOS:
        ratio = row.ratio(side, clock)
        cells |= {name: ratio and ratio.ratio, f"{name}_low": ratio and ratio.low, f"{name}_high": ratio and ratio.high}
    return cells


_RATIOS = (
    ("ratio", OURS, "kernel"),
    ("host_ratio", OURS, "host"),
    ("own_ratio", OWN, "kernel"),
    ("exhaustive_ratio", EXHAUSTIVE, "kernel"),
    ("noise", AGAIN, "kernel"),
)


def csv_text(rows: Sequence[Row]) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(flat(rows[0])) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(flat, rows))
    return text.getvalue()


def document(rows: Sequence[Row], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Everything as JSON; the `facts` about the machine are first."""
    return {
        **facts,
        "summaries": [asdict(family_summary) for family_summary in summaries(rows)],
        "rows": [flat(row) for row in rows],
    }


# --- the picture ----------------------------------------------------------------------------------------------------

STEP, HEIGHT, GAP, NARROWEST = 7.0, 320.0, 34.0, 760.0
"""Pixels: distance of two problems, height of the ratios' axis, gap between families, least width of a picture."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A problem in the picture, in pixels; a pointer over the dot shows `tip`."""

    x: float
    y: float
    low: float
    high: float
    vendor_chosen: bool
    tip: str


@dataclass(frozen=True)
class Panel:
    """A family in the picture: its problems by ratio, and its geometric mean as a line."""

    x: float
    width: float
    title: str
    mean: float
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """A logarithmic axis from `low` to `high`, upwards."""

    low: float
    high: float

    @staticmethod
    def over(ratios: Sequence[Ratio]) -> Scale:
        """A scale that holds all ratios, and at least 0.8 to 1.25; an interval may be longer."""
        return Scale(
            min(0.8, *(ratio.ratio for ratio in ratios)) / 1.05, max(1.25, *(ratio.ratio for ratio in ratios)) * 1.05
        )

    def y(self, ratio: float) -> float:
        inside = min(max(ratio, self.low), self.high)
        return HEIGHT * math.log(self.high / inside) / math.log(self.high / self.low)

    @property
    def ticks(self) -> list[float]:
        return [
            tick
            for tick in (0.1, 0.2, 0.5, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
            if self._has(tick)
        ]

    def _has(self, ratio: float) -> bool:
        return self.low <= ratio <= self.high


def svg(rows: Sequence[Row], heading: str) -> str:
    """The picture of all ratios: a panel for each family, with its problems ordered by ratio.

    Intervals are lines; a hollow dot means that the logic chose the vendor's library.
    """
    scale = Scale.over([row.ours for row in rows])
    panels = list(_panels(families(rows), scale))
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    template = environment.get_template("gemm_ratios.svg.jinja")
    width = max(NARROWEST, *(panel.x + panel.width for panel in panels))
    return template.render(heading=heading, panels=panels, scale=scale, height=HEIGHT, width=width)


def _panels(grouped: Mapping[str, Sequence[Row]], scale: Scale) -> Iterator[Panel]:
    x = 0.0
    for name, rows in grouped.items():
        ordered = sorted(rows, key=lambda row: row.ours.ratio)
        mean = geomean([row.ours.ratio for row in rows])
        title = f"{name}: {mean:.3f}"
        width = max(STEP * (len(ordered) + 1), 7.0 * len(title))
        dots = tuple(_dot(row, STEP * (index + 1), scale) for index, row in enumerate(ordered))
        yield Panel(x, width, title, scale.y(mean), dots)
        x += width + GAP


def _dot(row: Row, x: float, scale: Scale) -> Dot:
    ratio = row.ours
    tip = f"{row.size}: {ratio.ratio:.3f} [{ratio.low:.3f}, {ratio.high:.3f}], {row.kernel} ({row.rule})"
    return Dot(x, scale.y(ratio.ratio), scale.y(ratio.low), scale.y(ratio.high), row.vendor_chosen, tip)
