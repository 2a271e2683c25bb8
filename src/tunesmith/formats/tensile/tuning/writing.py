"""Writes a translated tuning file as text in our form, with comments on what was translated, held and dropped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from tunesmith.problems import Node
from tunesmith.records import printable

from .listing import plain_or_text
from .record import TensileImport, Treatment

WIDTH = 120
_SECTIONS = {
    "GlobalParameters": ("global parameter",),
    "LibraryLogic": ("library logic key", "key at the top"),
}
"""The key at the top above which the comments of a section stand; all others stand above BenchmarkProblems."""


def text_of_import(root: Node, imported: TensileImport, source: str) -> str:
    """The file in our form as YAML. `source` is the name of the file that it was made from."""
    parts = [*_comments([f"Made from {source}.", f"Its form was {imported.dialect}."])]
    remaining = list(imported.treatments)
    content = root.content if isinstance(root.content, dict) else {}
    placed = [name for name in ("GlobalParameters", "BenchmarkProblems", "LibraryLogic") if name in content]
    others = {section for name in placed for section in _SECTIONS.get(name, ())}
    for name in placed:
        sections = _SECTIONS.get(name)
        own = [t for t in remaining if (t.section in sections if sections else t.section not in others)]
        parts += ["", *_comments(map(_sentence, own))]
        if name == "BenchmarkProblems":
            parts += _comments(f"line {_line(where)}: {sentence}" for where, sentence in imported.remarks)
            parts += _comments(
                f"line {_line(problem.location)}: {problem.name} is left out, since no kernel computes it: "
                f"{problem.reason} ({problem.detail})"
                for problem in imported.rejected
            )
        parts.append(_yaml({name: _plain(content[name])}))
    return "\n".join(parts) + "\n"


def _sentence(treatment: Treatment) -> str:
    values = ", ".join(str(_shown(value)) for value in treatment.written[:8])
    more = ", ..." if len(treatment.written) > 8 else ""
    written = f" [{values}{more}]" if treatment.written else ""
    where = f"line {_line(treatment.location)}"
    return f"{where}: {treatment.section} {treatment.name}{written} is {treatment.fate}: {treatment.becomes}"


def _line(location: str) -> str:
    return location.rpartition(":")[2]


def _comments(sentences: Any) -> Iterator[str]:
    return (f"# {printable(str(sentence))}" for sentence in sentences)


def _shown(value: object) -> object:
    return [_shown(item) for item in value] if isinstance(value, tuple) else value


def _plain(node: Node) -> object:
    match node.content:
        case dict() as fields:
            return {name: _plain(value) for name, value in fields.items()}
        case tuple() as items:
            return [_plain(item) for item in items]
        case _:
            return None if node.is_null else plain_or_text(node)


class _PlainDumper(yaml.SafeDumper):
    """Writes every list out, also one that occurs again."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _yaml(content: object) -> str:
    """YAML with the innermost lists in brackets."""
    text = yaml.dump(
        content, Dumper=_PlainDumper, sort_keys=False, default_flow_style=None, width=WIDTH, allow_unicode=True
    )
    return str(text).rstrip("\n")
