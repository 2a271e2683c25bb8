"""A run in the store's books: that it began, and however it ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from tunesmith.store import RunEnd, RunStart, RunState, Store

from ._health import HealthWatch
from ._recorded import Ledger, OutOfBudgetError


class Booked(Protocol):
    """What an outcome has for it."""

    state: RunState
    ledger: Ledger
    seconds: float
    health: dict[str, float]
    look_at: list[str]


@contextmanager
def booked(outcome: Booked, store: Store, start: RunStart, watch: HealthWatch) -> Iterator[None]:
    """Within it the run goes on. A spent budget ends it without an error; what the watch saw goes into the outcome."""
    run, began = store.begin_run(start), time.monotonic()
    try:
        yield
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
