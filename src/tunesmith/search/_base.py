"""What to try next: the candidates of a space, and the interface of whoever walks through them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

import numpy as np

from tunesmith.records import Configuration, Value
from tunesmith.spaces import Space


@dataclass(frozen=True)
class Candidates:
    """The legal combinations of some parameters' values, over a base that holds the others.

    Combinations are numbered in mixed radix, the first parameter varying fastest, as Tensile numbers them. `legal`
    must be pure.
    """

    base: Configuration
    axes: tuple[tuple[str, tuple[Value, ...]], ...]
    legal: Callable[[Configuration], bool]

    @staticmethod
    def of(space: Space, legal: Callable[[Configuration], bool], varied: Sequence[str] = ()) -> Candidates:
        """All values of a space's parameters, or of those in `varied`; the others keep their defaults."""
        names = varied or [parameter.name for parameter in space]
        return Candidates(space.defaults, tuple((name, space[name].values) for name in names), legal)

    @property
    def combinations(self) -> int:
        """Legal or not."""
        return prod(len(values) for _, values in self.axes)

    def combination(self, number: int) -> Configuration:
        """The combination with this number, 0 <= number < `combinations`, legal or not."""
        chosen = {}
        for name, values in self.axes:
            number, digit = divmod(number, len(values))
            chosen[name] = values[digit]
        return self.base | chosen

    def among(self, numbers: Iterator[int]) -> Iterator[Configuration]:
        """The legal ones of these combinations, in their order, made as they are asked for."""
        return (config for config in map(self.combination, numbers) if self.legal(config))


class Search(ABC):
    """One walk through candidates. Life: `ask`, measure, `tell`, and again until `ask` gives nothing.

    No configuration is asked for twice. A walk is a function of its candidates, its generator and what it was told,
    so telling the same again in the same order repeats it.
    """

    def __init__(self) -> None:
        self._told: dict[Configuration, float | None] = {}

    @abstractmethod
    def ask(self, count: int = 1) -> tuple[Configuration, ...]:
        """The next configurations to measure: up to `count` of them, none when there are no more."""

    def tell(self, config: Configuration, seconds: float | None) -> None:
        """What became of a configuration: its time, or None when it did not run."""
        self._told[config] = seconds

    @property
    def told(self) -> Mapping[Configuration, float | None]:
        """Everything told, in the order of telling; the last word on a configuration counts."""
        return self._told

    @property
    def best(self) -> Configuration | None:
        """The fastest told, the first of equals; None as long as nothing ran."""
        ran = {config: seconds for config, seconds in self._told.items() if seconds is not None}
        return min(ran, key=lambda config: ran[config], default=None)


class Walk(Search):
    """A search that needs no answers: it hands out a sequence made beforehand, without what it was told already."""

    def __init__(self, order: Iterator[Configuration]) -> None:
        super().__init__()
        self._order = order
        self._asked: set[Configuration] = set()

    def ask(self, count: int = 1) -> tuple[Configuration, ...]:
        return tuple(islice(self._fresh(), count))

    def _fresh(self) -> Iterator[Configuration]:
        for config in self._order:
            if config not in self._told and config not in self._asked:
                self._asked.add(config)
                yield config


class Strategy(ABC):
    """A way to search, by name in the registry. Stateless: `start` makes the walk."""

    name: str

    @abstractmethod
    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        """A walk through these candidates; everything drawn comes from `random`."""
