"""What calibrating and sweeping have in common: where costs are from, and a look whether the machine has changed."""

from __future__ import annotations

import time
from dataclasses import dataclass

import tunesmith
from tunesmith.bench import drift
from tunesmith.models.stream_k import Origin
from tunesmith.protocol import Cell
from tunesmith.session.frame.measure import RecordedMeasure

from .kernels import StreamKernel


def origin_of(kernel: StreamKernel, measure: RecordedMeasure) -> Origin:
    """Of a calibration that is made now."""
    return Origin(
        measure.judge.target.driver,
        measure.toolchain(kernel.configuration),
        kernel.type.name,
        kernel.configuration,
        tunesmith.__version__,
        time.strftime("%Y-%m-%d"),
    )


@dataclass
class FirstRun:
    """The first cell that ran, to be measured once more at the end."""

    found: tuple[RecordedMeasure, Cell] | None = None

    def ran(self, measure: RecordedMeasure, cell: Cell) -> None:
        self.found = self.found or (measure, cell)

    def again(self) -> str:
        """Whether its time has changed, in a sentence; empty where not, and where nothing new was measured."""
        if self.found is None or not self.found[0].ledger.measured:
            return ""
        measure, cell = self.found
        first = measure.lookup([cell])[cell].estimate
        now = measure.again(cell, f"anchor/{time.time_ns()}").estimate
        seen = drift(first, now) if first and now else None
        return f"the first run took {seen.ratio:.2f} of its time when measured again" if seen and seen.alarm else ""
