"""Configurations of a space that are worth asking about: its defaults, what lies beside them, and random ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tunesmith.records import Configuration, Value
from tunesmith.spaces import Parameter, Space

RANDOM = 200
"""Random configurations that are looked at, legal or not."""
MOST_BASES = 12
"""Legal configurations around which each parameter is changed."""


def values_of(parameter: Parameter) -> tuple[Value, ...]:
    """The values that a parameter lists, its default, and one whole number more where it accepts any."""
    listed = dict.fromkeys((parameter.default, *parameter.values))
    if parameter.accepts in ("positive integer", "natural number", "natural number or -1"):
        listed[1 + max(value for value in listed if isinstance(value, int))] = None
    return tuple(listed)


def around(space: Space, more: Iterable[Configuration] = ()) -> list[Configuration]:
    """The defaults, each of `more` over them, the defaults with each parameter changed, and random configurations."""
    defaults = space.defaults
    starts = [defaults, *(defaults | config for config in more)]
    changed = [start | {p.name: value} for start in starts for p in space for value in values_of(p)]
    random = np.random.default_rng(0)
    drawn = [
        Configuration({p.name: (listed := values_of(p))[int(random.integers(len(listed)))] for p in space})
        for _ in range(RANDOM)
    ]
    return list(dict.fromkeys([*starts, *changed, *drawn]))


@dataclass(frozen=True)
class LegalConfigurations:
    """The legal ones of a space, as far as they were looked for."""

    space: Space
    legal: tuple[Configuration, ...]
    is_legal: Callable[[Configuration], bool]

    def variants(self, parameter: Parameter) -> Iterator[list[Configuration]]:
        """Legal configurations that differ in nothing but this parameter, two or more at a time."""
        for base in islice(self.legal, MOST_BASES):
            made = (base | {parameter.name: value} for value in values_of(parameter))
            if len(group := [config for config in made if self.is_legal(config)]) > 1:
                yield group
