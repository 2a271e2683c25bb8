"""A run in the store's books: that it began, and however it ended."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import tunesmith
from tunesmith.records import Target
from tunesmith.store import RunEnd, RunStart, RunState, Store

from .health import HealthWatch
from .measure import Ledger, OutOfBudgetError


class Booked(Protocol):
    """What an outcome has for it."""

    state: RunState
    ledger: Ledger
    seconds: float
    health: dict[str, float]
    look_at: list[str]


def run_start(target: Target, file: Path | None = None) -> RunStart:
    """A run that begins now: by this command, on this device, described by this file."""
    return RunStart(
        command=tuple(sys.argv),
        tuning_file=str(file.resolve()) if file else "",
        tuning_file_sha256=hashlib.sha256(file.read_bytes()).hexdigest() if file else "",
        device=target.name,
        driver=target.driver,
        selector=target.selector,
        version=tunesmith.__version__,
    )


@contextmanager
def booked(outcome: Booked, store: Store, start: RunStart, watch: HealthWatch) -> Iterator[str]:
    """Within it the run, whose number it gives, goes on. A spent budget ends it without an error; what the watch saw
    goes into the outcome."""
    run, began = store.begin_run(start), time.monotonic()
    try:
        yield run
    except OutOfBudgetError:
        outcome.state = RunState.INTERRUPTED
        outcome.look_at.append("the budget is spent; the same command with more goes on")
    except KeyboardInterrupt:
        outcome.state = RunState.INTERRUPTED
        raise
    except BaseException:
        outcome.state = RunState.FAILED
        raise
    finally:
        outcome.seconds = time.monotonic() - began
        outcome.health = watch.facts()
        outcome.look_at += watch.sentences()
        ledger = outcome.ledger
        store.end_run(run, RunEnd(outcome.state, outcome.seconds, ledger.measured, ledger.reused, ledger.cost))
