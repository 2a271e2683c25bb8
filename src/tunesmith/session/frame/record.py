"""What a run came to (`RunOutcome`), and the store's record of how the run began and ended (`recorded_run`)."""

from __future__ import annotations

import hashlib
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import tunesmith
from tunesmith.bench import Drift
from tunesmith.logic import Logic
from tunesmith.problems import bytes_of
from tunesmith.records import Target, UserError
from tunesmith.store import RunEnd, RunStart, RunState, Store, without_password

from .ledger import Ledger
from .many_devices import DeviceShare

PlanT = TypeVar("PlanT")


@dataclass
class RunOutcome(Generic[PlanT]):
    """The result of a run of any command. `plan` holds the decisions, `written` the files that contain them, and
    `logic_files` the written files that are library logic.

    `drift` is the anchor's largest change, and `health` has the least and greatest figures that the device showed.
    `devices` has what each device did, if the run has several.
    `cautions` are reasons to trust the times less than their intervals say; the store keeps them. `look_at` are
    sentences about what a person should see; if there are none, all went well.
    """

    plan: PlanT
    target: Target
    folder: Path
    state: RunState = RunState.FINISHED
    ledger: Ledger = field(default_factory=Ledger)
    drift: Drift | None = None
    seconds: float = 0.0
    health: dict[str, float] = field(default_factory=dict)
    devices: tuple[DeviceShare, ...] = ()
    cautions: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)
    written: list[Path] = field(default_factory=list)
    logic_files: list[Path] = field(default_factory=list)

    @property
    def logic(self) -> list[tuple[Path, Logic]]:
        """The library logic that was written, by its path."""
        return [(path, Logic.load(path)) for path in self.logic_files]

    @property
    def failed(self) -> Counter[str]:
        """The number of cells that were tried and did not run right, by outcome and reason."""
        return Counter(self.ledger.failures.values())


@contextmanager
def recorded_run(
    outcome: RunOutcome[PlanT], store: Store, file: Path | None, remeasures: bool = False
) -> Iterator[str]:
    """A context that records the start and the end of a run; it gives the run's number in the store.

    `file` describes the work; with `remeasures`, no older measurement is reused. The exception that ended the run is
    raised again. If the store cannot record the end (a full disk), the run stays open there.
    """
    run, began = store.begin_run(_start(outcome.target, file, remeasures)), time.monotonic()
    try:
        yield run
    except BaseException as error:
        outcome.state = RunState.INTERRUPTED if isinstance(error, KeyboardInterrupt) else RunState.FAILED
        with suppress(UserError):
            store.end_run(run, _end(outcome, began))
        raise
    store.end_run(run, _end(outcome, began))


def _start(target: Target, file: Path | None, remeasures: bool) -> RunStart:
    return RunStart(
        command=tuple(map(without_password, sys.argv)),
        tuning_file=str(file.resolve()) if file else "",
        tuning_file_sha256=hashlib.sha256(bytes_of(file, "YAML")).hexdigest() if file else "",
        device=target.name,
        driver=target.driver,
        selector=target.selector,
        version=tunesmith.__version__,
        remeasures=remeasures,
        host=socket.gethostname(),
    )


def _end(outcome: RunOutcome[PlanT], began: float) -> RunEnd:
    outcome.seconds, ledger = time.monotonic() - began, outcome.ledger
    return RunEnd(
        outcome.state, outcome.seconds, ledger.measured, ledger.reused, ledger.cost, "\n".join(outcome.cautions)
    )
