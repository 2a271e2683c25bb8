"""The details beside a final table: every time with its solution's full configuration, problem type and device."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.logic import NOT_MEASURED, details_of
from tunesmith.problems import MOST_GENERATED_BYTES, OPERATIONS, text_of
from tunesmith.records import Configuration, Estimate, Measurement, Outcome, Problem, ProblemType, Solution, UserError

_REMEDY = "give the details that `tunesmith tune` wrote beside the table"
_COLUMNS = ("Kernel", "Configuration", "ProblemType")


@dataclass(frozen=True, slots=True)
class NamedDevice:
    """The device on which a table's times were measured, as far as the table names it."""

    api: str
    name: str
    architecture: str
    driver: str
    compute_units: int


@dataclass(frozen=True)
class FinalDetails:
    """The times of a final, the solutions by their names in the table, and the device (None if it is not named).

    `failures` holds the measurements that failed, without samples.
    """

    solutions: Mapping[str, Solution]
    times: Mapping[tuple[Problem, Solution], Estimate]
    device: NamedDevice | None
    failures: Mapping[tuple[Problem, Solution], Measurement] = field(default_factory=dict)


def read_details(table: Path) -> FinalDetails | None:
    """The details beside a final table. Raises UserError, with the line, for a mistake in the file.

    None if there is no such file, or if an older version wrote it without configurations.
    """
    path = details_of(table)
    if not path.exists():
        return None
    try:
        rows = list(
            csv.DictReader(io.StringIO(text_of(path, "CSV", MOST_GENERATED_BYTES, _REMEDY), newline=""), strict=True)
        )
    except csv.Error as error:
        raise UserError(str(path), f"cannot be read as CSV ({error})", _REMEDY) from error
    if not rows or not all(rows[0].get(name) for name in _COLUMNS):
        return None
    reader, times, failures = _Reader(), {}, {}
    for number, row in enumerate(rows, 2):
        try:
            problem, solution, measurement = reader.cell(row)
        except (ValueError, TypeError, KeyError, AttributeError, LookupError) as error:
            raise UserError(f"{path}:{number}", f"is no row of details ({_words(error)})", _REMEDY) from error
        except UserError as error:
            raise UserError(f"{path}:{number}", f"{error.location}: {error.what}", _REMEDY) from error
        if measurement.estimate:
            times[problem, solution] = measurement.estimate
        elif not measurement.ok and measurement.reason != NOT_MEASURED:
            failures[problem, solution] = measurement
    return FinalDetails(reader.solutions, times, reader.device, failures)


class _Reader:
    """Reads row by row; parses a solution, problem type or device that many rows share once."""

    def __init__(self) -> None:
        self.solutions: dict[str, Solution] = {}
        self.device: NamedDevice | None = None
        self._types: dict[str, ProblemType] = {}
        self._devices: dict[str, NamedDevice] = {}

    def cell(self, row: Mapping[str, str]) -> tuple[Problem, Solution, Measurement]:
        problem_type = self._type(row["ProblemType"])
        name = row["Solution"]
        if name not in self.solutions:
            self.solutions[name] = Solution(problem_type, row["Kernel"], Configuration.from_json(row["Configuration"]))
        if text := row.get("Device"):
            self._set_device(text)
        sizes = tuple(_whole(row[index]) for index in problem_type.indices)
        names = [name for name, _ in OPERATIONS[problem_type.operation].leading(problem_type, sizes)]
        leading = tuple(_whole(row[name]) for name in names if row.get(name))
        estimate = None
        if row["Outcome"] == Outcome.OK.value and row["Seconds"]:
            estimate = Estimate(
                _positive(row["Seconds"]), _bound(row["Low"]), _bound(row["High"]), _whole(row["Samples"])
            )
        measurement = Measurement(
            Outcome(row["Outcome"]), row.get("Reason") or "", row.get("Detail") or "", estimate=estimate
        )
        return Problem(problem_type, sizes, leading), self.solutions[name], measurement

    def _type(self, text: str) -> ProblemType:
        if text not in self._types:
            problem_type = ProblemType.from_json(text)
            OPERATIONS[problem_type.operation].validate(problem_type)
            self._types[text] = problem_type
        return self._types[text]

    def _set_device(self, text: str) -> None:
        if text not in self._devices:
            device = NamedDevice(**json.loads(text))
            words = (device.api, device.name, device.architecture, device.driver)
            if not all(isinstance(word, str) for word in words) or not isinstance(device.compute_units, int):
                raise ValueError(f"no device: {text[:60]}")
            if self._devices:
                raise ValueError(f"another device than the rows before: {device.name}")
            self._devices[text] = self.device = device


def _whole(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 10**12:
        raise ValueError(f"{text} is no size")
    return number


def _positive(text: str) -> float:
    number = float(text)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{text} is no time")
    return number


def _bound(text: str) -> float:
    """The end of an interval; NaN for an empty cell."""
    return float(text) if text else math.nan


def _words(error: Exception) -> str:
    text = str(error) or type(error).__name__
    return f"no {text}" if isinstance(error, KeyError) else text[:120]
