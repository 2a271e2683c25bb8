"""Measurements, solutions and targets as columns and JSON texts, and back. Nothing is pickled."""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, fields
from typing import Any

from tunesmith.records import (
    CompiledFacts,
    Configuration,
    Cost,
    Estimate,
    Measurement,
    Outcome,
    Problem,
    ProblemType,
    Solution,
    Target,
)

from . import typed
from .entry import AGAIN, StoreEntry
from .schema import COSTS

_ESTIMATE = tuple(field.name for field in fields(Estimate))
"""Fields of an Estimate. Each has a column of the same name."""

_FACTS = tuple(field.name for field in fields(CompiledFacts))

Document = Solution | Problem | Target
"""What the store keeps once, as a JSON document, for all measurements that refer to it."""

LONGEST_SECONDS = 1e11
"""The longest time of one measurement that is valid: three thousand years. Sums of such times stay finite."""


def pack(samples: Sequence[float]) -> bytes:
    """Samples in seconds as consecutive little-endian IEEE 754 binary64, eight bytes a sample, in their order."""
    return struct.pack(f"<{len(samples)}d", *samples)


def unpack(blob: bytes) -> tuple[float, ...]:
    """The inverse of `pack`. Raises struct.error if the length is no multiple of eight."""
    return struct.unpack(f"<{len(blob) // 8}d", blob)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def storable(text: str) -> str:
    """`text` with lone surrogates escaped. A compiler's log need not be Unicode, but its measurement must be stored."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def solution_to_json(solution: Solution) -> str:
    parts = {
        "type": solution.type.to_json(),
        "kernel": solution.kernel,
        "configuration": solution.configuration.to_json(),
    }
    return json.dumps(parts, sort_keys=True)


def solution_from_json(text: str) -> Solution:
    raw = typed.document(text)
    problem_type = typed.sound_type(ProblemType.from_json(raw["type"]))
    return Solution(problem_type, typed.text(raw, "kernel"), Configuration.from_json(raw["configuration"]))


def target_to_json(target: Target) -> str:
    return json.dumps(asdict(target), sort_keys=True)


def target_from_json(text: str) -> Target:
    return typed.typed(Target, typed.document(text))


def documents_of(entry: StoreEntry) -> dict[str, Document]:
    """The three records whose JSON documents an entry's row refers to, by column."""
    return {"solution": entry.solution, "problem": entry.problem, "target": entry.target}


def document_to_json(document: Document) -> str:
    match document:
        case Solution():
            return solution_to_json(document)
        case Problem():
            return document.to_json()
        case Target():
            return target_to_json(document)


def row_of(entry: StoreEntry, documents: Mapping[str, str]) -> dict[str, Any]:
    """The columns of one measurement. `documents` holds the digest of each document by column."""
    measurement, estimate, cost = entry.measurement, entry.measurement.estimate, entry.measurement.cost
    return {
        "key": entry.key,
        "round": entry.round,
        "identity": entry.identity,
        "problem_type": entry.problem.type.name,
        **documents,
        "toolchain": storable(entry.toolchain),
        "outcome": measurement.outcome.value,
        "reason": storable(measurement.reason),
        "detail": storable(measurement.detail),
        **{name: _without_nan(getattr(estimate, name)) if estimate else None for name in _ESTIMATE},
        "samples": pack(measurement.samples),
        "raced": int(measurement.raced),
        "facts": json.dumps([{name: getattr(facts, name) for name in _FACTS} for facts in measurement.facts]),
        **dict(zip(COSTS, (cost.compile, cost.verify, cost.timing), strict=True)),
        "started": measurement.started,
        "host": storable(measurement.host),
        "run": entry.run,
    }


def measurement_of(row: Mapping[str, Any]) -> Measurement:
    """The inverse of `row_of` for the measurement's own columns."""
    samples = unpack(row["samples"])
    if any(sample < 0 for sample in samples):
        raise ValueError("a sample is below zero seconds")
    return Measurement(
        outcome=Outcome(row["outcome"]),
        reason=typed.text(row, "reason"),
        detail=typed.text(row, "detail"),
        samples=samples,
        estimate=_estimate_of(row),
        raced=bool(typed.number(row, "raced")),
        facts=tuple(typed.typed(CompiledFacts, facts) for facts in json.loads(row["facts"])),
        cost=Cost(*(check_spent(name, typed.number(row, name)) for name in COSTS)),
        started=typed.number(row, "started"),
        host=typed.text(row, "host"),
    )


def check_spent(column: str, seconds: object) -> float:
    """Seconds that a measurement took. Raises ValueError if they are negative, too long or no number."""
    if not isinstance(seconds, (int, float)) or not 0 <= seconds <= LONGEST_SECONDS:
        raise ValueError(f"{column} is {seconds!r}")
    return float(seconds)


def _without_nan(number: float) -> float | None:
    """The number, or NULL for a NaN. SQLite would store it so, and PostgreSQL would order a NaN as the largest."""
    return None if math.isnan(number) else number


def _estimate_of(row: Mapping[str, Any]) -> Estimate | None:
    """The estimate, or None. A NaN is stored as NULL, so only the count says whether there is an estimate."""
    if row["count"] is None:
        return None
    estimate = typed.typed(Estimate, {name: math.nan if row[name] is None else row[name] for name in _ESTIMATE})
    if any(number < 0 for number in astuple(estimate)):
        interval = f"from {estimate.low} to {estimate.high}"
        raise ValueError(f"a time is {estimate.seconds} s, {interval}, of {estimate.count} samples")
    return estimate


def entry_of(row: Mapping[str, Any]) -> StoreEntry:
    """The entry of a row whose `solution`, `problem` and `target` are the documents' texts."""
    return StoreEntry(
        key=typed.text(row, "key"),
        round=typed.text(row, "round").rstrip(AGAIN),
        identity=typed.text(row, "identity"),
        solution=solution_from_json(row["solution"]),
        problem=typed.sound_problem(Problem.from_json(row["problem"])),
        target=target_from_json(row["target"]),
        toolchain=typed.text(row, "toolchain"),
        measurement=measurement_of(row),
        run=typed.text(row, "run"),
    )
