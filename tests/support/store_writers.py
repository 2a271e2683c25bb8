"""What processes do that share a store: write the same keys, hold the store while they write, write until they are
killed. Each is a function for `forked.started`."""

from __future__ import annotations

import time
from pathlib import Path

from sqlalchemy import Connection

from tunesmith.records import Configuration, Estimate, Measurement, Outcome, Problem, ProblemType, Solution, Target
from tunesmith.store import Store, StoreEntry

GEMM = ProblemType("GEMM", "Cijk_Ailk_Bljk_SB", ("M", "N", "Batch", "K"), Configuration({"DataType": "s"}))
TARGET = Target(
    "fake", "fake:0", "a fake device", "CPU", "none", "1.0", 4, 256, 32768, 1 << 30, 1 << 28, 1 << 20, 8, True
)
SAME_KEYS = 60
"""Keys that each writer commits one by one, so that two of them meet many times."""


def entry(key: str, seconds: float) -> StoreEntry:
    solution = Solution(GEMM, "tiled", Configuration({"Tile": 8}))
    measurement = Measurement(Outcome.OK, samples=(seconds,), estimate=Estimate(seconds, seconds, seconds, 1))
    return StoreEntry(
        key, "screen", "identity", solution, Problem(GEMM, (8, 8, 1, 8)), TARGET, "compiler 1", measurement
    )


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.001)


def write_same_keys(location: Path | str, mark: float, ready: Path, go: Path) -> None:
    """Say that this process is ready, wait for `go`, and print how many of the keys were new."""
    ready.touch()
    wait_for(go)
    with Store.open(location) as store:
        print(sum(store.commit([entry(str(key), mark)]) for key in range(SAME_KEYS)))


def hold(location: Path | str, holding: Path, release: Path) -> None:
    """Be in the middle of writing until `release` is there."""

    def write(connection: Connection) -> None:
        holding.touch()
        wait_for(release)

    with Store.open(location) as store:
        store._database.write(write)


def write_for_ever(location: Path | str, key: int) -> None:
    """Commit three measurements again and again, and print a number after each commit."""
    store = Store.open(location)
    while True:
        store.commit([entry(f"{key}/{part}", float(key)) for part in range(3)])
        print(key, flush=True)
        key += 1
