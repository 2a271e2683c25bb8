"""A configuration: one value for each parameter of a kernel."""

from __future__ import annotations

import json
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import TypeVar, overload

Value = bool | int | float | str | tuple["Value", ...]

T = TypeVar("T")
_encoded = json.JSONEncoder(sort_keys=True).encode


def freeze(value: object) -> Value:
    """A value from a file (a scalar, or a list of such values) as a hashable value. Raises TypeError for anything
    else."""
    if isinstance(value, (list, tuple)):
        return tuple(freeze(item) for item in value)
    if isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a parameter's value is a number, a word, a truth value or a list of these, not {value!r}")


def thaw(value: Value) -> object:
    """The inverse of `freeze`: tuples become lists, for a file."""
    return [thaw(item) for item in value] if isinstance(value, tuple) else value


class Configuration(Mapping[str, Value]):
    """A frozen, hashable mapping from parameter names to values.

    Equality ignores the order of names. Iteration keeps the order, so that tables show parameters as the space lists
    them. True and 1 are different values here, unlike in a plain dict, because they differ in a file.
    """

    __slots__ = ("_hash", "_text", "_values")

    def __init__(self, values: Mapping[str, Value] | Iterable[tuple[str, Value]] = ()) -> None:
        self._values: dict[str, Value] = dict(values)
        # Found out when they are first asked for: most configurations are rejected before anything compares them.
        self._text: str | None = None
        self._hash: int | None = None

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    # What follows is in `Mapping` too, where it asks `__getitem__` for every name. These are asked millions of times.

    def __contains__(self, name: object) -> bool:
        return name in self._values

    @overload
    def get(self, name: str, /) -> Value | None: ...

    @overload
    def get(self, name: str, /, default: Value) -> Value: ...

    @overload
    def get(self, name: str, /, default: T) -> Value | T: ...

    def get(self, name: str, /, default: object = None) -> object:
        return self._values.get(name, default)

    def keys(self) -> KeysView[str]:
        return self._values.keys()

    def values(self) -> ValuesView[Value]:
        return self._values.values()

    def items(self) -> ItemsView[str, Value]:
        return self._values.items()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.to_json())
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and (self is other or self.to_json() == other.to_json())

    def __or__(self, other: Mapping[str, Value]) -> Configuration:
        """A configuration in which the values of `other` replace ours."""
        return Configuration({**self._values, **other}) if other else self

    def __repr__(self) -> str:
        return "Configuration(" + ", ".join(f"{name}={value!r}" for name, value in self._values.items()) + ")"

    def __reduce__(self) -> tuple[type[Configuration], tuple[dict[str, Value]]]:
        return Configuration, (self._values,)

    def only(self, names: Iterable[str]) -> Configuration:
        """The part with these names, as far as they are present, in the order of `names`."""
        return Configuration({name: self._values[name] for name in names if name in self._values})

    def without(self, names: Iterable[str]) -> Configuration:
        dropped = set(names)
        return Configuration({name: value for name, value in self._values.items() if name not in dropped})

    def integer(self, name: str) -> int:
        value = self._values[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} is {value!r}, expected a whole number")
        return value

    def integers(self, name: str) -> tuple[int, ...]:
        value = self._values[name]
        if not isinstance(value, tuple) or any(isinstance(item, bool) or not isinstance(item, int) for item in value):
            raise TypeError(f"{name} is {value!r}, expected a list of whole numbers")
        return value  # type: ignore[return-value]  # narrowed item by item above

    def flag(self, name: str) -> bool:
        value = self._values[name]
        if not isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}, expected True or False")
        return value

    def word(self, name: str) -> str:
        value = self._values[name]
        if not isinstance(value, str):
            raise TypeError(f"{name} is {value!r}, expected a word")
        return value

    def to_json(self) -> str:
        """Canonical text: names are sorted, so that equal configurations give equal text."""
        if self._text is None:
            self._text = _encoded(self._values)
        return self._text

    @staticmethod
    def from_json(text: str) -> Configuration:
        return Configuration({name: freeze(value) for name, value in json.loads(text).items()})
