"""Entries of the store: a measurement with its key, solution, problem, target and round."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from tunesmith.records import Measurement, Problem, Solution, Target

RACE, FULL, CONFIRM, RECHECK = "race", "full", "confirm/", "/recheck"
"""Names of rounds: sampled until provably slower; sampled until the noise target; of finalists (a hash follows); again
after a crash that came later."""

AGAIN = "+"
"""Ends the name of a round in the file if the row replaces an earlier measurement, since rows are only added. A third
measurement has two. It is never part of the `round` of a StoreEntry."""


@dataclass(frozen=True, slots=True)
class StoreEntry:
    """One measurement under its key and round.

    `key` is a hash of everything that could change the measurement (`measurement_key`). `round` is "race", "full",
    "anchor/<n>", "anchor/<folder>/<n>" or a `confirm_round`, with "/recheck" for a second result. Key and round
    together are unique.
    `identity` is the solution's, `toolchain` the compiler's name and version. `run` is the id of the run that measured
    it, empty if that is unknown; the store sets it.
    """

    key: str
    round: str
    identity: str
    solution: Solution
    problem: Problem
    target: Target
    toolchain: str
    measurement: Measurement
    run: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class RenewedKey:
    """The key, solution and problem of today that `Store.carry_over` writes for a former key."""

    key: str
    solution: Solution
    problem: Problem


def confirm_round(keys: Iterable[str]) -> str:
    """The name of the round in which the finalists with these keys are measured interleaved."""
    return CONFIRM + hashlib.sha256("".join(sorted(keys)).encode()).hexdigest()[:16]


def measurement_key(
    *, target: Target, toolchain: str, identity: str, plan_digest: str, problem: Problem, policy: str
) -> str:
    """SHA-256 over device, driver, compiler, solution, launch plan, problem and measuring policy."""
    parts = [target.api, target.name, target.architecture, target.driver, toolchain, identity, plan_digest]
    return hashlib.sha256(json.dumps([*parts, problem.to_json(), policy]).encode()).hexdigest()
