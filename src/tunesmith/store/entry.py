"""What is appended to the store: a measurement with everything that says what it is of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from tunesmith.records import Measurement, Problem, Solution, Target

RACE, FULL, CONFIRM, RECHECK = "race", "full", "confirm/", "/recheck"
"""Rounds: sampled until provably slower; sampled until the noise target; of finalists (a hash follows); after a crash
that came later."""

AGAIN = "+"
"""Ends the name of a round in the file where what was measured there before is replaced: rows are only ever added. A
third measurement has two of them. No record of this room has it in its `round`."""


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One measurement under its key and round.

    `key` holds everything that could change the measurement (`measurement_key`); `round` is "race", "full",
    "anchor/<n>" or a `confirm_round`, with "/recheck" for a second result: unique together.
    `identity` is the solution's, `toolchain` the compiler's name and version.
    """

    key: str
    round: str
    identity: str
    solution: Solution
    problem: Problem
    target: Target
    toolchain: str
    measurement: Measurement


@dataclass(frozen=True, slots=True)
class Renewed:
    """What `Store.carry_over` writes for a former key: the key, solution and problem of today."""

    key: str
    solution: Solution
    problem: Problem


def confirm_round(keys: Iterable[str]) -> str:
    """The round in which the finalists with these keys are measured interleaved."""
    return CONFIRM + hashlib.sha256("".join(sorted(keys)).encode()).hexdigest()[:16]


def measurement_key(
    *, target: Target, toolchain: str, identity: str, plan_digest: str, problem: Problem, policy: str
) -> str:
    """SHA-256 over device, driver, compiler, solution, launch plan, problem and measuring policy."""
    parts = [target.api, target.name, target.architecture, target.driver, toolchain, identity, plan_digest]
    return hashlib.sha256(json.dumps([*parts, problem.to_json(), policy]).encode()).hexdigest()
