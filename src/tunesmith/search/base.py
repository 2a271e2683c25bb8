"""The candidates of a step, and the interfaces of searches and strategies, which choose among the candidates."""

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
"""The times of a configuration on the problems on which it ran; empty if it ran on none."""

MeasuredTimes = Mapping[Configuration, Row]
"""Measured times: the row of each configuration."""

Describe = Callable[[Configuration], Mapping[str, Value]]
"""Derived values of a configuration that help to tell fast from slow: tile sizes, local memory, a roofline's guess."""

LARGEST_LISTED = 100_000
"""Up to so many combinations, each may be examined before anything is measured. Larger spaces are examined a few
combinations at a time, or sampled."""

MOST_EXAMINED = 10_000
"""How many combinations of a larger space are examined for one batch: less than a second."""


class MeasureMode(StrEnum):
    """How the configurations of a batch are measured together."""

    RACED = "raced"
    """The measurement of a configuration that is provably slower than another of the batch may stop early. It still
    gives a time."""
    FULL = "full"
    """Every measurement is completed."""
    CONFIRMED = "confirmed"
    """The configurations are measured again in alternating blocks, so that samples can be compared pair by pair."""


@dataclass(frozen=True, slots=True)
class CandidateBatch:
    """Configurations to measure together, and how to measure them. Without `problems`, on all problems of the
    search."""

    configurations: tuple[Configuration, ...]
    mode: MeasureMode
    problems: tuple[Problem, ...] = ()


def total_seconds(times: MeasuredTimes) -> dict[Configuration, float]:
    """The sum of the times of each configuration that ran."""
    return {config: fsum(estimate.seconds for estimate in row.values()) for config, row in times.items() if row}


@dataclass(frozen=True)
class Candidates:
    """The legal configurations among `choices`, each combined with `base`, which holds the other parameters' values.

    Candidates are made lazily, so `choices` may be too many to list. `legal` is pure. Every sample begins with the full
    configurations in `first`. At most `trials` configurations are measured, in this `mode`; None leaves the number to
    the strategy. A strategy that learns uses `describe` and `costs`. `costs` gives a positive number for each
    configuration that is worth learning from; lower is better.
    """

    choices: Combinations
    base: Configuration = Configuration()
    legal: Callable[[Configuration], bool] = lambda config: True
    first: tuple[Configuration, ...] = ()
    trials: int | None = None
    mode: MeasureMode = MeasureMode.RACED
    describe: Describe = lambda config: {}
    costs: Callable[[MeasuredTimes], Mapping[Configuration, float]] = total_seconds

    @staticmethod
    def of_list(configurations: Iterable[Configuration]) -> Candidates:
        """A list of full, legal configurations; duplicates count once."""
        return Candidates(Combinations.of_list(configurations))

    def __iter__(self) -> Iterator[Configuration]:
        """All combinations in their order, including illegal ones."""
        return (self.base | choice for choice in self.choices)


class Search(ABC):
    """A search in progress. The caller repeats `ask`, measure, `tell` until `ask` returns None.

    A search asks for no configuration twice in one mode. Its batches depend only on the candidates, the generator and
    the times that it was told, so the same times give the same search again.
    """

    def __init__(self) -> None:
        self.told: dict[Configuration, Row] = {}

    @abstractmethod
    def ask(self) -> CandidateBatch | None:
        """The next batch to measure; None, from then on, if there is nothing more to measure."""

    def tell(self, batch: CandidateBatch, rows: MeasuredTimes) -> None:
        """Takes the times of a batch. A configuration without a row, or with an empty row, did not run."""
        if batch.mode is not MeasureMode.CONFIRMED:
            self.told.update({config: rows.get(config, {}) for config in batch.configurations})


class Strategy(ABC):
    """A kind of search. A strategy is stateless: `start` makes the search."""

    def count(self, candidates: int, trials: int | None) -> int:
        """How many of this number of candidates are measured, if the user allows at most `trials`."""
        return candidates if trials is None else min(candidates, trials)

    @abstractmethod
    def start(self, candidates: Candidates, random: np.random.Generator) -> Search:
        """A search among these candidates. All random numbers come from `random`.

        Raises UserError if a package that the strategy needs is not installed.
        """
