"""JSON values with their locations: the standard library checks the text, a walk over its tokens finds locations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tunesmith.problems import shortened, text_of
from tunesmith.records import UserError

# Commas and colons are not needed, since the text is known to be JSON.
_TOKEN = re.compile(r'[{}\[\]]|"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+')
_KINDS: dict[type, str] = {dict: "an object", tuple: "a list", type(None): "null"}

Scalar = None | bool | int | float | str


@dataclass(frozen=True, slots=True, eq=False)
class JsonNode:
    """A value: a scalar, a list of nodes, or an object.

    `location` is `file:line:column: key`. If an object gives a key several values, the last value counts, as in
    Python's `json`, and `repeated` holds the locations of the others.
    """

    location: str
    content: Scalar | tuple[JsonNode, ...] | dict[str, JsonNode]
    repeated: tuple[str, ...] = field(default=())

    def wrong(self, what: str, remedy: str) -> UserError:
        return UserError(self.location, what, remedy)

    def object(self, remedy: str) -> dict[str, JsonNode]:
        if isinstance(self.content, dict):
            return self.content
        raise self.wrong(f"is {self.kind()}, expected an object", remedy)

    def items(self, remedy: str) -> tuple[JsonNode, ...]:
        if isinstance(self.content, tuple):
            return self.content
        raise self.wrong(f"is {self.kind()}, expected a list", remedy)

    def kind(self) -> str:
        return _KINDS.get(type(self.content)) or shortened(json.dumps(self.content))


def read_json(path: Path) -> JsonNode:
    """The file's value. Raises UserError, with line and column, for a file that cannot be read or is no JSON."""
    text, name = text_of(path, "JSON"), str(path)
    try:
        json.loads(text)
        return _JsonWalk(text, name).value("")
    except json.JSONDecodeError as error:
        location = f"{name}:{error.lineno}:{error.colno}"
        raise UserError(location, f"not valid JSON ({error.msg})", "correct the syntax") from error
    except RecursionError as error:
        raise UserError(name, "nested too deeply", "nothing that is read here goes deeper than four lists") from error
    except ValueError as error:
        raise UserError(name, f"not readable JSON ({error})", "write numbers of a few digits") from error


class _JsonWalk:
    """A walk over a text that is known to be JSON, so that every token is where it may be."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._tokens = self._placed(text)

    def value(self, path: str) -> JsonNode:
        return self._value(*next(self._tokens), path)

    def _value(self, token: str, location: str, path: str) -> JsonNode:
        node_location = f"{location}: {path}" if path else location
        if token == "[":
            return JsonNode(node_location, tuple(self._items(path)))
        if token != "{":
            return JsonNode(node_location, json.loads(token))
        fields: dict[str, JsonNode] = {}
        repeated = []
        while (token := next(self._tokens)[0]) != "}":
            key = json.loads(token)
            value = self.value(f"{path}.{key}" if path else key)
            if key in fields:
                repeated.append(value.location)
            fields[key] = value
        return JsonNode(node_location, fields, tuple(repeated))

    def _items(self, path: str) -> Iterator[JsonNode]:
        for number, (token, location) in enumerate(self._tokens):
            if token == "]":
                return
            yield self._value(token, location, f"{path}[{number}]")

    def _placed(self, text: str) -> Iterator[tuple[str, str]]:
        line, start = 1, 0
        for found in _TOKEN.finditer(text):
            # No token holds a newline; only the white space between tokens does.
            between = text.count("\n", start, found.start())
            if between:
                line += between
                start = text.rindex("\n", start, found.start()) + 1
            yield found[0], f"{self._name}:{line}:{found.start() - start + 1}"
