"""A tuning file's phases as a list of steps, which the schema makes and the protocol carries out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from tunesmith.records import Configuration, Problem, ProblemType, Value
from tunesmith.spaces import Combinations

Weights = Mapping[Problem, float]
"""The weight of each problem of a step; 1 for an absent problem."""

EXHAUSTIVE = "exhaustive"
"""The default search strategy."""


class Objective(StrEnum):
    """How a step's winner is chosen over several sizes; `docs/tuning-file.md` has the formulas."""

    GEOMEAN = "geomean"
    MAX = "max"
    TOTAL_TIME = "total_time"
    WORST = "worst"


class Phase(StrEnum):
    """The phases, by their keys in a tuning file."""

    COMMON = "BenchmarkCommonParameters"
    FORK = "ForkParameters"
    BENCHMARK_FORK = "BenchmarkForkParameters"
    JOIN = "JoinParameters"
    BENCHMARK_JOIN = "BenchmarkJoinParameters"
    FINAL = "BenchmarkFinalParameters"


@dataclass(frozen=True, slots=True)
class Fork:
    """Every lineage becomes several lineages, one for each choice."""

    choices: Combinations
    phase: ClassVar = Phase.FORK


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Every lineage takes the best of `choices` for it, measured on `problems`. One dict of the tuning file."""

    phase: Phase
    choices: Combinations
    problems: tuple[Problem, ...]
    weights: Weights = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Join:
    """Keep the best lineage for each combination of values of `names` (parameters or derived values); () keeps a single
    lineage.

    `problems` are measured only if the lineages have not been measured since they were forked.
    """

    names: tuple[str, ...]
    problems: tuple[Problem, ...]
    weights: Weights = field(default_factory=dict, hash=False)
    phase: ClassVar = Phase.JOIN


@dataclass(frozen=True, slots=True)
class Final:
    """Measure all `choices` of every surviving lineage on every problem."""

    problems: tuple[Problem, ...]
    choices: Combinations = Combinations(())
    phase: ClassVar = Phase.FINAL


Step = Fork | Benchmark | Join | Final


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The strategy, by its name in the registry, that chooses a lineage's candidates in a step; the largest number of
    candidates (None: the strategy decides); and the seed of the strategy's random numbers."""

    strategy: str = EXHAUSTIVE
    trials: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Phases:
    """One size group, ready to run.

    `start` has the value of every parameter before the first step (explicit single value > InitialSolutionParameters >
    default). `tuned` has each parameter that a step varies, with its values in the file's order. They are substitutes
    for lineages that are illegal before that step.
    """

    problem_type: ProblemType
    group: int
    start: Configuration
    steps: tuple[Step, ...]
    tuned: tuple[tuple[str, tuple[Value, ...]], ...]
    objective: Objective = Objective.GEOMEAN
    search: SearchPlan = SearchPlan()
