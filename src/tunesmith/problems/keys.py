"""The keys of a file as data: name, allowed values, default and meaning. The documentation is generated from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

from tunesmith.records import UserError, Value

from .mistakes import Mistakes


@dataclass(frozen=True, slots=True)
class Key:
    """One key that a file may hold.

    `takes` is one of the names in `_TAKES` ("truth value", "word" ...) or "one of", which needs `choices`. A default
    of None means that the key may be left out; the code that reads the key then decides.
    """

    name: str
    takes: str
    doc: str
    default: Value | None = None
    choices: tuple[Value, ...] = ()

    def check(self, value: Value, location: str) -> Value:
        """`value`, with a truth value as a bool. Raises UserError at `location` if the key does not take the value."""
        fits = value in self.choices if self.choices else _TAKES[self.takes](value)
        if not fits:
            raise UserError(location, f"{self.name} cannot be {shortened(value)}", f"give {self.remedy()}")
        return bool(value) if self.takes == "truth value" else value

    def remedy(self) -> str:
        return self.takes_text() if self.choices else f"a {self.takes}"

    def takes_text(self) -> str:
        return f"one of {', '.join(map(shortened, self.choices))}" if self.choices else self.takes


def checked(
    fields: Mapping[str, Value], keys: Iterable[Key], location: Callable[[str], str], where: str
) -> dict[str, Any]:
    """The value of every key, or its default if the fields have none.

    `location(name)` is the `file:line` of a field. Raises UserError for all unknown keys of `where`, and for all values
    that their keys do not take.
    """
    by_name, mistakes = {key.name: key for key in keys}, Mistakes()
    values: dict[str, Any] = {name: key.default for name, key in by_name.items()}
    for name, value in fields.items():
        with mistakes.caught():
            if name not in by_name:
                raise unknown_key(location(name), name, by_name, where)
            values[name] = by_name[name].check(value, location(name))
    mistakes.tell()
    return values


def shortened(value: object) -> str:
    """A value as the file would write it, shortened to 60 characters."""
    text = "[" + ", ".join(map(shortened, value[:9])) + "]" if isinstance(value, tuple) else str(value)
    return (text if len(text) <= 60 else text[:57] + "...") or "an empty word"


def unknown_key(location: str, name: str, known: Iterable[str], where: str) -> UserError:
    """The error for a key that `where` does not know. Its remedy names the most similar known key, or all of them."""

    names = list(known)
    similar = most_similar(name, names)
    remedy = f"did you mean {similar}?" if similar else f"it has {', '.join(names)}"
    return UserError(location, f"{where} has no {shortened(name)}", remedy)


def most_similar(name: str, known: Iterable[str]) -> str | None:
    """The known name whose spelling is most similar to `name`; None if none is similar."""
    from difflib import get_close_matches  # imported here since only mistakes need it

    names = list(known)
    matches = get_close_matches(name.lower(), [candidate.lower() for candidate in names], n=1, cutoff=0.6)
    return next((candidate for candidate in names if matches and candidate.lower() == matches[0]), None)


def is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e30 < value < 1e30


_TAKES: dict[str, Callable[[Value], bool]] = {
    "truth value": lambda value: isinstance(value, bool) or (is_integer(value) and value in (0, 1)),
    "word": lambda value: isinstance(value, str) and value != "",
    "list of words": lambda value: isinstance(value, tuple) and all(isinstance(item, str) for item in value),
    "number": _is_number,
    "positive number": lambda value: _is_number(value) and value > 0,
    "positive integer": lambda value: is_integer(value) and value >= 1,
    "natural number": lambda value: is_integer(value) and value >= 0,
    "list of natural numbers": lambda value: all(
        is_integer(item) and item >= 0 for item in (value if isinstance(value, tuple) else (value,))
    ),
}
