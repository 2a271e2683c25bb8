"""What a store remembers of runs and their steps, beside the measurements themselves."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from tunesmith.records import Configuration, Cost

from . import typed


class RunState(StrEnum):
    """How a run stands. A run without an end is still going on, or was killed."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class RunStart:
    """What was asked, of what, where: `tuning_file` with the SHA-256 of its bytes, `version` tunesmith's.

    `device` is a target's name, `driver` its driver, `selector` what finds it again. `remeasures`: nothing that was
    measured before the run began counts in it.
    """

    command: tuple[str, ...]
    tuning_file: str
    tuning_file_sha256: str
    device: str
    driver: str
    selector: str
    version: str
    remeasures: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> RunStart:
        raw = typed.document(text)
        return typed.typed(RunStart, {**raw, "command": tuple(map(str, raw["command"]))})


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How it ended and what it cost: wall seconds, measurements newly made, and those found in the store. `note` holds
    cautions about its times, a line each.
    """

    state: RunState
    seconds: float
    measured: int
    reused: int
    cost: Cost = Cost()
    note: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> RunEnd:
        raw = typed.document(text)
        cost = typed.typed(Cost, raw["cost"])
        return typed.typed(RunEnd, {**raw, "state": RunState(raw["state"]), "cost": cost})


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as the store knows it. Times are seconds since the epoch."""

    id: str
    started: float
    start: RunStart
    ended: float | None = None
    end: RunEnd | None = None

    @property
    def state(self) -> RunState:
        return self.end.state if self.end else RunState.OPEN


@dataclass(frozen=True, slots=True)
class Winner:
    """What one lineage took from a step: its fork values, the values chosen, and whether the incumbent held a tie."""

    lineage: Configuration
    chosen: Configuration
    tie: bool = False


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What one step of one size group did, for `tunesmith show`.

    `name` says what was varied ("03_BF_NumLoadsCoalescedA"). `lineages` went in, `survivors` came out; `candidates`
    were legal, over all lineages; `rejected` and `failed` count by reason what did not run; `dropped` and `notes` are
    sentences on each lineage that ended here and on whatever else a person should know. `seconds` is wall time.
    """

    problem_type: str
    group: int
    number: int
    phase: str
    name: str
    lineages: int
    survivors: int
    candidates: int
    problems: int
    rejected: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, int] = field(default_factory=dict)
    winners: tuple[Winner, ...] = ()
    ties: int = 0
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_json(self) -> str:
        plain: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__ if name != "winners"}
        winners = [[w.lineage.to_json(), w.chosen.to_json(), w.tie] for w in self.winners]
        return json.dumps({**plain, "winners": winners}, sort_keys=True, default=dict)

    @staticmethod
    def from_json(text: str) -> StepRecord:
        raw = typed.document(text)
        winners = tuple(
            Winner(Configuration.from_json(lineage), Configuration.from_json(chosen), bool(tie))
            for lineage, chosen, tie in raw["winners"]
        )
        sentences = {name: tuple(map(str, raw[name])) for name in ("dropped", "notes")}
        counts = {name: {str(why): int(count) for why, count in raw[name].items()} for name in _COUNTS}
        return typed.typed(StepRecord, {**raw, **sentences, **counts, "winners": winners})


_COUNTS = ("rejected", "failed")
