"""The one way in which siblings (kernels, operations, toolchains, devices, strategies) are found by name."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Generic, TypeVar

from ._errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to objects of one kind, made on first use.

    Each entry is `name -> "package.module:attribute"`, so that listing what exists imports nothing heavy and a new
    sibling is one file and one line. What an installed distribution registers by an entry point of `group` is found
    behind our own siblings, in every process that has the distribution on its path; a name of ours stays ours.
    Installed distributions are searched when a name is unknown or all names are asked for, not before.
    """

    def __init__(self, kind: str, places: Mapping[str, str], group: str = "") -> None:
        self._kind, self._places, self._group = kind, places, group
        self._made: dict[str, T] = {}
        self._broken: dict[str, UserError] = {}

    def __iter__(self) -> Iterator[str]:
        yield from self._places
        yield from (name for name in installed(self._group) if name not in self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places or name in installed(self._group)

    def __getitem__(self, name: str) -> T:
        """Raises KeyError, with the names that exist, for an unknown name; UserError, with the distribution and the
        entry point, for an installed sibling that cannot be loaded."""
        if name not in self._made:
            self._made[name] = self._own(name) if name in self._places else self._installed(name)
        return self._made[name]

    def values(self) -> Iterator[T]:
        """Every sibling; a warning tells of an installed one that cannot be loaded, and the others still come."""
        for name in self:
            try:
                yield self[name]
            except UserError as error:
                warnings.warn(str(error), stacklevel=2)

    def _own(self, name: str) -> T:
        module, attribute = self._places[name].split(":")
        make: Callable[[], T] = getattr(importlib.import_module(module), attribute)
        return make()

    def _installed(self, name: str) -> T:
        if name in self._broken:
            raise self._broken[name]
        entry = installed(self._group).get(name)
        if entry is None:
            raise KeyError(f"no {self._kind} named {name!r}; there are {', '.join(self)}")
        try:
            made: T = entry.load()()
        except Exception as error:  # whatever a stranger's module raises
            what = f"entry point {name} = {entry.value} cannot be loaded ({type(error).__name__}: {error})"
            location = f"{distribution(entry)}, [{self._group}]"
            self._broken[name] = UserError(location, what, "mend that distribution, or uninstall it")
            raise self._broken[name] from error
        return made


@cache
def installed(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name; of two distributions that use one name, the first on the path counts."""
    from importlib.metadata import entry_points  # here, since it takes longer to import than tunesmith does

    return {entry.name: entry for entry in reversed(entry_points(group=group))} if group else {}


def distribution(entry: EntryPoint) -> str:
    """`name version` of the distribution that an entry point belongs to."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown distribution"
