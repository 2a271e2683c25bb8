"""The one way in which siblings (kernels, operations, toolchains, devices, strategies) are found by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to objects of one kind, made on first use.

    Each entry is `name -> "package.module:attribute"`, so that listing what exists imports nothing heavy and a new
    sibling is one file and one line. Raises KeyError, with the names that exist, for an unknown name.
    """

    def __init__(self, kind: str, places: dict[str, str]) -> None:
        self._kind, self._places = kind, places
        self._made: dict[str, T] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places or name in self._made

    def __getitem__(self, name: str) -> T:
        if name not in self._made:
            if name not in self._places:
                raise KeyError(f"no {self._kind} named {name!r}; there are {', '.join(self._places)}")
            module, attribute = self._places[name].split(":")
            make: Callable[[], T] = getattr(importlib.import_module(module), attribute)
            self._made[name] = make()
        return self._made[name]

    def add(self, name: str, made: T) -> None:
        """Register an object that exists already (a user's own kernel)."""
        self._made[name] = made
