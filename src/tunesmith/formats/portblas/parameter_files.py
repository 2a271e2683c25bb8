"""portBLAS's parameter files (`tools/auto_tuner/gen/*.json`): which GEMM kernels to try.

Each element of an array lists values for its keys; every valid combination of these values is a kernel
(docs/portblas.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tunesmith.problems import unknown_key
from tunesmith.records import Rejection

from .combination import Combination, RuleSet
from .json_locations import JsonNode, read_json
from .named_sets import ENVIRONMENT, PortBlasSet, find_set, list_sets
from .rules import rejection
from .schema import ARRAYS, Array, ElementLists, repeated

ABOUT = "about"
"""A root key of ours: a sentence on what the file is for. The original ignores it."""
MOST_COMBINATIONS = 100_000


@dataclass(frozen=True, slots=True)
class RejectedCombination:
    """A combination that breaks a rule, and the location of the element that lists it."""

    location: str
    combination: Combination
    rejection: Rejection


@dataclass(frozen=True, slots=True)
class ArrayCounts:
    """Counts of an array's combinations: all, the valid ones, and the valid ones that equal no earlier combination.

    `generators` counts all and valid combinations for each element.
    """

    raw: int
    valid: int
    unique: int
    generators: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class ParameterFile:
    """The content of a parameter file. `counts` has every array of the file; `notes` are sentences with locations."""

    path: Path
    mode: RuleSet
    about: str
    combinations: tuple[Combination, ...]
    rejected: tuple[RejectedCombination, ...]
    notes: tuple[str, ...]
    counts: Mapping[str, ArrayCounts]


def read(path: Path, mode: RuleSet) -> ParameterFile:
    """The file's combinations in the original's order; a repeated combination counts at its first position only.

    Unknown keys are noted. Raises UserError, with line, column and key, for a file of another kind, a missing key or
    an impossible value.
    """
    notes: list[str] = []
    root = read_json(path)
    remedy = f"write an object with arrays: {', '.join(array.name for array in ARRAYS)}"
    fields = root.object(remedy)
    notes += repeated(root)
    known_keys = (*(array.name for array in ARRAYS), ABOUT)
    notes += (
        str(unknown_key(node.location, name, known_keys, "the file"))
        for name, node in fields.items()
        if name not in known_keys
    )
    if not any(array.name in fields for array in ARRAYS):
        notes.append(str(root.wrong("has none of the arrays", remedy)))
    generators = {
        array.name: tuple(_generators(array, fields[array.name], mode, notes))
        for array in ARRAYS
        if array.name in fields
    }
    total = sum(len(generator) for found in generators.values() for generator in found)
    if total > MOST_COMBINATIONS:
        what = f"makes {total:,} combinations, more than {MOST_COMBINATIONS:,}"
        raise root.wrong(what, "list fewer values, or split it into several files")
    return _combined(path, mode, _about(fields.get(ABOUT)), generators, notes)


def _generators(array: Array, node: JsonNode, mode: RuleSet, notes: list[str]) -> Iterator[ElementLists]:
    for item in node.items(f"write a list of objects with {', '.join(array.keys)}"):
        generator = array.generator(item, notes)
        if mode in array.modes:
            yield generator
    if mode not in array.modes:
        notes.append(str(node.wrong("is not the original's", f"it is left out in mode {mode}")))


def _combined(
    path: Path, mode: RuleSet, about: str, generators: Mapping[str, tuple[ElementLists, ...]], notes: list[str]
) -> ParameterFile:
    unique: dict[Combination, None] = {}
    rejected: list[RejectedCombination] = []
    counts = {}
    for name, found in generators.items():
        before, per_generator = len(unique), []
        for generator in found:
            valid = 0
            for combination in generator.combinations():
                if reason := rejection(combination, mode):
                    rejected.append(RejectedCombination(generator.location, combination, reason))
                else:
                    valid += 1
                    unique[combination] = None
            per_generator.append((len(generator), valid))
        raw, valid = (sum(column) for column in zip(*per_generator, strict=True)) if per_generator else (0, 0)
        counts[name] = ArrayCounts(raw, valid, len(unique) - before, tuple(per_generator))
    return ParameterFile(path, mode, about, tuple(unique), tuple(rejected), tuple(notes), counts)


def _about(node: JsonNode | None) -> str:
    if node is None:
        return ""
    if not isinstance(node.content, str):
        raise node.wrong(f"is {node.kind()}, expected text", "say what the file is for")
    return node.content


__all__ = [
    "ENVIRONMENT",
    "ArrayCounts",
    "Combination",
    "ParameterFile",
    "PortBlasSet",
    "RejectedCombination",
    "RuleSet",
    "find_set",
    "list_sets",
    "read",
]
