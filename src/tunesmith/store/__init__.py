"""The store of measurements: an append-only, content-addressed SQLite file. Runs resume from it, reports read it."""

from .entry import FULL, RACE, RECHECK, RenewedKey, StoreEntry, confirm_round, measurement_key
from .rounds import combined_rounds, full_round_name
from .runs import RunEnd, RunStart, RunState, StepRecord, StoredRun, Winner
from .store import FILE_NAME, Failure, Store

__all__ = [
    "FILE_NAME",
    "FULL",
    "RACE",
    "RECHECK",
    "Failure",
    "RenewedKey",
    "RunEnd",
    "RunStart",
    "RunState",
    "StepRecord",
    "Store",
    "StoreEntry",
    "StoredRun",
    "Winner",
    "combined_rounds",
    "confirm_round",
    "full_round_name",
    "measurement_key",
]
