"""Writes a library logic as text, with one fact per line where it fits, so that people can read and compare logics."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import yaml

from tunesmith.records import Configuration, thaw

from .document import FORMAT, Document, NamedSolution, Regret, SizeRow
from .files import write_atomically
from .read import ORIGIN_KEYS, REST

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_WIDEST = 10**6
"""Characters of a line beyond which YAML's writer may break it."""

_COMMENTS = {
    "unfinished": "The run that wrote this was stopped; the same command goes on.",
    "solutions": "Only what is chosen for some size, and the fallback.",
    "fallback": "For sizes at which nothing else is legal: ran at the most sizes, best geometric mean.",
    "exact": "[sizes (then leading dimensions), solution, seconds, [low, high] of the 95 % interval, samples, {rate},"
    " {{other solution: seconds}}, [those of them that could not be told from it] if any]",
    "rest": "Other sizes: the solution that lost least at the nearest sizes above.",
    "texts": "The kernel's files, whole: a program that launches it needs no other.",
    "regret": "Time of what would be chosen for a size had it not been measured, over the best time known there.",
}


def write_logic(document: Document, path: Path) -> None:
    """Write a library logic atomically. Raises UserError if the file cannot be written."""
    write_atomically(path, dump(document))


def dump(document: Document) -> str:
    """The text of a library logic; `read` gives the same document back."""
    kind = document.problem_type
    texts = {name: value for name, value in kind.fields.items() if isinstance(value, str) and "\n" in value}
    sections = _sections(document, texts)
    comments = _COMMENTS | {"exact": _COMMENTS["exact"].format(rate=document.unit.rate)}
    parts = [_section(name, value, comments.get(name)) for name, value in sections.items()]
    if texts:
        parts += [f"# {_COMMENTS['texts']}\ntexts:\n", *(f"  {name}: {_block(text)}" for name, text in texts.items())]
    return "".join(parts)


def plain_of(document: Document) -> dict[str, object]:
    """The document as lists, mappings, numbers and texts; `read.document_of` gives it back."""
    return _sections(document, ())


def _sections(document: Document, texts: Collection[str]) -> dict[str, object]:
    """The parts of a file. Of the type's fields, `texts` are left out: they have a part of their own."""
    kind = document.problem_type
    return {
        "tunesmith-logic": FORMAT,
        **({"unfinished": document.unfinished} if document.unfinished else {}),
        "origin": {key: getattr(document.origin, key) for key in ORIGIN_KEYS},
        "problem-type": {
            "operation": kind.operation,
            "name": kind.name,
            "indices": _Line(kind.indices),
            "fields": _Record(_plain(kind.fields.without(texts))),
        },
        "solutions": [_solution(index, named) for index, named in enumerate(document.solutions)],
        "fallback": document.fallback,
        "exact": [_row(row) for row in document.rows],
        "rest": _Record(REST),
        "regret": _regret(document.regret) if document.regret else None,
    }


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
        {name: value}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDEST, default_flow_style=False
    )
    return f"# {comment}\n{text}" if comment else text


_NOT_IN_A_BLOCK = "[^\t\n -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
"""Characters that YAML changes or refuses where nothing is escaped: control characters and unusual line breaks.
It is compiled when it is used: that takes 5 ms, and a program that only loads a logic never needs it."""


def _block(text: str) -> str:
    """A text of several lines as a YAML block, each line after four spaces; as a quoted string if a block cannot hold
    the text.

    After YAML 1.1, section 9.3: the digit is the indentation, needed if the first line does not show it. `-` means that
    the last line has no line break, `+` that all line breaks at the end belong to the text.
    """
    if re.search(_NOT_IN_A_BLOCK, text):
        return str(yaml.dump(text, Dumper=_Dumper, default_style='"', allow_unicode=True, width=_WIDEST))
    indentation = "2" if text[0] in " \t\n" else ""
    end = "" if text.endswith("\n") else "-"
    end = "+" if text.endswith("\n\n") or text == "\n" else end
    lines = [f"    {line}" if line else "" for line in text.removesuffix("\n").split("\n")]
    return "\n".join([f"|{indentation}{end}", *lines, ""])


def _solution(index: int, named: NamedSolution) -> dict[str, object]:
    configuration = _Record(_plain(named.solution.configuration))
    return {"index": index, "name": named.name, "kernel": named.solution.kernel, "configuration": configuration}


def _row(row: SizeRow) -> _Line:
    time = row.estimate
    interval = _Line(bound if math.isfinite(bound) else None for bound in (time.low, time.high))
    others = _Record(row.others)
    ties = [_Line(row.ties)] if row.ties else []
    return _Line([_Line(row.where), row.solution, time.seconds, interval, time.count, row.rate, others, *ties])


def _regret(regret: Regret) -> dict[str, object]:
    sizes = [_Line([_Line(where), value]) for where, value in regret.sizes]
    worst_at = _Line(regret.worst_at)
    return {"geomean": regret.geomean, "worst": regret.worst, "worst-at": worst_at, "sizes": sizes}


def _plain(configuration: Configuration) -> dict[str, object]:
    return {name: thaw(value) for name, value in configuration.items()}
