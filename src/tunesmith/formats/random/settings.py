"""Settings of a selection of launch shapes: default shapes, and weights of distributions and types."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tunesmith.logic.random.decision import Weights
from tunesmith.problems import shortened, text_of
from tunesmith.records import LaunchShape, UserError

DEFAULTS_FILE = "config_defaults.json"
"""rocRAND's name for its default shapes."""

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
MOST_WEIGHT = 1e30
"""The largest weight, so that sums of weights stay far from the largest float."""
_COLUMNS = ("distribution", "type", "weight")


def read_defaults(path: Path) -> dict[str, LaunchShape]:
    """Default shapes by generator from rocRAND's `config_defaults.json`, or from a folder that holds this file.

    The file is `{"philox4_32_10": {"block_size": 256, "grid_size": 1024}, ...}`; comments and trailing commas are
    allowed. Raises UserError, with the generator, for anything else.
    """
    path = path / DEFAULTS_FILE if path.is_dir() else path
    remedy = 'write {"philox4_32_10": {"block_size": 256, "grid_size": 1024}}'
    found = {}
    for generator, sizes in _json(path, remedy).items():
        match sizes:
            case {"block_size": int(block), "grid_size": int(grid)} if min(block, grid) >= 1 and bool not in (
                type(block),
                type(grid),
            ):
                found[generator] = LaunchShape(block, grid)
            case _:
                raise UserError(f"{path}: {generator}", "has no block_size and grid_size of at least 1", remedy)
    return found


def read_weights(path: Path) -> Weights:
    """Weights from JSON or, if the suffix is `.csv`, from CSV. Weights are at least 0, and one is above 0.

    JSON: `{"uniform/float": 3, "philox4_32_10/normal/double": 1}`. CSV: columns distribution, type, weight, and an
    optional generator. Raises UserError with the location of a mistake.
    """
    pairs = list(_csv_weights(path) if path.suffix.lower() == ".csv" else _json_weights(path))
    if not any(weight for *_, weight in pairs):
        raise UserError(str(path), "gives no pair a weight above zero", "give one at least")
    found: dict[tuple[str, str, str], float] = {}
    for location, key, weight in pairs:
        if key in found:
            raise UserError(location, f"{'/'.join(filter(None, key))} is weighed twice", "keep one")
        found[key] = weight
    return found


Line = tuple[str, tuple[str, str, str], float]


def _json_weights(path: Path) -> Iterator[Line]:
    remedy = 'write {"uniform/float": 3, "philox4_32_10/normal/double": 1}'
    for name, weight in _json(path, remedy).items():
        location, parts = f"{path}: {name}", name.split("/")
        if len(parts) not in (2, 3) or not all(parts):
            raise UserError(location, "names no pair", remedy)
        generator = parts[0] if len(parts) == 3 else ""
        yield location, (generator, parts[-2], parts[-1]), _weight(weight, location)


def _csv_weights(path: Path) -> Iterator[Line]:
    table = csv.DictReader(io.StringIO(_text(path)), skipinitialspace=True)
    if missing := [name for name in _COLUMNS if name not in (table.fieldnames or ())]:
        raise UserError(f"{path}:1", f"has no column {missing[0]}", f"begin with {','.join(_COLUMNS)}")
    for row in table:
        location = f"{path}:{table.line_num}"
        distribution, value_type, weight = ((row[name] or "").strip() for name in _COLUMNS)
        if not distribution or not value_type:
            raise UserError(location, "names no pair", "give a distribution and a type")
        try:
            read = float(weight)
        except ValueError:
            read = math.nan
        yield location, ((row.get("generator") or "").strip(), distribution, value_type), _weight(read, location)


def _weight(value: object, location: str) -> float:
    usable = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MOST_WEIGHT
    if not usable:
        raise UserError(location, f"{shortened(value)} is no weight", f"give a number from zero to {MOST_WEIGHT:g}")
    return float(value)  # type: ignore[arg-type]  # `usable` means a number


def _json(path: Path, remedy: str) -> dict[str, Any]:
    text = _COMMENT.sub(lambda match: match[1] or "", _text(path))
    try:
        document = json.loads(re.sub(r",(\s*[}\]])", r"\1", text))
    except (ValueError, RecursionError) as error:
        raise UserError(str(path), f"is no JSON ({error})", remedy) from error
    if not isinstance(document, dict):
        raise UserError(str(path), "is no JSON object", remedy)
    return document


def _text(path: Path) -> str:
    return text_of(path, "text", remedy="name a file of text")
