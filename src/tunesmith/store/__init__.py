"""The store of measurements: an append-only, content-addressed SQLite file. Runs resume from it, reports read it."""

from .entry import FULL, RACE, RECHECK, Renewed, StoreEntry, confirm_round, measurement_key
from .rounds import in_rounds, repetition
from .runs import RunEnd, RunStart, RunState, StepRecord, StoredRun, Winner
from .store import FILE_NAME, Failure, Store

__all__ = [
    "FILE_NAME",
    "FULL",
    "RACE",
    "RECHECK",
    "Failure",
    "Renewed",
    "RunEnd",
    "RunStart",
    "RunState",
    "StepRecord",
    "Store",
    "StoreEntry",
    "StoredRun",
    "Winner",
    "confirm_round",
    "in_rounds",
    "measurement_key",
    "repetition",
]
