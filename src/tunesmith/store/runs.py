"""The records of runs and their steps in a store, beside the measurements."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from tunesmith.records import Configuration, Cost

from . import typed


class RunState(StrEnum):
    """The state of a run. A run without an end is `OPEN`: it still goes on, or was killed."""

    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class RunStart:
    """The command of a run, its tuning file with the SHA-256 of the file's bytes, and tunesmith's `version`.

    `device` is the target's name, `driver` its driver, `selector` its selector. `remeasures`: the run does not use
    measurements from before it began. `host` is the name of the run's host, empty in the records of earlier versions.
    `folder` is the id of the run's folder if folders share the store (`folder.py`).
    """

    command: tuple[str, ...]
    tuning_file: str
    tuning_file_sha256: str
    device: str
    driver: str
    selector: str
    version: str
    remeasures: bool = False
    host: str = ""
    folder: str = ""

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @staticmethod
    def from_json(text: str) -> RunStart:
        raw = typed.document(text)
        return typed.typed(RunStart, {**raw, "command": tuple(map(str, raw["command"]))})


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended and what it cost: wall seconds, new measurements, and measurements found in the store. `note`
    holds warnings about the run's times, one in each line.
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
    """A run in the store. Times are seconds since the epoch."""

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
    """The result of a step for one lineage: its fork values, the chosen values, and whether the incumbent won a tie."""

    lineage: Configuration
    chosen: Configuration
    tie: bool = False


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The result of one step of one size group, for `tunesmith show`.

    `name` says which parameter was varied ("03_BF_NumLoadsCoalescedA"). `lineages` entered the step, `survivors` left
    it. `candidates` counts the legal ones over all lineages. `rejected` and `failed` count, by reason, those that did
    not run. `dropped` has a sentence for each lineage that ended here, `notes` other sentences for the user. `seconds`
    is wall time.
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
        winners = [[winner.lineage.to_json(), winner.chosen.to_json(), winner.tie] for winner in self.winners]
        return json.dumps({**plain, "winners": winners}, sort_keys=True, default=dict)

    @staticmethod
    def from_json(text: str) -> StepRecord:
        raw = typed.document(text)
        winners = tuple(
            Winner(Configuration.from_json(lineage), Configuration.from_json(chosen), bool(tie))
            for lineage, chosen, tie in raw["winners"]
        )
        sentences = {name: tuple(map(str, raw[name])) for name in ("dropped", "notes")}
        counts = {name: {str(reason): int(count) for reason, count in raw[name].items()} for name in _COUNTS}
        return typed.typed(StepRecord, {**raw, **sentences, **counts, "winners": winners})


_COUNTS = ("rejected", "failed")
