"""The store of measurements: append-only and content-addressed, in an SQLite file or in PostgreSQL.

Runs resume from it, reports read it.
"""

from .copying import CopyReport, copy_store
from .entry import CONFIRM, FULL, RACE, RECHECK, RenewedKey, StoreEntry, confirm_round, measurement_key
from .folder import FILE_NAME, POINTER, VARIABLE, FolderStore, remember, store_for, store_named
from .location import StoreLocation, without_password
from .rounds import answering, combined_rounds, full_round_name
from .runs import RunEnd, RunStart, RunState, StepRecord, StoredRun, Winner
from .store import DeviceCount, Failure, Store

__all__ = [
    "CONFIRM",
    "FILE_NAME",
    "FULL",
    "POINTER",
    "RACE",
    "RECHECK",
    "VARIABLE",
    "CopyReport",
    "DeviceCount",
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
    "answering",
    "combined_rounds",
    "confirm_round",
    "copy_store",
    "full_round_name",
    "measurement_key",
    "remember",
    "store_for",
    "store_named",
    "without_password",
]
