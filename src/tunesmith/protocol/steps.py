"""A tuning file's phases as a list of steps: what the schema makes and the protocol carries out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from tunesmith.records import Configuration, Problem, ProblemType, Value
from tunesmith.spaces import Combinations

Weights = Mapping[Problem, float]
"""How much each problem counts beside the others of a step; 1 for one that is not there."""

EXHAUSTIVE = "exhaustive"
"""The search strategy where nobody names another."""


class Objective(StrEnum):
    """How a step's winner is chosen over several sizes; `docs/tuning-file.md` gives the formulas."""

    GEOMEAN = "geomean"
    MAX = "max"
    TOTAL_TIME = "total_time"
    WORST = "worst"


class Phase(StrEnum):
    """The phases in which something is measured, by the name of their key in a tuning file."""

    COMMON = "BenchmarkCommonParameters"
    FORK = "ForkParameters"
    BENCHMARK_FORK = "BenchmarkForkParameters"
    JOIN = "JoinParameters"
    BENCHMARK_JOIN = "BenchmarkJoinParameters"
    FINAL = "BenchmarkFinalParameters"


@dataclass(frozen=True, slots=True)
class Fork:
    """Every lineage becomes one for each choice."""

    choices: Combinations
    phase: ClassVar = Phase.FORK


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Every lineage takes the best of `choices` for itself, measured on `problems`. One dict of the tuning file."""

    phase: Phase
    choices: Combinations
    problems: tuple[Problem, ...]
    weights: Weights = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Join:
    """Keep the best lineage for each combination of values of `names` (parameters or derived); () keeps one.

    `problems` are measured on only when the lineages have not been measured since they were forked.
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
    """The strategy, by its name in the registry, that chooses what a lineage tries in a step; the most candidates that
    it may (None leaves it to the strategy); and the seed of what it draws."""

    strategy: str = EXHAUSTIVE
    trials: int | None = None
    seed: int = 0


@dataclass(frozen=True)
class Phases:
    """One size group, ready to run.

    `start` gives every parameter its value before the first step (explicit single value > InitialSolutionParameters >
    default). `tuned` lists, for each parameter that a later step varies, its values in the file's order, for lineages
    that are illegal until then.
    """

    problem_type: ProblemType
    group: int
    start: Configuration
    steps: tuple[Step, ...]
    tuned: tuple[tuple[str, tuple[Value, ...]], ...]
    objective: Objective = Objective.GEOMEAN
    search: SearchPlan = SearchPlan()
