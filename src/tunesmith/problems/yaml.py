"""A YAML file as a tree whose nodes know their location (`file:line`). `flow` writes a value as a line.

Reading is safe: no Python objects, no file that expands without end, no key twice. Tuning files and the descriptions of
the user's own kernels are read with it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tunesmith.records import UserError, Value

from .files import text_of
from .keys import shortened, unknown_key
from .mistakes import Mistakes
from .yaml_scalars import EXPONENT, SCALARS, TAG, Scalar, ScalarError, scalar_value

MOST_NODES = 1_000_000
"""The most nodes of a file, counted with every alias expanded."""
DEEPEST = 40

# The C parser is ten times faster; every PyYAML that was installed from a wheel has it.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# YAML 1.1 reads 010 as octal and 1:30 as minutes and seconds.
_OTHER_BASE = re.compile(r"[-+]?(0[0-7_]+|[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?)")


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A value of the file: a scalar, a list of nodes, or a mapping. `places` are the locations of a mapping's keys."""

    location: str
    content: Scalar | tuple[Node, ...] | dict[str, Node]
    places: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_null(self) -> bool:
        return self.content is None

    def at(self, key: str) -> str:
        """The location of a key of this mapping; if the key is absent, the location of the mapping."""
        return self.places.get(key, self.location)

    def wrong(self, what: str, remedy: str) -> UserError:
        return UserError(self.location, what, remedy)

    def mapping(self, what: str) -> dict[str, Node]:
        if isinstance(self.content, dict):
            return self.content
        raise self.wrong(f"{what} is {self._kind()}, expected keys with values", "write lines of `key: value`")

    def fields(self, what: str, needed: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Node]:
        """The content as a mapping, which must have all `needed` keys and may have only `optional` ones beside them."""
        fields, known, mistakes = self.mapping(what), (*needed, *optional), Mistakes()
        for name in fields:
            if name not in known:
                mistakes.add(unknown_key(self.at(name), name, known, what))
        for name in needed:
            if name not in fields:
                mistakes.add(self.wrong(f"{what} has no {name}", f"it needs {', '.join(needed)}"))
        mistakes.tell()
        return fields

    def sequence(self, what: str) -> tuple[Node, ...]:
        if isinstance(self.content, tuple):
            return self.content
        raise self.wrong(f"{what} is {self._kind()}, expected a list", "write [a, b] or lines of `- item`")

    def word(self, what: str) -> str:
        if isinstance(self.content, str) and self.content:
            return self.content
        raise self.wrong(f"{what} is {self._kind()}, expected a word", f"give {what} a name")

    def plain(self, what: str) -> Value:
        """The value without locations: scalars and tuples of them."""
        match self.content:
            case tuple() as items:
                return tuple(item.plain(what) for item in items)
            case dict() | None:
                raise self.wrong(f"{what} is {self._kind()}, expected a value", "give it a value, or remove it")
            case scalar:
                return scalar

    def _kind(self) -> str:
        match self.content:
            case None:
                return "empty"
            case dict():
                return "a mapping"
            case tuple():
                return "a list"
            case scalar:
                return shortened(scalar)


def read_yaml(path: Path, tolerated: Mistakes | None = None) -> Node:
    """The file's only document. Raises UserError for a file that cannot be read or is not valid YAML of this kind.

    With `tolerated`, a key that is given twice has its last value, and a key that is no word becomes a word, as in
    other tools; both mistakes are added there.
    """
    return parse_yaml(text_of(path, "YAML"), str(path), tolerated)


def parse_yaml(text: str, name: str, tolerated: Mistakes | None = None) -> Node:
    """`read_yaml` for a text; locations begin with `name`."""
    try:
        refuse_depth(text, name)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        location = f"{name}:{mark.line + 1}" if mark else name
        raise UserError(location, f"not valid YAML ({error.problem or error.context})", "correct the syntax") from error
    except yaml.YAMLError as error:
        detail = " ".join(str(error).split())
        before = text.encode("utf-8", "surrogatepass")[: getattr(error, "position", 0) or 0]
        location = f"{name}:{before.count(10) + 1}"
        raise UserError(location, f"not valid YAML ({detail})", "correct the syntax") from error
    if root is None:
        raise UserError(f"{name}:1", "the file is empty", "write lines of `key: value`, as in the files in examples/")
    return _Tree(name, tolerated).node(root)


def node_of(value: Any, name: str) -> Node:
    """A tree of the values that JSON has, whose nodes all have the location `name`. Raises UserError for values that
    are nested too deeply."""
    return _node_of(value, name, 1)


def _node_of(value: Any, name: str, depth: int) -> Node:
    if not isinstance(value, (dict, list, tuple)):
        return Node(name, value)
    if depth > DEEPEST:
        raise _too_deep(name)
    if isinstance(value, dict):
        return Node(name, {key: _node_of(item, name, depth + 1) for key, item in value.items()})
    return Node(name, tuple(_node_of(item, name, depth + 1) for item in value))


def refuse_depth(text: str | bytes, name: str) -> None:
    """Refuse a text that is nested too deeply. Raises UserError and yaml.YAMLError.

    Only the parser's events are read, so nothing recurses: a recursion in PyYAML's C code would end the process.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            mark = event.start_mark
            location = f"{name}:{mark.line + 1}" if mark else name
            raise _too_deep(location)


def _too_deep(location: str) -> UserError:
    return UserError(location, f"nested more than {DEEPEST} deep", "nothing that is read here goes so deep")


class _Tree:
    """Converts PyYAML's nodes to ours. An alias gives the same node again, and its size counts again."""

    def __init__(self, name: str, tolerated: Mistakes | None) -> None:
        self._name, self._tolerated = name, tolerated
        self._converted: dict[yaml.Node, tuple[Node, int]] = {}
        self._open: set[yaml.Node] = set()

    def node(self, raw: yaml.Node) -> Node:
        return self._sized(raw)[0]

    def _sized(self, raw: yaml.Node) -> tuple[Node, int]:
        location = self._location(raw)
        if raw in self._open:
            raise UserError(location, "an alias stands inside of what it names", "write the value out")
        if raw not in self._converted:
            self._open.add(raw)
            self._converted[raw] = _, size = self._convert(raw, location)
            self._open.discard(raw)
            if size > MOST_NODES:
                raise UserError(location, f"aliases expand to more than {MOST_NODES:,} values", "use fewer aliases")
        return self._converted[raw]

    def _convert(self, raw: yaml.Node, location: str) -> tuple[Node, int]:
        match raw:
            case yaml.MappingNode(tag=tag) if tag == f"{TAG}map":
                return self._mapping(raw, location)
            case yaml.SequenceNode(tag=tag) if tag == f"{TAG}seq":
                items = [self._sized(item) for item in raw.value]
                return Node(location, tuple(node for node, _ in items)), 1 + sum(size for _, size in items)
            case yaml.ScalarNode(tag=tag) if tag in SCALARS:
                return Node(location, self._scalar(raw, location)), 1
        raise UserError(location, f"the tag {shortened(raw.tag)} is not read here", "write plain values without tags")

    def _scalar(self, raw: yaml.ScalarNode, location: str) -> Scalar:
        try:
            value = scalar_value(raw.tag, raw.value, is_plain=not raw.style)
        except ScalarError as error:
            raise UserError(location, str(error), error.remedy) from error
        if isinstance(value, (int, float)) and _OTHER_BASE.fullmatch(raw.value):
            what = f"{shortened(raw.value)} is the number {value} in YAML 1.1"
            raise UserError(location, what, "write a number without leading zeros and colons; quote it if it is a word")
        return value

    def _mapping(self, raw: yaml.MappingNode, location: str) -> tuple[Node, int]:
        own: dict[str, Node] = {}
        places: dict[str, str] = {}
        merged: list[Node] = []
        total = 1
        for raw_key, raw_value in raw.value:
            value, size = self._sized(raw_value)
            total += size
            if raw_key.tag == f"{TAG}merge":
                merged += value.content if isinstance(value.content, tuple) else [value]
                continue
            key = self._key(raw_key)
            if key in own:
                what = f"{shortened(key)} is given twice (first at {places[key]})"
                self._tolerate(UserError(self._location(raw_key), what, "keep one of the two"))
            own[key], places[key] = value, self._location(raw_key)
        for node in merged:
            for key, value in node.mapping("what << merges").items():
                own.setdefault(key, value)
                places.setdefault(key, node.at(key))
        return Node(location, own, places), total

    def _key(self, raw: yaml.Node) -> str:
        if isinstance(raw, yaml.ScalarNode) and raw.tag == f"{TAG}str":
            return str(raw.value)
        error = UserError(self._location(raw), f"{shortened(raw.value)} is no key", "give the name of a key")
        if not isinstance(raw, yaml.ScalarNode):
            raise error
        self._tolerate(error)
        return str(raw.value)

    def _tolerate(self, error: UserError) -> None:
        """Collect an error that may be tolerated; raise it otherwise."""
        if self._tolerated is None:
            raise error
        self._tolerated.add(error)

    def _location(self, raw: yaml.Node) -> str:
        return f"{self._name}:{raw.start_mark.line + 1}"


class _FlowDumper(yaml.SafeDumper):
    """Quotes the words that this project reads as numbers, and writes line breaks as escapes."""


_FlowDumper.add_implicit_resolver(f"{TAG}float", EXPONENT, list("-+0123456789"))
_FlowDumper.add_representer(
    str,
    lambda dumper, text: dumper.represent_scalar(f"{TAG}str", text, style='"' if not text.isprintable() else None),
)


def flow(value: object) -> str:
    """A value of Python's as YAML on one line, however long. `parse_yaml` reads the same value from it."""
    text: str = yaml.dump(
        value, Dumper=_FlowDumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=math.inf
    )
    return text.removesuffix("\n...\n").rstrip("\n")
