"""What a tuning of generators leaves in its folder: google-benchmark's JSON for each size, headers, and the table that
`tunesmith.random` loads."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from tunesmith.formats import google_benchmark
from tunesmith.formats.random_outputs import write_selection
from tunesmith.logic.random_table import FILE_NAME as TABLE

from .tune import RandomOutcome

__all__ = ["TABLE", "write"]


def write(outcome: RandomOutcome, benchmark_out: Path | None = None) -> list[Path]:
    """The files written: rows for each size of the buffer, those of the first where `benchmark_out` says; then headers
    and the table of what was chosen.

    rocRAND's script does not tell sizes apart, so that it would take rows of two sizes in one file for repetitions.
    """
    written = []
    for place, size in enumerate(outcome.bytes):
        path = outcome.folder / f"benchmark_{size}.json"
        if place == 0 and benchmark_out is not None:
            path = benchmark_out
        entries = [entry for entry in outcome.entries() if _is_of(entry.bytes, size)]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(google_benchmark.write(entries, _context(outcome, size)))
        written.append(path)
    if outcome.selection:
        made = write_selection(outcome.selection.decisions, outcome.folder)
        written += [*made.headers, *([made.table] if made.table else [])]
        outcome.look_at += [str(complaint) for complaint in made.complaints]
    return written


def _is_of(written: int, asked: int) -> bool:
    """A quasi generator writes a whole number of points in each dimension, a little less than asked."""
    return asked * 0.98 <= written <= asked or written == asked


def _context(outcome: RandomOutcome, size: int) -> dict[str, object]:
    return google_benchmark.context(
        outcome.target,
        size,
        date=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        host_name=platform.node(),
        num_cpus=os.cpu_count() or 1,
        load_avg=list(os.getloadavg()),
    )
