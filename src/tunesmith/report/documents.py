"""What the core commands print as JSON objects: a function for each command.

`docs/json.md` explains every key; a test compares it with these documents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from tunesmith.devices import FoundDevice
from tunesmith.logic import Choice, Logic, Sheet
from tunesmith.protocol import StepForecast
from tunesmith.records import Configuration, thaw
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.tuning_file import Forecast, GroupForecast, NumpyComparison, Summary, TuningPlan
from tunesmith.session.tuning_file.summary import MeasuringDevice
from tunesmith.store import Winner

from . import imported
from .run import Document, fields, head


def devices(found: Sequence[FoundDevice]) -> Document:
    return {
        "devices": [
            {
                **fields(device, "name", "usable", "problem", "remedy"),
                "properties": asdict(device.target) if device.target else None,
            }
            for device in found
        ]
    }


def plan(forecast: Forecast) -> Document:
    return {
        "device": forecast.target.name,
        "notes": list(forecast.notes),
        # Only where it is true, so that the documents of all other plans keep their form.
        **({"imported": imported.document(forecast.imported)} if forecast.imported else {}),
        "minutes": forecast.seconds / 60 if forecast.seconds is not None else None,
        "groups": [_group(group) for group in forecast.groups],
    }


def outcome(done: RunOutcome[TuningPlan]) -> Document:
    return {
        **head(done),
        "csv": [str(path) for path in done.written if path.suffix == ".csv"],
        "logic": [str(path) for path in done.logic_files],
        "left_out": dict(done.plan.left_out),
        "winners": [row for _, logic in done.logic for row in _winners(logic)],
    }


def summary(found: Summary) -> Document:
    return {
        "tuning_file": found.run.start.tuning_file,
        "device": found.run.start.device,
        "state": found.run.state.value,
        "runs": found.runs,
        "steps": [{**asdict(step), "winners": [_winner(winner) for winner in step.winners]} for step in found.steps],
        "finals": [{"csv": str(path), **_final(sheet)} for path, sheet in found.finals],
        "logic": [
            {"path": str(path), "unfinished": logic.document.unfinished, "winners": _winners(logic)}
            for path, logic in found.logic
        ],
        "failures": [fields(failure, "outcome", "reason", "count", "example") for failure in found.failures],
        "cost_seconds": asdict(found.cost),
        **({"devices": [_measuring(device) for device in found.devices]} if found.devices else {}),
    }


def _measuring(device: MeasuringDevice) -> Document:
    sizes = [list(problem.sizes) for problem in device.problems]
    return {"device": device.device, "measured": device.measured, "sizes": sizes}


def choice(sizes: Sequence[int], chosen: Choice, unfinished: str = "") -> Document:
    return {
        "problem_type": chosen.solution.type.name,
        "sizes": list(sizes),
        "unfinished": unfinished,
        "solution": chosen.name,
        "kernel": chosen.solution.kernel,
        "configuration": _plain(chosen.solution.configuration),
        "rule": chosen.rule.value,
        "expected_seconds": chosen.expected_seconds,
        "doubt": chosen.doubt,
        "neighbour": list(chosen.neighbour),
        "distance": chosen.distance,
    }


def comparison(compared: NumpyComparison) -> Document:
    return {
        "peer": asdict(compared.peer),
        "look_at": list(compared.look_at),
        "rows": [
            {
                "problem_type": row.problem.type.name,
                "sizes": list(row.problem.sizes),
                "solution": row.solution,
                "rule": row.rule,
                "flops": row.flops,
                **asdict(row.ratio),
            }
            for row in compared.rows
        ],
    }


def _group(group: GroupForecast) -> Document:
    counts = group.forecast
    return {
        "name": group.name,
        "exhaustive": counts.exhaustive,
        "enqueues_before_rejections": counts.enqueues_before,
        "enqueues": counts.enqueues_after,
        "order": group.order,
        "steps": [
            _forecast_step(before, after, seconds)
            for before, after, seconds in zip(counts.before, counts.after, group.seconds, strict=True)
        ],
    }


def _forecast_step(before: StepForecast, after: StepForecast, seconds: float | None) -> Document:
    legal: Document = {"candidates": after.candidates, "enqueues": after.enqueues, "survivors": after.survivors}
    # Only where it is true, so that the documents of all other plans keep their form.
    legal |= {"is_estimated": True} if after.is_estimated else {}
    legal |= {"rejected": dict(after.rejected)} if after.rejected else {}
    counts = fields(before, "name", "phase", "lineages", "choices", "candidates", "sizes", "enqueues", "survivors")
    return {**counts, "phase": before.phase.value, "after_rejections": legal, "seconds": seconds}


def _winners(logic: Logic) -> list[Document]:
    """An object for each size of a logic: the chosen solution, its speed, and the speed's interval."""
    document = logic.document
    return [
        {
            "problem_type": document.problem_type.name,
            "sizes": list(row.sizes),
            "leading": list(row.leading),
            "solution": document.solutions[row.solution].name,
            "ties": [document.solutions[tie].name for tie in row.ties],
            **fields(row.estimate, "seconds", "low", "high"),
            "samples": row.estimate.count,
            document.unit.column.lower(): row.rate,
        }
        for row in document.rows
    ]


def _winner(winner: Winner) -> Document:
    return {"lineage": _plain(winner.lineage), "chosen": _plain(winner.chosen), "tie": winner.tie}


def _final(sheet: Sheet) -> Document:
    rates = sheet.unit.column.lower()
    rows = [
        {"sizes": dict(sizes), rates: {name: sheet.rates.get((row, name)) for name in sheet.names}}
        for row, sizes in enumerate(sheet.sizes)
    ]
    return {"solutions": list(sheet.names), "rows": rows}


def _plain(config: Configuration) -> Document:
    return {name: thaw(value) for name, value in config.items()}
