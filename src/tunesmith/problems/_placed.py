"""A YAML file as values that know their place (`file:line`), so that a mistake can be shown where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tunesmith.records import UserError, Value, freeze

from ._keys import unknown_key

MOST_VALUES = 20_000
"""In one file, aliases counted each time: a small file can say a lot with them."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A scalar, a list of Placed or a dict of Placed, with the line at which it begins."""

    value: Any
    place: str

    def wrong(self, what: str, remedy: str) -> UserError:
        return UserError(self.place, what, remedy)

    def items(self, what: str) -> list[Placed]:
        """The entries of a list; UserError when it is none."""
        if not isinstance(self.value, list):
            raise self.wrong(f"{what} is not a list", f"write {what}: [..]")
        return self.value

    def pairs(self, what: str) -> dict[str, Placed]:
        """The entries of a mapping; UserError when it is none."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"{what} is not a mapping", f"write {what}: {{key: value}}")
        return self.value

    def word(self, what: str) -> str:
        if not isinstance(self.value, str) or not self.value:
            raise self.wrong(f"{what} is not a word", f"give {what} a name")
        return self.value

    def plain(self, what: str) -> Value:
        """A scalar or a list of scalars, frozen."""
        try:
            return freeze([item.plain(what) for item in self.value] if isinstance(self.value, list) else self.value)
        except TypeError as error:
            raise self.wrong(f"{what}: {error}", "give a number, a word, true or false, or a list of these") from error

    def fields(self, what: str, needed: tuple[str, ...], optional: tuple[str, ...]) -> Mapping[str, Placed]:
        """A mapping with all of the `needed` keys and none that is unknown; UserError otherwise."""
        pairs = self.pairs(what)
        for name, entry in pairs.items():
            if name not in (*needed, *optional):
                raise unknown_key(entry.place, name, (*needed, *optional), what)
        for name in needed:
            if name not in pairs:
                raise self.wrong(f"{what} has no {name}", f"it needs {', '.join(needed)}")
        return pairs


def read(path: Path, text: str) -> Placed:
    """A YAML text read from `path`; raises UserError for what is not YAML, or not what files of ours hold."""
    loader = yaml.SafeLoader(text)
    count = iter(range(MOST_VALUES))
    try:
        node = loader.get_single_node()
        if node is None:
            raise UserError(f"{path}:1", "the file is empty", "describe a kernel in it")
        return _placed(node, loader.construct_object, path, count)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UserError(f"{path}:{line}", f"not YAML: {error.problem}", "mend the indentation or the quoting") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path}:1", f"not YAML: {str(error)[:200]}", "mend the file") from None
    finally:
        loader.dispose()


def _placed(node: yaml.Node, scalar: Callable[[yaml.Node], object], path: Path, count: Iterator[int]) -> Placed:
    place = f"{path}:{node.start_mark.line + 1}"
    if next(count, None) is None:
        raise UserError(place, "the file holds too much", f"keep it below {MOST_VALUES} values")
    match node:
        case yaml.SequenceNode():
            return Placed([_placed(item, scalar, path, count) for item in node.value], place)
        case yaml.MappingNode():
            pairs: dict[str, Placed] = {}
            for key, value in node.value:
                name = str(_placed(key, scalar, path, count).value)
                if name in pairs:
                    raise UserError(f"{path}:{key.start_mark.line + 1}", f"{name} is there twice", "keep one of them")
                pairs[name] = _placed(value, scalar, path, count)
            return Placed(pairs, place)
        case _:
            return Placed(scalar(node), place)
