"""The file of tuned launch shapes that the library loads: by architecture, generator and, where they differ,
distribution and type.

The file is JSON:

    {"tunesmith-random": 1,
     "architectures": {"sm_90": {"philox4_32_10": {"shape": [256, 1024], "pairs": {"normal/float": [512, 2048]}}}}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tunesmith.problems import text_of
from tunesmith.records import LaunchShape, UserError, architecture_name

from ..files import write_atomically

FORMAT = 1
"""The number under `tunesmith-random`. It is raised when an older tunesmith could not read the file."""

FILE_NAME = "tunesmith_random.json"

_KEY = "tunesmith-random"
_REMEDY = "give a file that `tunesmith random select --out-dir` wrote"


@dataclass(frozen=True)
class TunedShapes:
    """A generator's shape, and the shapes of the distributions and types that have their own. `cautions` are sentences
    that say why to trust the choice less."""

    shape: LaunchShape
    pairs: Mapping[tuple[str, str], LaunchShape] = field(default_factory=dict)
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True)
class RandomTable:
    """Tuned shapes by architecture (as `architecture_name` spells it) and generator."""

    entries: Mapping[str, Mapping[str, TunedShapes]] = field(default_factory=dict)

    def shape(
        self, architecture: str, generator: str, distribution: str = "", value_type: str = ""
    ) -> LaunchShape | None:
        """The tuned shape of a distribution and type, else of the generator; None if the generator was not tuned."""
        tuned = self.entries.get(architecture_name(architecture), {}).get(generator)
        return tuned.pairs.get((distribution, value_type), tuned.shape) if tuned else None

    def __or__(self, newer: RandomTable) -> RandomTable:
        """The entries of both tables. If both have a generator on an architecture, the newer table's entry is kept."""
        architectures = sorted({*self.entries, *newer.entries})
        return RandomTable(
            {name: {**self.entries.get(name, {}), **newer.entries.get(name, {})} for name in architectures}
        )


def read_table(path: Path) -> RandomTable:
    """The table in a file. Raises UserError, which says what is wrong, for anything else."""
    try:
        document = json.loads(text_of(path, "JSON", remedy=_REMEDY))
    except (ValueError, RecursionError) as error:
        raise UserError(str(path), f"is no JSON ({error})", _REMEDY) from error
    version = document.get(_KEY) if isinstance(document, dict) else None
    if version != FORMAT:
        what = f"is format {version}, this tunesmith reads {FORMAT}" if version else f"has no key {_KEY}"
        raise UserError(str(path), what, _REMEDY)
    return RandomTable(
        {
            architecture: {
                generator: _tuned(tuned, f"{path}: {architecture}.{generator}")
                for generator, tuned in _object(generators, f"{path}: {architecture}").items()
            }
            for architecture, generators in _object(document.get("architectures"), f"{path}: architectures").items()
        }
    )


def write_table(table: RandomTable, path: Path) -> None:
    """Write the file atomically, with sorted names."""
    document = {
        _KEY: FORMAT,
        "architectures": {
            architecture: {generator: _plain(tuned) for generator, tuned in sorted(generators.items())}
            for architecture, generators in sorted(table.entries.items())
        },
    }
    text = json.dumps(document, indent=1)
    # A shape is written on one line: people read and compare the file.
    write_atomically(path, re.sub(r"\[\s+(\d+),\s+(\d+)\s+\]", r"[\1, \2]", text) + "\n")


def _plain(tuned: TunedShapes) -> dict[str, Any]:
    pairs = {"/".join(pair): [shape.block, shape.grid] for pair, shape in sorted(tuned.pairs.items())}
    cautions = {"cautions": list(tuned.cautions)} if tuned.cautions else {}
    return {"shape": [tuned.shape.block, tuned.shape.grid], **({"pairs": pairs} if pairs else {}), **cautions}


def _tuned(value: object, location: str) -> TunedShapes:
    fields = _object(value, location)
    pairs = {}
    for name, shape in _object(fields.get("pairs", {}), f"{location}.pairs").items():
        distribution, slash, value_type = name.partition("/")
        if not slash:
            raise UserError(f"{location}.pairs.{name}", "is no distribution/type", _REMEDY)
        pairs[distribution, value_type] = _shape(shape, f"{location}.pairs.{name}")
    cautions = fields.get("cautions", [])
    if not isinstance(cautions, list) or not all(isinstance(caution, str) for caution in cautions):
        raise UserError(f"{location}.cautions", "is no list of sentences", _REMEDY)
    return TunedShapes(_shape(fields.get("shape"), f"{location}.shape"), pairs, tuple(cautions))


def _shape(value: object, location: str) -> LaunchShape:
    match value:
        case [int(block), int(grid)] if block >= 1 and grid >= 1 and bool not in map(type, value):
            return LaunchShape(block, grid)
    raise UserError(location, "is no [block, grid] of whole numbers", _REMEDY)


def _object(value: object, location: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(location, "is no JSON object", _REMEDY)
    return value
