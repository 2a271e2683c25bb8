"""What was measured: an append-only, content-addressed SQLite file that runs resume from and reports read."""

from ._entry import FULL, RACE, RECHECK, Entry, Renewed, confirm_round, measurement_key
from ._rounds import in_rounds, repetition
from ._runs import Run, RunEnd, RunStart, RunState, StepRecord, Winner
from ._store import FILE_NAME, Failure, Store

__all__ = [
    "FILE_NAME",
    "FULL",
    "RACE",
    "RECHECK",
    "Entry",
    "Failure",
    "Renewed",
    "Run",
    "RunEnd",
    "RunStart",
    "RunState",
    "StepRecord",
    "Store",
    "Winner",
    "confirm_round",
    "in_rounds",
    "measurement_key",
    "repetition",
]
