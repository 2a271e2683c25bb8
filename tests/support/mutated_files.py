"""Files with a part removed, changed, cut short or scribbled over, for the tests of readers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

nested: Any = 1
for _ in range(50):
    nested = [nested]

VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 7, 1.5, -0.5, math.nan, math.inf, -math.inf, 1e-320, 1e308, 65536, 2**31, 2**63,
    10**30, 10**400, "", " ", "x", "1", "-1", "1e400", "a/b", "../x", "/dev/zero", "é" * 300, "\x00", "\x1b[31m", "{}",
    [], {}, [[]], [None], [1], [0, 0, 0], [1, 1, 1], ["x", "x"], [True], {"x": 1}, {"": None}, [1] * 500, nested,
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of file: a good one's name and text, what reads it, and how its tree is written, where it has one."""

    name: str
    text: str
    use: Callable[[Path], object]
    parse: Callable[[str], Any] | None = None
    write: Callable[[Any], str] | None = None


Steps = tuple[Any, ...]
"""Keys and indices that lead to a value."""


def places(tree: Any, path: Steps = ()) -> Iterator[Steps]:
    """The path to every value of a tree."""
    if path:
        yield path
    if isinstance(tree, (dict, list)):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield from places(tree[key], (*path, key))


def changed(tree: Any, chance: random.Random) -> Any:
    """The tree with one value removed, doubled, renamed or replaced."""
    made = deepcopy(tree)
    *path, last = chance.choice(list(places(made)))
    inside = made
    for step in path:
        inside = inside[step]
    match chance.randrange(8):
        case 0:
            del inside[last]
        case 1 if isinstance(inside, list):
            inside.append(deepcopy(inside[last]))
        case 1:
            inside[f"{last}x"] = inside.pop(last)
        case 2 if isinstance(inside[last], (int, float)) and not isinstance(inside[last], bool):
            inside[last] = chance.choice((-inside[last], inside[last] * 1e300, str(inside[last]), [inside[last]]))
        case _:
            inside[last] = deepcopy(chance.choice(VALUES))
    return made


def scribbled(text: bytes, chance: random.Random) -> bytes:
    """The text cut short, or with other bytes somewhere."""
    start = chance.randrange(len(text) + 1)
    junk = (b"", bytes(chance.randrange(256) for _ in range(9)), b"\x00" * 50, b"[" * 5000, b"{" * 5000, b"- " * 3000)
    more = (b"\n", b"\t", b'"', b"'", b"&a *a ", b"1" * 5000, b"0x" + b"f" * 5000, b"-", b"\xef\xbb\xbf", b": ", b",")
    match chance.randrange(4):
        case 0:
            return text[:start]
        case 1:
            return text[:start] + chance.choice(junk + more)
        case _:
            return text[:start] + chance.choice(junk + more) + text[start + chance.randrange(12) :]


def mutated(kind: Kind, chance: random.Random) -> bytes:
    """A file of the kind, with a few values changed, or scribbled over."""
    if kind.parse is None or kind.write is None or chance.randrange(4) == 0:
        return scribbled(kind.text.encode(), chance)
    tree = kind.parse(kind.text)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if list(places(tree)):
            tree = changed(tree, chance)
    try:
        return kind.write(tree).encode("utf-8", "surrogatepass")
    except ValueError:  # a number of more digits than Python prints
        return b""
