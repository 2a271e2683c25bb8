"""Reads YAML that a program wrote, of tens of megabytes, as plain values that know their lines.

The parser's events are read one by one, which takes a seventh of the time and a tenth of the memory of PyYAML's nodes.
Lists and mappings are `MarkedList` and `MarkedDict`: ordinary ones that also know where their items begin.
"""

from __future__ import annotations

import math
import re
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tunesmith.problems import MOST_GENERATED_BYTES, bytes_of, shortened
from tunesmith.problems.yaml import DEEPEST
from tunesmith.problems.yaml_scalars import SCALARS, TAG, ScalarError, scalar_value
from tunesmith.records import UserError

MOST_VALUES = 20_000_000
"""The most values of a file."""
MOST_ALIASED = 200_000
"""The most values that aliases may add to a file, beside four times the values that are written out."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVERS: dict[str, list[tuple[str, re.Pattern[str]]]] = yaml.SafeLoader.yaml_implicit_resolvers
_TAGS = {yaml.SequenceStartEvent: (None, "!", f"{TAG}seq"), yaml.MappingStartEvent: (None, "!", f"{TAG}map")}


class MarkedList(list[Any]):
    """A list that knows its line, and the lines of its items if they are on others."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: array[int] | None = None

    def line_of(self, index: int) -> int:
        return self.lines[index] if self.lines is not None else self.line


class MarkedDict(dict[Any, Any]):
    """A mapping that knows its line, and the lines of its keys if they are on others."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: array[int] | None = None

    def line_of(self, key: object) -> int:
        """The line of a key; if the key is absent, the line of the mapping."""
        if self.lines is None or key not in self:
            return self.line
        return self.lines[list(self).index(key)]


def read_marked(path: Path, what: str) -> Any:
    """The file's only document. `what` names the contents in remedies, such as `library logic`.

    Raises UserError, with the line, for a file that cannot be read, is no YAML of plain values, has a key twice, is
    nested more than `DEEPEST` deep, or is too large.
    """
    raw = bytes_of(path, "YAML", MOST_GENERATED_BYTES, f"name a file of {what}")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(_location(path, raw, error.start), "is no UTF-8", "save the file as UTF-8 text") from error
    reader = _EventReader(str(path), what)
    try:
        for event in yaml.parse(raw, Loader=_LOADER):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        what_is_wrong = f"not valid YAML ({error.problem or error.context})"
        raise UserError(f"{path}:{line}", what_is_wrong, "correct the syntax") from error
    except yaml.reader.ReaderError as error:
        position = error.position if isinstance(error.position, int) else 0
        raise UserError(
            _location(path, raw, position), f"not valid YAML ({error.reason})", "remove the character"
        ) from error
    except yaml.YAMLError as error:
        raise UserError(f"{path}:1", f"not valid YAML ({error})", "correct the syntax") from error
    return reader.document()


def _location(path: Path, raw: bytes, position: int) -> str:
    line = raw.count(b"\n", 0, position) + 1
    return f"{path}:{line}"


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come. `size` counts its values, with all aliases written out."""

    content: MarkedList | MarkedDict
    is_list: bool
    anchor: str | None
    lines: array[int]
    key: Any = None
    has_key: bool = False
    size: int = 1


@dataclass(slots=True)
class _EventReader:
    """Makes plain values of a parser's events."""

    name: str
    what: str
    roots: list[Any] = field(default_factory=list)
    open: list[_Open] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    written: int = 0
    expanded: int = 0
    plain: dict[str, Any] = field(default_factory=dict)
    """The values of unquoted scalars. Most of them occur many times."""

    def take(self, event: Any) -> None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            value = self._scalar(event)
            if event.anchor:
                self.anchors[event.anchor] = value, 1
            self._add(value, 1, event.start_mark.line + 1)
        elif kind is yaml.SequenceStartEvent or kind is yaml.MappingStartEvent:
            self._begin(event, MarkedList if kind is yaml.SequenceStartEvent else MarkedDict)
        elif kind is yaml.SequenceEndEvent or kind is yaml.MappingEndEvent:
            self._end()
        elif kind is yaml.AliasEvent:
            self._alias(event)

    def document(self) -> Any:
        if not self.roots:
            raise UserError(f"{self.name}:1", "the file is empty", f"give a file of {self.what}")
        if len(self.roots) > 1:
            raise UserError(f"{self.name}:1", f"the file has {len(self.roots)} documents", "give one")
        return self.roots[0]

    def _begin(self, event: Any, kind: type[MarkedList] | type[MarkedDict]) -> None:
        if event.tag not in _TAGS[type(event)]:
            raise self._wrong(event, f"the tag {shortened(event.tag)} is not read here", "write it without a tag")
        if len(self.open) >= DEEPEST:
            raise self._wrong(event, f"nested more than {DEEPEST} deep", "nothing that is read here goes so deep")
        if self.open and not self.open[-1].is_list and not self.open[-1].has_key:
            raise self._wrong(event, "a list or a mapping is no key", "give the name of a key")
        if event.anchor:
            # An alias to what is still open would stand inside of what it names.
            self.anchors[event.anchor] = None, 0
        self.open.append(_Open(kind(event.start_mark.line + 1), kind is MarkedList, event.anchor, array("I")))

    def _end(self) -> None:
        done = self.open.pop()
        content = done.content
        # Lines grow, so that the last one tells whether all are the first.
        if done.lines and done.lines[-1] != content.line:
            content.lines = done.lines
        if done.anchor:
            self.anchors[done.anchor] = content, done.size
        self._add(content, done.size, content.line)

    def _alias(self, event: Any) -> None:
        value, size = self.anchors.get(event.anchor, (None, 1))
        if size == 0:
            raise self._wrong(event, "an alias stands inside of what it names", "write the value out")
        self.expanded += size
        if self.expanded > MOST_ALIASED + 4 * self.written:
            raise self._wrong(event, f"aliases expand to {self.expanded:,} values", "use fewer aliases")
        self._add(value, size, event.start_mark.line + 1)

    def _add(self, value: Any, size: int, line: int) -> None:
        """Put a value into the innermost list or mapping."""
        self.written += 1
        if self.written > MOST_VALUES:
            raise UserError(f"{self.name}:{line}", f"more than {MOST_VALUES:,} values", "split the file")
        if not self.open:
            self.roots.append(value)
            return
        inner = self.open[-1]
        inner.size += size
        if inner.is_list:
            inner.lines.append(line)
            inner.content.append(value)  # type: ignore[union-attr]  # a list by is_list
        elif inner.has_key:
            inner.content[inner.key] = value
            inner.has_key = False
        else:
            self._key(inner, value, line)

    def _key(self, inner: _Open, value: Any, line: int) -> None:
        if isinstance(value, (MarkedList, MarkedDict)):
            raise UserError(f"{self.name}:{line}", "a list or a mapping is no key", "give the name of a key")
        if value in inner.content:
            raise UserError(f"{self.name}:{line}", f"{shortened(value)} is given twice", "keep one of the two")
        inner.key, inner.has_key = value, True
        inner.lines.append(line)

    def _scalar(self, event: Any) -> Any:
        text: str = event.value
        if event.tag is None or event.tag == "!":
            if not event.implicit[0]:
                return text
            value = self.plain.get(text, self)
            if value is self:
                value = self.plain[text] = self._resolved(event, _implicit_tag(text))
            return value
        return self._resolved(event, event.tag)

    def _resolved(self, event: Any, tag: str) -> Any:
        text = str(event.value)
        if tag not in SCALARS:
            raise self._wrong(event, f"the tag {shortened(tag)} is not read here", "write plain values without tags")
        try:
            return scalar_value(tag, text, is_plain=tag == f"{TAG}str" and not event.style)
        except ScalarError as error:
            raise self._wrong(event, str(error), error.remedy) from error

    def _wrong(self, event: Any, what: str, remedy: str) -> UserError:
        return UserError(f"{self.name}:{event.start_mark.line + 1}", what, remedy)


def _implicit_tag(text: str) -> str:
    """The tag of an unquoted scalar, by YAML 1.1's rules."""
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return str(tag)
    return f"{TAG}str"


@dataclass(frozen=True, slots=True)
class Located:
    """A value of a file, its line, and its name in messages, such as `Library.table[3]`; the whole file has none."""

    value: Any
    file: str
    line: int
    name: str

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}"

    def wrong(self, what: str, remedy: str) -> UserError:
        return UserError(self.location, f"{self.name or 'the file'}: {what}", remedy)

    def get(self, key: str) -> Located | None:
        """The value of a key of this mapping; None if the key is absent."""
        content = self.mapping()
        if key not in content:
            return None
        return Located(content[key], self.file, content.line_of(key), f"{self.name}.{key}" if self.name else key)

    def need(self, key: str) -> Located:
        """The value of a key that this mapping must have."""
        found = self.get(key)
        if found is None:
            raise self.wrong(f"{key} is missing", f"write {key} there")
        return found

    def items(self) -> list[Located]:
        content = self.sequence()
        return [
            Located(value, self.file, content.line_of(index), f"{self.name}[{index}]")
            for index, value in enumerate(content)
        ]

    def item(self, index: int, name: str = "") -> Located:
        """An item of this list, which must be long enough."""
        content = self.sequence()
        return Located(content[index], self.file, content.line_of(index), name or f"{self.name}[{index}]")

    def sequence(self) -> MarkedList:
        if not isinstance(self.value, MarkedList):
            raise self.wrong(f"{self._shown()} is no list", "write a list")
        return self.value

    def mapping(self) -> MarkedDict:
        if not isinstance(self.value, MarkedDict):
            raise self.wrong(f"{self._shown()} is no mapping", "write keys with values")
        return self.value

    def word(self) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise self.wrong(f"{self._shown()} is no word", "write a word")
        return self.value

    def whole(self, low: int, high: int) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int) or not low <= self.value <= high:
            raise self.wrong(f"{self._shown()} is no whole number from {low} to {high}", "write such a number")
        return self.value

    def number(self) -> float:
        """A number that is not NaN; it may be infinite."""
        try:
            number = math.nan if isinstance(self.value, (bool, str)) else float(self.value)
        except (TypeError, OverflowError):
            number = math.nan
        if math.isnan(number):
            raise self.wrong(f"{self._shown()} is no number", "write a number")
        return number

    def flag(self) -> bool:
        if self.value not in (True, False, 0, 1):
            raise self.wrong(f"{self._shown()} is no truth value", "write true or false")
        return bool(self.value)

    def _shown(self) -> str:
        match self.value:
            case None:
                return "null"
            case MarkedList():
                return "a list"
            case MarkedDict():
                return "a mapping"
            case value:
                return shortened(value)
