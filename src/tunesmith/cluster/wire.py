"""Measurements as plain data (numbers, texts, lists), in which workers send them through Dask's scheduler.

The scheduler passes such data on without unpickling, and here it is checked field by field: a result cannot run code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tunesmith.records import CompiledFacts, Cost, Estimate, Measurement, Outcome, UserError

Plain = dict[str, Any]


def plain_measurement(measurement: Measurement) -> Plain:
    """The measurement as plain data, without the device's name, which the receiver knows."""
    estimate = measurement.estimate
    return {
        "outcome": measurement.outcome.value,
        "reason": measurement.reason,
        "detail": measurement.detail,
        "samples": list(measurement.samples),
        "estimate": [estimate.seconds, estimate.low, estimate.high, estimate.count] if estimate else None,
        "raced": measurement.raced,
        "facts": [asdict(facts) for facts in measurement.facts],
        "cost": [measurement.cost.compile, measurement.cost.verify, measurement.cost.timing],
        "started": measurement.started,
    }


def measurement_of(plain: Mapping[str, Any], device: str) -> Measurement:
    """The measurement that a device sent. Raises UserError if it is none, which another version may send."""
    try:
        estimate = plain["estimate"]
        return Measurement(
            outcome=Outcome(plain["outcome"]),
            reason=str(plain["reason"]),
            detail=str(plain["detail"]),
            samples=tuple(map(float, plain["samples"])),
            estimate=_estimate(*estimate) if estimate else None,
            raced=bool(plain["raced"]),
            facts=tuple(CompiledFacts(**facts) for facts in plain["facts"]),
            cost=_cost(*plain["cost"]),
            started=float(plain["started"]),
            device=device,
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        what = f"sent what is no measurement ({type(error).__name__}: {error})"
        raise UserError(device, what, "install the same version of tunesmith on every host") from None


def _estimate(seconds: float, low: float, high: float, count: int) -> Estimate:
    return Estimate(float(seconds), float(low), float(high), int(count))


def _cost(compile_seconds: float, verify: float, timing: float) -> Cost:
    return Cost(float(compile_seconds), float(verify), float(timing))
