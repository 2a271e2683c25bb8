"""Combinations of settings, made as they are asked for: a step's choices, a search's candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from tunesmith.records import Configuration, Value


@dataclass(frozen=True)
class Combinations:
    """The Cartesian product of some axes, the first varying fastest. An axis lists settings, of which one is taken.

    A setting gives one parameter a value, or several theirs together, so a plain list of configurations is a single
    axis. Where two axes set the same parameter, the later one holds. No axis at all has one combination, the empty one.
    """

    axes: tuple[tuple[Configuration, ...], ...]

    @staticmethod
    def of_list(configurations: Iterable[Configuration]) -> Combinations:
        """A list and no product; each configuration once, numbered in its order."""
        return Combinations((tuple(dict.fromkeys(configurations)),))

    @property
    def count(self) -> int:
        """How many there are; `len` says the same up to `sys.maxsize`, and raises OverflowError beyond."""
        return prod(map(len, self.axes))

    @property
    def names(self) -> tuple[str, ...]:
        """Every parameter that is set, in the order of the axes."""
        return tuple(dict.fromkeys(name for axis in self.axes for setting in axis for name in setting))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Configuration:
        """By number in mixed radix, as Tensile numbers them; IndexError beyond `count`."""
        if not 0 <= number < self.count:
            raise IndexError(f"{number} is no number of {self.count} combinations")
        settings = []
        for axis in self.axes:
            number, digit = divmod(number, len(axis))
            settings.append(axis[digit])
        return _joined(settings)

    def __iter__(self) -> Iterator[Configuration]:
        return (_joined(reversed(settings)) for settings in product(*reversed(self.axes)))

    def __contains__(self, configuration: Configuration) -> bool:
        """Found axis by axis, so that nothing is enumerated; axes must not share parameters."""
        parts = [configuration.only(dict.fromkeys(name for setting in axis for name in setting)) for axis in self.axes]
        found = all(part in axis for part, axis in zip(parts, self.axes, strict=True))
        return found and sum(map(len, parts)) == len(configuration)

    def values(self, name: str) -> tuple[Value, ...]:
        """What is listed for a parameter, each value once, in order; nothing for one that is not set."""
        settings = (setting.only([name]) for axis in self.axes for setting in axis if name in setting)
        return tuple(setting[name] for setting in dict.fromkeys(settings))

    def without(self, names: Iterable[str]) -> Combinations:
        """What is left to combine when these parameters are settled."""
        settled = tuple(names)
        return Combinations(tuple(tuple(dict.fromkeys(s.without(settled) for s in axis)) for axis in self.axes))


def _joined(settings: Iterable[Configuration]) -> Configuration:
    return Configuration([pair for setting in settings for pair in setting.items()])
