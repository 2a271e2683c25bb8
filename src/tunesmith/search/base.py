"""What to try next: the candidates of a step, and the interface of whoever chooses among them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import fsum

import numpy as np

from tunesmith.records import Configuration, Estimate, Problem, Value
from tunesmith.spaces import Combinations

Row = Mapping[Problem, Estimate]
"""What a configuration took on the problems that it ran on; empty where it ran on none."""

Told = Mapping[Configuration, Row]
Describe = Callable[[Configuration], Mapping[str, Value]]
"""What follows from a configuration, and helps to tell fast from slow: tile sizes, local memory, a roofline's guess."""

MOST_WHOLE = 100_000
"""Of so many combinations each may be looked at before anything is measured; of more, a few at a time or a sample."""

LOOKS = 10_000
"""Combinations of a larger space that are looked at for one batch: less than a second."""


class MeasureMode(StrEnum):
    """How the configurations of a batch are measured together."""

    RACED = "raced"
    """A launch that is provably slower than another of the batch may be stopped early; it still has a time."""
    FULL = "full"
    """Every launch to its end."""
    CONFIRMED = "confirmed"
    """Again, in alternating blocks, so that samples can be compared pair by pair."""


@dataclass(frozen=True, slots=True)
class CandidateBatch:
    """Configurations to measure together, and how. Without `problems`, on all those that the search is for."""

    configurations: tuple[Configuration, ...]
    mode: MeasureMode
    problems: tuple[Problem, ...] = ()


def total_seconds(told: Told) -> dict[Configuration, float]:
    """The sum of each configuration's times, of those that ran."""
    return {config: fsum(estimate.seconds for estimate in row.values()) for config, row in told.items() if row}


@dataclass(frozen=True)
class Candidates:
    """The legal ones of some choices, each over a base that holds the other parameters' values.

    They are made as they are asked for, so the choices may be too many to list. `legal` is pure. `first` are full
    configurations that every sample begins with. No more than `trials` are to be measured, in this `mode`; None leaves
    it to the strategy. One that learns is helped by `describe`, and by `costs`: a positive number for each
    configuration that is worth learning from, lower being better.
    """

    choices: Combinations
    base: Configuration = Configuration()
    legal: Callable[[Configuration], bool] = lambda config: True
    first: tuple[Configuration, ...] = ()
    trials: int | None = None
    mode: MeasureMode = MeasureMode.RACED
    describe: Describe = lambda config: {}
    costs: Callable[[Told], Mapping[Configuration, float]] = total_seconds

    @staticmethod
    def of_list(configurations: Iterable[Configuration]) -> Candidates:
        """Full configurations, all of them legal; each counts once."""
        return Candidates(Combinations.of_list(configurations))

    def __iter__(self) -> Iterator[Configuration]:
        """All combinations in their order, legal or not."""
        return (self.base | choice for choice in self.choices)


class Search(ABC):
    """A way through candidates. Life: `ask`, measure, `tell`, and again until `ask` gives nothing.

    No configuration is asked for twice in one mode. What is asked is a function of the candidates, the generator and
    what was told, so telling the same again repeats it.
    """

    def __init__(self) -> None:
        self.told: dict[Configuration, Row] = {}

    @abstractmethod
    def ask(self) -> CandidateBatch | None:
        """What to measure next; None when there is no more, and from then on."""

    def tell(self, batch: CandidateBatch, rows: Told) -> None:
        """What became of a batch. A configuration without a row, or with an empty one, did not run."""
        if batch.mode is not MeasureMode.CONFIRMED:
            self.told.update({config: rows.get(config, {}) for config in batch.configurations})


class Strategy(ABC):
    """A way to search. Stateless: `start` makes the search."""

    def count(self, candidates: int, trials: int | None) -> int:
        """How many of so many candidates are measured, when `trials` is the most that a user wants."""
        return candidates if trials is None else min(candidates, trials)

    @abstractmethod
    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        """A search among these candidates; everything drawn comes from `random`.

        Raises UserError where something that the strategy needs is not installed.
        """
