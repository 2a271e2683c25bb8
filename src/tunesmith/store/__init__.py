"""What was measured: an append-only, content-addressed SQLite file that runs resume from and reports read."""

from ._entry import Entry, measurement_key
from ._runs import Run, RunEnd, RunStart, RunState, StepRecord, Winner
from ._store import Failure, Store

__all__ = [
    "Entry",
    "Failure",
    "Run",
    "RunEnd",
    "RunStart",
    "RunState",
    "StepRecord",
    "Store",
    "Winner",
    "measurement_key",
]
