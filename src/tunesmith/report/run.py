"""What the report of every run contains, whatever its command: the first JSON keys and the last lines of text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tunesmith.records import printable
from tunesmith.session.frame.many_devices import DeviceShare
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.siblings import spread

from . import numbers

Document = dict[str, Any]


def head(outcome: RunOutcome[Any]) -> Document:
    """The keys with which the JSON of every run begins (docs/json.md)."""
    ledger = outcome.ledger
    return {
        "state": outcome.state.value,
        "device": outcome.target.name,
        "selector": outcome.target.selector,
        "seconds": outcome.seconds,
        "measured": ledger.measured,
        "reused": ledger.reused,
        "cost_seconds": asdict(ledger.cost),
        "failed": dict(outcome.failed),
        "drift": asdict(outcome.drift) if outcome.drift else None,
        "health": dict(outcome.health),
        "written": [str(path) for path in outcome.written],
        "look_at": list(outcome.look_at),
        **({"devices": [asdict(share) for share in outcome.devices]} if outcome.devices else {}),
    }


def fields(record: object, *names: str) -> Document:
    """The named fields of a record, under the same names in JSON."""
    return {name: getattr(record, name) for name in names}


def finite(number: float | None) -> float | None:
    """The number; None for NaN and infinity, which JSON does not have."""
    return number if number is not None and math.isfinite(number) else None


def _devices(shares: Sequence[DeviceShare]) -> Iterable[str]:
    """A line for each device of several, and one on how far apart they are."""
    for share in shares:
        anchor = f", anchor {share.anchor:.3f} of its siblings'" if share.anchor is not None else ""
        why = f"; left out: {share.left_out}" if share.left_out else ""
        yield printable(f"{share.device}: {share.measured} measured, busy {100 * share.busy:.0f} %{anchor}{why}")
    relative = {share.device: share.anchor for share in shares if share.anchor is not None}
    if len(relative) > 1:
        yield f"spread between the {len(relative)} devices by their anchors: {100 * spread(relative):.1f} %"


def closing(outcome: RunOutcome[Any], written: Iterable[Path] = ()) -> list[str]:
    """The lines with which the text of every run ends: what it measured and cost, what it wrote, what to look at."""
    ledger = outcome.ledger
    return [
        f"{ledger.measured} measured, {ledger.reused} found in the store, in {numbers.duration(outcome.seconds)} "
        f"({numbers.cost(ledger.cost)})",
        *_devices(outcome.devices),
        *(f"wrote {printable(str(path))}" for path in written),
        *(f"look at: {sentence}" for sentence in outcome.look_at),
    ]
