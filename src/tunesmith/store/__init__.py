"""The store of measurements: append-only and content-addressed, in an SQLite file or in PostgreSQL.

Runs resume from it, reports read it.
"""

from .entry import FULL, RACE, RECHECK, RenewedKey, StoreEntry, confirm_round, measurement_key
from .folder import FILE_NAME, POINTER, FolderStore
from .location import StoreLocation, without_password
from .rounds import combined_rounds, full_round_name
from .runs import RunEnd, RunStart, RunState, StepRecord, StoredRun, Winner
from .store import Failure, Store

__all__ = [
    "FILE_NAME",
    "FULL",
    "POINTER",
    "RACE",
    "RECHECK",
    "Failure",
    "FolderStore",
    "RenewedKey",
    "RunEnd",
    "RunStart",
    "RunState",
    "StepRecord",
    "Store",
    "StoreEntry",
    "StoreLocation",
    "StoredRun",
    "Winner",
    "combined_rounds",
    "confirm_round",
    "full_round_name",
    "measurement_key",
    "without_password",
]
