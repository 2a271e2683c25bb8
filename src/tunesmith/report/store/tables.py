"""What `tunesmith store copy` and `tunesmith store show` print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType

from tunesmith.report.table import table
from tunesmith.store import CopyReport, DeviceCount, StoredRun, StoreLocation


def copied(source: StoreLocation, target: StoreLocation, report: CopyReport) -> RenderableType:
    """What a copy added, and what it left out."""
    lines = [
        f"{source} to {target}: {report.measurements} measurements, {report.runs} runs and {report.steps} steps added"
    ]
    if report.present:
        lines.append(f"{report.present} measurements were there already")
    if report.older:
        lines.append(f"{report.older} measurements are left out: {target} has newer ones of the same configurations")
    return "\n".join(lines)


def copied_document(source: StoreLocation, target: StoreLocation, report: CopyReport) -> Mapping[str, Any]:
    return {"from": str(source), "to": str(target), **asdict(report)}


def counted(location: str, devices: Sequence[DeviceCount], runs: Sequence[StoredRun]) -> RenderableType:
    """The measurements by device and host, and the runs by their states."""
    columns = ("device", "API", "driver", "host", "measurements", "ran")
    rows = ((count.device, count.api, count.driver, count.host, count.measurements, count.ran) for count in devices)
    states = Counter(run.state.value for run in runs)
    shown = ", ".join(f"{count} {state}" for state, count in states.items()) or "none"
    return Group(location, table(*columns, right=columns[-2:], rows=rows), f"runs: {shown}")


def counted_document(location: str, devices: Sequence[DeviceCount], runs: Sequence[StoredRun]) -> Mapping[str, Any]:
    states = Counter(run.state.value for run in runs)
    return {"store": location, "devices": [asdict(count) for count in devices], "runs": dict(states)}
