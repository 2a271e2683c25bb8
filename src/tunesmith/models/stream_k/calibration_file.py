"""Reads and writes calibrations as a YAML file that a person can read and adjust."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.kernels.gemm.parameters import GROUP_MAPPING
from tunesmith.problems import MOST_GENERATED_BYTES, Node, beginning_of, read_yaml, shortened
from tunesmith.problems.yaml import flow
from tunesmith.records import Configuration, UserError, thaw

from .calibration import CalibrationOrigin, StreamKCalibration, Subject
from .costs import COSTS
from .fit import FittedCost
from .records import DeviceCapacity, MacroTile, StreamKChoice, TiledProduct
from .runs import StreamKRun

FORMAT = 2
"""The number under `tunesmith-stream-k`, raised when one of two versions could not read what the other wrote."""

_KEY = "tunesmith-stream-k"
_FACTS = ("device", "kernel", "data-type", "tile", "cached", "compiler", "problem-type", "configuration", "made")
_NUMBERS = ("costs", "scatter", "covariance", "runs")
_DEVICE = ("api", "name", "architecture", "driver", "multiprocessors", "occupancy")
_REMARKS = {"cached": "  # iterations of a tile's piece of A, and of B, that the last-level cache holds"}
_REMEDY = "give a file that `tunesmith calibrate stream-k` wrote"
_MICRO = 1e-6
_MOST = 1e30
"""The largest number that is accepted: sums of products then stay far from the largest float."""

_HEAD = f"""\
# What launches of stream-K kernels cost, for `tunesmith stream-k explain` and, beside its logic, for the library
# (docs/stream-k.md).
# Times are in microseconds. To put a cost right, write `adjusted: 3.9` beside its `fitted`: it counts instead, and
# stays when the file is calibrated again.
{_KEY}: {FORMAT}
calibrations:
"""


class OtherVersionError(UserError):
    """The file was written by another version, in another format."""


def dump(calibrations: Iterable[StreamKCalibration]) -> str:
    """The text of a file. `read` gives the same calibrations back, to six digits."""
    return _HEAD + "".join(map(_entry, calibrations))


def calibration_files(folder: Path) -> list[Path]:
    """The YAML files of a folder that have the key of calibrations."""
    return sorted(file for file in (*folder.glob("*.yaml"), *folder.glob("*.yml")) if _has_calibrations(file))


def _has_calibrations(file: Path) -> bool:
    """Whether a line begins with the key. False for anything but a regular file, since opening it might block for
    ever."""
    return file.is_file() and any(
        line.startswith(_KEY.encode()) for line in beginning_of(file, "YAML", MOST_GENERATED_BYTES).split(b"\n")
    )


def read(path: Path) -> tuple[StreamKCalibration, ...]:
    """The calibrations in a file. Raises UserError, with the line, for a mistake in the file, and OtherFormatError for
    a file of another version."""
    fields = read_yaml(path).fields("a calibration of stream-K", (_KEY, "calibrations"))
    version = fields[_KEY]
    if version.content != FORMAT:
        what = f"format {shortened(version.content)}, this tunesmith reads {FORMAT}"
        remedy = "calibrate again into another file, and copy what a person had adjusted"
        raise OtherVersionError(version.location, what, remedy)
    by_subject: dict[Subject, StreamKCalibration] = {}
    for node in fields["calibrations"].sequence("calibrations"):
        calibration = _calibration(node)
        if calibration.subject in by_subject:
            raise node.wrong(f"a second calibration of {calibration.subject}", "keep one of the two")
        by_subject[calibration.subject] = calibration
    return tuple(by_subject.values())


def _entry(calibration: StreamKCalibration) -> str:
    subject, origin, room = calibration.subject, calibration.origin, calibration.subject.room
    device = subject.api, subject.device, subject.architecture, origin.driver, room.multiprocessors, room.occupancy
    facts = {
        "device": dict(zip(_DEVICE, device, strict=True)),
        "kernel": subject.kernel,
        "data-type": subject.data_type,
        "tile": [subject.tile.m, subject.tile.n, subject.tile.depth],
        "cached": list(room.cached),
        "compiler": origin.compiler,
        "problem-type": origin.problem_type,
        "configuration": {name: thaw(value) for name, value in origin.configuration.items()},
        "made": {"tunesmith": origin.tunesmith, "date": origin.date},
    }
    lines = [f"{name}: {flow(value)}{_REMARKS.get(name, '')}" for name, value in facts.items()]
    lines.append("costs:")
    for (name, doc), cost in zip(COSTS.items(), calibration.costs, strict=True):
        lines.append(f"  {name}: {flow(_cost(cost))}  # {doc}")
    lines += [
        f"scatter: {_digits(calibration.scatter)}  # of a run around the model, relative",
        "covariance:  # of the fitted costs, in their order",
        *(f"- {flow([_digits(value / _MICRO**2) for value in row])}" for row in calibration.covariance.tolist()),
        "runs:  # [tiles, of these along M, iterations, grid, streamed tiles, splits, time]",
        *(f"- {flow(_run(run))}" for run in calibration.runs),
    ]
    return "- " + "\n  ".join(lines) + "\n"


def _cost(cost: FittedCost) -> dict[str, float]:
    return {name: _digits(value / _MICRO) for name, value in asdict(cost).items() if value is not None}


def _run(run: StreamKRun) -> list[float]:
    choice, work = run.choice, run.work
    numbers = (work.tiles, work.down, work.iterations, choice.grid, choice.streamed, choice.splits)
    return [*numbers, _digits(run.seconds / _MICRO)]


def _digits(value: float) -> float:
    return float(f"{value:.6g}")


def _calibration(node: Node) -> StreamKCalibration:
    fields = node.fields("a calibration", (*_FACTS, *_NUMBERS))
    device = fields["device"].fields("device", _DEVICE)
    along_m, along_n = (_whole(item, "cached", 0) for item in _items(fields["cached"], "cached", 2))
    units, occupancy = (_whole(device[key], key, 1) for key in _DEVICE[4:])
    room = DeviceCapacity(units, occupancy, (along_m, along_n))
    configuration = fields["configuration"].mapping("configuration")
    mapping = configuration.get(GROUP_MAPPING.name)
    block = _whole(mapping, GROUP_MAPPING.name, 1) if mapping else 1
    m, n, depth = (_whole(item, "tile", 1) for item in _items(fields["tile"], "tile", 3))
    tile = MacroTile(m, n, depth, block)
    api, name, architecture, driver = (device[key].word(key) for key in _DEVICE[:4])
    kernel, data_type, compiler, problem_type = (
        fields[key].word(key) for key in ("kernel", "data-type", "compiler", "problem-type")
    )
    made_by = fields["made"].fields("made", ("tunesmith", "date"))
    version, date = (made_by[key].word(key) for key in ("tunesmith", "date"))
    parameters = Configuration({key: value.plain(key) for key, value in configuration.items()})
    costs = fields["costs"].fields("costs", tuple(COSTS))
    rows = _items(fields["covariance"], "covariance", len(COSTS))
    covariance = [
        [_number(item, "covariance", 0 if index == other else -math.inf) for other, item in enumerate(items)]
        for index, items in enumerate(_items(row, "covariance", len(COSTS)) for row in rows)
    ]
    return StreamKCalibration(
        Subject(api, name, architecture, kernel, data_type, tile, room),
        CalibrationOrigin(driver, compiler, problem_type, parameters, version, date),
        tuple(_read_cost(costs[name], name) for name in COSTS),
        np.array(covariance) * _MICRO**2,
        _number(fields["scatter"], "scatter", least=0),
        tuple(_read_run(item, tile) for item in fields["runs"].sequence("runs")),
    )


def _read_cost(node: Node, name: str) -> FittedCost:
    fields = node.fields(name, ("fitted", "low", "high"), ("adjusted",))
    values = {key: _number(value, f"{name}: {key}", least=0) * _MICRO for key, value in fields.items()}
    return FittedCost(**values)


def _read_run(node: Node, tile: MacroTile) -> StreamKRun:
    *numbers, microseconds = _items(node, "a run", 7)
    tiles, down, iterations, grid, streamed, splits = (
        _whole(item, "a run", least) for item, least in zip(numbers, (1, 1, 1, 1, 0, 1), strict=True)
    )
    seconds = _number(microseconds, "a run's time", least=1e-9) * _MICRO
    if streamed > tiles or (streamed and splits > 1):
        raise node.wrong(f"{streamed} streamed tiles of {tiles} in {splits} parts", _REMEDY)
    if tiles % down:
        raise node.wrong(f"{tiles} tiles, {down} of them along M, make no rectangle", _REMEDY)
    return StreamKRun(
        TiledProduct(tiles, iterations, tile.depth, 1, down, tile.block), StreamKChoice(grid, streamed, splits), seconds
    )


def _items(node: Node, what: str, count: int) -> tuple[Node, ...]:
    items = node.sequence(what)
    if len(items) != count:
        raise node.wrong(f"{what} has {len(items)} numbers, expected {count}", _REMEDY)
    return items


def _whole(node: Node, what: str, least: int) -> int:
    value: Any = node.content
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise node.wrong(f"{what} cannot be {shortened(value)}", f"give a whole number of at least {least}")
    return value


def _number(node: Node, what: str, least: float = -math.inf) -> float:
    value: Any = node.content
    valid = isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value and abs(value) <= _MOST
    if not valid:
        bound = "" if least == -math.inf else f" of at least {least:g}"
        raise node.wrong(f"{what} cannot be {shortened(value)}", f"give a number{bound}")
    return float(value)
