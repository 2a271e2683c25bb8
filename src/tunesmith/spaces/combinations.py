"""Combinations of settings, made lazily: the choices of a step, the candidates of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from tunesmith.records import Configuration, Value


@dataclass(frozen=True)
class Combinations:
    """The Cartesian product of axes; the first axis varies fastest. Each axis is a list of settings.

    A setting gives values to one or several parameters, so a plain list of configurations is a single axis. If two axes
    set the same parameter, the later axis wins. Without an axis there is one combination, which is empty.
    """

    axes: tuple[tuple[Configuration, ...], ...]

    @staticmethod
    def of_list(configurations: Iterable[Configuration]) -> Combinations:
        """The configurations of a list, in its order and without duplicates."""
        return Combinations((tuple(dict.fromkeys(configurations)),))

    @property
    def count(self) -> int:
        """The number of combinations. `len` gives the same up to `sys.maxsize`, and raises OverflowError beyond."""
        return prod(map(len, self.axes))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all parameters that are set, in the order of the axes."""
        return tuple(dict.fromkeys(name for axis in self.axes for setting in axis for name in setting))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, number: int) -> Configuration:
        """The combination with this number in mixed radix, as Tensile numbers them. Raises IndexError beyond
        `count`."""
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
        """Whether a configuration is a combination. Each axis is searched, nothing is enumerated; axes must not share
        parameters."""
        parts = [configuration.only(dict.fromkeys(name for setting in axis for name in setting)) for axis in self.axes]
        on_axes = all(part in axis for part, axis in zip(parts, self.axes, strict=True))
        return on_axes and sum(map(len, parts)) == len(configuration)

    def values(self, name: str) -> tuple[Value, ...]:
        """The values of a parameter in their order, without duplicates; empty for a parameter that is not set."""
        settings = (setting.only([name]) for axis in self.axes for setting in axis if name in setting)
        return tuple(setting[name] for setting in dict.fromkeys(settings))

    def without(self, names: Iterable[str]) -> Combinations:
        """The combinations of the other parameters."""
        dropped = tuple(names)
        return Combinations(tuple(tuple(dict.fromkeys(s.without(dropped) for s in axis)) for axis in self.axes))


def _joined(settings: Iterable[Configuration]) -> Configuration:
    return Configuration([pair for setting in settings for pair in setting.items()])
