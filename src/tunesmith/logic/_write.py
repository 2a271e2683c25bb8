"""A library logic as text: one line a fact where it fits, so that a person can read and compare it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml

from tunesmith.records import Configuration, thaw

from ._document import FORMAT, Document, Named, Regret, Row
from ._files import write_atomically
from ._read import ORIGIN_KEYS, REST

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_COMMENTS = {
    "solutions": "Only what is chosen for some size, and the fallback.",
    "fallback": "For sizes at which nothing else is legal: ran at the most sizes, best geometric mean.",
    "exact": "[sizes (then leading dimensions), solution, seconds, [low, high] of the 95 % interval, samples, {rate},"
    " {{other solution: seconds}}]",
    "rest": "Other sizes: the solution that lost least at the nearest sizes above.",
    "regret": "Time of what would be chosen for a size had it not been measured, over the best time known there.",
}


def write_logic(document: Document, path: Path) -> None:
    """Write a library logic atomically; UserError when the place cannot be written."""
    write_atomically(path, dump(document))


def dump(document: Document) -> str:
    """The text of a library logic; `read` gives the same document back."""
    kind = document.problem_type
    sections: dict[str, object] = {
        "tunesmith-logic": FORMAT,
        "origin": {key: getattr(document.origin, key) for key in ORIGIN_KEYS},
        "problem-type": {
            "operation": kind.operation,
            "name": kind.name,
            "indices": _Line(kind.indices),
            "fields": _Record(_plain(kind.fields)),
        },
        "solutions": [_solution(place, named) for place, named in enumerate(document.solutions)],
        "fallback": document.fallback,
        "exact": [_row(row) for row in document.rows],
        "rest": _Record(REST),
        "regret": _regret(document.regret) if document.regret else None,
    }
    comments = _COMMENTS | {"exact": _COMMENTS["exact"].format(rate=document.unit.rate)}
    return "".join(_section(name, value, comments.get(name)) for name, value in sections.items())


class _Line(list[Any]):
    """A list that is written on one line."""


class _Record(dict[Any, Any]):
    """A mapping that is written on one line."""


class _Dumper(_DUMPER):  # type: ignore[misc]  # one of two classes, chosen above
    def ignore_aliases(self, data: object) -> bool:
        return True


_LIST, _MAP = "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"
_Dumper.add_representer(_Line, lambda dumper, data: dumper.represent_sequence(_LIST, data, flow_style=True))
_Dumper.add_representer(_Record, lambda dumper, data: dumper.represent_mapping(_MAP, data.items(), flow_style=True))


def _section(name: str, value: object, comment: str | None) -> str:
    text: str = yaml.dump(
        {name: value}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6, default_flow_style=False
    )
    return f"# {comment}\n{text}" if comment else text


def _solution(place: int, named: Named) -> dict[str, object]:
    configuration = _Record(_plain(named.solution.configuration))
    return {"index": place, "name": named.name, "kernel": named.solution.kernel, "configuration": configuration}


def _row(row: Row) -> _Line:
    time = row.estimate
    interval = _Line(bound if math.isfinite(bound) else None for bound in (time.low, time.high))
    others = _Record(row.others)
    return _Line([_Line(row.where), row.solution, time.seconds, interval, time.count, row.rate, others])


def _regret(regret: Regret) -> dict[str, object]:
    sizes = [_Line([_Line(where), value]) for where, value in regret.sizes]
    worst_at = _Line(regret.worst_at)
    return {"geomean": regret.geomean, "worst": regret.worst, "worst-at": worst_at, "sizes": sizes}


def _plain(configuration: Configuration) -> dict[str, object]:
    return {name: thaw(value) for name, value in configuration.items()}
