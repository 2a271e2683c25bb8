"""A run in the store's records: that it began, and however it ended."""

from __future__ import annotations

import hashlib
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
from tunesmith.store import RunEnd, RunStart, RunState, Store

from .measure import Ledger

PlanT = TypeVar("PlanT")


@dataclass
class RunOutcome(Generic[PlanT]):
    """What a run came to, whatever its command: `plan` holds what was decided, `written` the files that say so,
    `logic_files` those of them that are library logic.

    `drift` is the anchor's largest change, `health` what was seen of the device meanwhile, `cautions` why its times are
    less to be trusted than their intervals say, which the store keeps. `look_at` are sentences
    about what a person should see; without any, all went well.
    """

    plan: PlanT
    target: Target
    folder: Path
    state: RunState = RunState.FINISHED
    ledger: Ledger = field(default_factory=Ledger)
    drift: Drift | None = None
    seconds: float = 0.0
    health: dict[str, float] = field(default_factory=dict)
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
        """By outcome and reason, how many cells were tried and did not run right."""
        return Counter(self.ledger.failures.values())


@contextmanager
def recorded(outcome: RunOutcome[PlanT], store: Store, file: Path | None, remeasures: bool = False) -> Iterator[str]:
    """Within it the run goes on, whose number in the store it gives; `file` describes the work, and `remeasures` says
    that nothing older counts.

    What ended the run is raised also where the store cannot take the end (a full disk): there the run stays open.
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
        command=tuple(sys.argv),
        tuning_file=str(file.resolve()) if file else "",
        tuning_file_sha256=hashlib.sha256(bytes_of(file, "YAML")).hexdigest() if file else "",
        device=target.name,
        driver=target.driver,
        selector=target.selector,
        version=tunesmith.__version__,
        remeasures=remeasures,
    )


def _end(outcome: RunOutcome[PlanT], began: float) -> RunEnd:
    outcome.seconds, ledger = time.monotonic() - began, outcome.ledger
    return RunEnd(
        outcome.state, outcome.seconds, ledger.measured, ledger.reused, ledger.cost, "\n".join(outcome.cautions)
    )
