"""The registry by which siblings (kernels, operations, toolchains, devices, strategies) are found by name."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic, TypeVar

from ._errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """Maps names to objects of one kind, which are made on first use.

    Each entry of `own` is `name -> "package.module:attribute"`. Thus listing the names imports nothing heavy, and a new
    sibling is one file and one line. Installed distributions can add siblings by entry points of `group`. These follow
    our own siblings, in every process that has the distribution on its path, and cannot replace a name of ours.
    Installed distributions are searched only when a name is unknown or when all names are listed. `parts` may say to
    which part of the registry each of our own belongs.
    """

    def __init__(
        self, kind: str, own: Mapping[str, str], group: str = "", parts: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._kind, self._own, self._group, self._parts = kind, own, group, parts
        self._loaded: dict[str, T] = {}
        self._broken: dict[str, UserError] = {}
        self._complete: dict[str, tuple[object, tuple[T, ...]]] = {}

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in installed(self._group) if name not in self._own)

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in installed(self._group)

    def __getitem__(self, name: str) -> T:
        """The object with this name. Raises KeyError, with the names that exist, for an unknown name; UserError, with
        the distribution and the entry point, for an installed sibling that cannot be loaded."""
        if name not in self._loaded:
            self._loaded[name] = self._load_own(name) if name in self._own else self._load_installed(name)
        return self._loaded[name]

    def values(self, part: str = "") -> Iterator[T]:
        """Every object; with a `part`, those of our own that belong to it, and all installed ones. An installed sibling
        that cannot be loaded is left out, with a warning."""
        for name in self:
            if part and self._parts.get(name, part) != part:
                continue
            try:
                yield self[name]
            except UserError as error:
                warnings.warn(str(error), stacklevel=2)

    def complete(self, part: str = "") -> tuple[T, ...]:
        """Every object, as `values` gives them: the same tuple as before if the siblings are the same and all load."""
        siblings, objects = self._complete.get(part, (None, ()))
        if siblings is not installed(self._group):
            objects = tuple(self.values(part))
            if not self._broken:
                self._complete[part] = installed(self._group), objects
        return objects

    def _load_own(self, name: str) -> T:
        module, attribute = self._own[name].split(":")
        make: Callable[[], T] = getattr(importlib.import_module(module), attribute)
        return make()

    def _load_installed(self, name: str) -> T:
        if name in self._broken:
            raise self._broken[name]
        entry = installed(self._group).get(name)
        if entry is None:
            raise KeyError(f"no {self._kind} named {name!r}; there are {', '.join(self)}")
        try:
            loaded: T = entry.load()()
        except Exception as error:  # a foreign module may raise anything
            what = f"entry point {name} = {entry.value} cannot be loaded ({type(error).__name__}: {error})"
            location = f"{distribution(entry)}, [{self._group}]"
            self._broken[name] = UserError(location, what, "mend that distribution, or uninstall it")
            raise self._broken[name] from error
        return loaded


@cache
def installed(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name. If two distributions use the same name, the first on the path counts."""
    from importlib.metadata import entry_points  # imported here because it takes longer to import than tunesmith

    return {entry.name: entry for entry in reversed(entry_points(group=group))} if group else {}


def distribution(entry: EntryPoint) -> str:
    """`name version` of the distribution to which an entry point belongs."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown distribution"
