"""Reads values from a store's file, which may hold anything. A value of the wrong type raises ValueError."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from tunesmith.records import Problem, ProblemType

T = TypeVar("T")

_SIMPLE: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "int | None": (int, type(None)),
}
"""The types of values, by a field's annotation. A bool does not count as a number."""


def typed(record: type[T], raw: Mapping[str, Any]) -> T:
    """A record with the fields `raw`. Raises ValueError if a simple field does not have the type that its annotation
    says, TypeError if a field is missing or unknown."""
    for field in fields(record):  # type: ignore[arg-type]  # a dataclass, as every record is
        if field.name in raw and (allowed := _SIMPLE.get(str(field.type))):
            _check(raw[field.name], allowed, field.name)
    return record(**raw)


def text(raw: Mapping[str, Any], name: str) -> str:
    _check(raw[name], (str,), name)
    return str(raw[name])


def number(raw: Mapping[str, Any], name: str) -> float:
    _check(raw[name], (float, int), name)
    return float(raw[name])


def document(written: object) -> dict[str, Any]:
    """The JSON object in a text. Raises ValueError for anything else."""
    raw = json.loads(written) if isinstance(written, str) else None
    if not isinstance(raw, dict):
        raise ValueError("a document is no JSON object")
    return raw


def sound_type(problem_type: ProblemType) -> ProblemType:
    """The same problem type. Raises ValueError unless its operation, name and indices are texts."""
    for word in (problem_type.operation, problem_type.name, *problem_type.indices):
        _check(word, (str,), "a problem type")
    return problem_type


def sound_problem(problem: Problem) -> Problem:
    """The same problem. Raises ValueError unless it has a whole number, not negative, for each index."""
    sound_type(problem.type)
    for size in (*problem.sizes, *problem.leading):
        _check(size, (int,), "a size")
    if len(problem.sizes) != len(problem.type.indices) or min((*problem.sizes, *problem.leading), default=0) < 0:
        raise ValueError(f"{problem.type.name} has no size {problem}")
    return problem


def _check(value: object, allowed: tuple[type, ...], name: str) -> None:
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise ValueError(f"{name} is {value!r:.60}")
