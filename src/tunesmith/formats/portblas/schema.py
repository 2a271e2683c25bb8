"""The arrays of portBLAS's JSON: the keys of each, in the order in which they vary, and the fields that they set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from tunesmith.problems import unknown_key
from tunesmith.records import UserError

from .combination import Combination, RuleSet
from .json_locations import JsonNode

LARGEST = 1 << 16
"""The largest size of a kernel parameter."""


@dataclass(frozen=True)
class ValueFormat:
    """The form of a key's values: how to read a value, and an example of how to write it."""

    example: str
    length: int
    """How many numbers make a value: 1 for a number, 2 for rows and columns, 0 for a truth value."""

    def read(self, node: JsonNode) -> Any:
        match self.length, node.content:
            case 0, bool() | 0 | 1 as flag:
                return bool(flag)
            case 1, _:
                return self._size(node)
            case 2, (rows, columns):
                return self._size(rows), self._size(columns)
            case 2, tuple() as items:
                raise node.wrong(f"has {len(items)} numbers, expected 2", self.remedy)
        raise node.wrong(f"is {node.kind()}, expected {self.example}", self.remedy)

    @property
    def remedy(self) -> str:
        return f"write values such as {self.example}"

    def _size(self, node: JsonNode) -> int:
        match node.content:
            case bool():
                pass
            case int(size) if 1 <= size <= LARGEST:
                return size
        raise node.wrong(f"is {node.kind()}, expected a whole number from 1 to {LARGEST}", self.remedy)


_SIZE, _PAIR, _FLAG = ValueFormat("64", 1), ValueFormat("[4, 4]", 2), ValueFormat("true", 0)

KEYS: Mapping[str, tuple[str, ValueFormat]] = {
    "cache_line_size": ("cache_line", _SIZE),
    "work_item_sizes": ("item", _PAIR),
    "work_group_sizes": ("group", _PAIR),
    "block_level_tiles": ("top", _PAIR),
    "batch_level_tiles": ("batch", _PAIR),
    "double_buffer": ("double_buffer", _FLAG),
    "no_bank_conflict_a": ("pad_a", _FLAG),
    "no_bank_conflict_b": ("pad_b", _FLAG),
    "vectorization_size": ("vector", _SIZE),
}
"""The field of a combination for each key, and the form of its values."""

_FLAGS = ("double_buffer", "no_bank_conflict_a", "no_bank_conflict_b")


@dataclass(frozen=True)
class Array:
    """One of the root's arrays. Its `keys` vary in their order, the first slowest; vectorisation varies fastest."""

    name: str
    algorithm: str
    keys: tuple[str, ...]
    vectorizations: tuple[str, ...] = ("full",)
    ignored: tuple[str, ...] = ()
    """Keys that the original's files have in this array, but that have no effect."""
    modes: tuple[RuleSet, ...] = tuple(RuleSet)

    def generator(self, node: JsonNode, notes: list[str]) -> ElementLists:
        """The value lists of one element. Raises UserError for a missing key and for a wrong value."""
        remedy = f"write an object with {', '.join(self.keys)}"
        fields = node.object(remedy)
        notes += repeated(node)
        notes += (
            str(unknown_key(fields[name].location, name, self.keys, self.name))
            for name in fields
            if name not in self.keys and name not in self.ignored
        )
        if missing := [key for key in self.keys if key not in fields]:
            raise node.wrong(f"has no {missing[0]}", f"give it a list: {self.name} has {', '.join(self.keys)}")
        values = {}
        for key in self.keys:
            field, value_format = KEYS[key]
            listed = fields[key].items(f"write a list, such as [{value_format.example}]")
            values[field] = tuple(map(value_format.read, listed))
            if not listed:
                notes.append(str(fields[key].wrong("lists nothing", "nothing is generated here until it does")))
        return ElementLists(self, node.location, values)


@dataclass(frozen=True)
class ElementLists:
    """The lists of values that an element of an array gives, by field of a combination."""

    array: Array
    location: str
    values: Mapping[str, tuple[Any, ...]]

    def __len__(self) -> int:
        return prod(map(len, self.values.values())) * len(self.array.vectorizations)

    def combinations(self) -> Iterator[Combination]:
        """Every combination, valid or not, in the original's order."""
        for *values, vectorization in product(*self.values.values(), self.array.vectorizations):
            chosen = dict(zip(self.values, values, strict=True))
            yield Combination(self.array.algorithm, vectorization, **chosen)


def repeated(node: JsonNode) -> list[str]:
    """A note for each value that a later value of the same key replaces."""
    return [
        str(UserError(location, "gives a value again", "only the last one counts; keep one"))
        for location in node.repeated
    ]


_TILE = ("cache_line_size", "work_item_sizes", "work_group_sizes")

ARRAYS = (
    Array("local", "local", (*_TILE, "block_level_tiles", *_FLAGS, "vectorization_size")),
    Array(
        "non_local",
        "non_local",
        ("work_item_sizes", "work_group_sizes", "vectorization_size"),
        ("partial", "full"),
    ),
    Array(
        "non_local_interleaved",
        "interleaved",
        ("work_item_sizes", "work_group_sizes", "batch_level_tiles", "vectorization_size"),
        ignored=("cache_line_size",),
    ),
    Array("naive", "naive", ("cache_line_size",), ("none",)),
    Array("tall_skinny", "tall_skinny", (*_TILE, *_FLAGS, "vectorization_size"), modes=(RuleSet.OURS,)),
)
"""The arrays in the order of the list. The last is ours: the original has such kernels but no array for them."""
