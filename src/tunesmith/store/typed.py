"""Values out of a store's file, which may hold anything: each is of the type that it should have, or ValueError."""

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
"""What a field with this annotation takes. A truth value is no number."""


def typed(record: type[T], raw: Mapping[str, Any]) -> T:
    """A record of `raw`, whose simple fields have the types that the record says. Raises ValueError, TypeError for a
    field that is missing or unknown."""
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
    """A JSON object."""
    raw = json.loads(written) if isinstance(written, str) else None
    if not isinstance(raw, dict):
        raise ValueError("a document is no JSON object")
    return raw


def sound_type(made: ProblemType) -> ProblemType:
    """The same, if its words are words."""
    for word in (made.operation, made.name, *made.indices):
        _check(word, (str,), "a problem type")
    return made


def sound_problem(made: Problem) -> Problem:
    """The same, if it has a whole number for each index."""
    sound_type(made.type)
    for size in (*made.sizes, *made.leading):
        _check(size, (int,), "a size")
    if len(made.sizes) != len(made.type.indices) or min((*made.sizes, *made.leading), default=0) < 0:
        raise ValueError(f"{made.type.name} has no size {made}")
    return made


def _check(value: object, allowed: tuple[type, ...], name: str) -> None:
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
        raise ValueError(f"{name} is {value!r:.60}")
