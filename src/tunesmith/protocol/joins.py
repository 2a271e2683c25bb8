"""The lineages that a join keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tunesmith.records import Configuration, UserError, Value

from .intervals import RESOLUTION
from .lineage import Lineage
from .objectives import cost_function_for
from .oracle import Oracle
from .steps import Fork, Join, Objective, Phases


def key_of(config: Configuration, names: Iterable[str], oracle: Oracle) -> Configuration:
    """The values of a join's names. Raises UserError for a name that is neither a parameter nor a derived value."""
    values: Mapping[str, Value] = {**config, **oracle.derived(config)}
    for name in names:
        if name not in values:
            raise UserError(
                "JoinParameters",
                f"{name} is neither a parameter nor derived from parameters",
                f"join over some of {', '.join(values)}",
            )
    return Configuration({name: values[name] for name in names})


def check_names(phases: Phases, oracle: Oracle) -> None:
    """Raise UserError for a join's name that some forked lineage does not have, before anything is measured."""
    names = [name for step in phases.steps if isinstance(step, Join) for name in step.names]
    forked = [phases.start | choice for step in phases.steps if isinstance(step, Fork) for choice in step.choices]
    for config in (phases.start, *forked):
        key_of(config, names, oracle)


def best_of_each(lineages: Sequence[Lineage], join: Join, objective: Objective, oracle: Oracle) -> tuple[Lineage, ...]:
    """The best lineage for each combination of values of the join's names, in the order of the lineages.

    All lineages are compared with the same best times, by the steps' objective and the weights of the current sizes. A
    lineage that ran on more problems is better than one that ran on fewer. Among equals the first is kept.
    """
    cost_function = cost_function_for(objective, [lineage.times for lineage in lineages], oracle.work, join.weights)
    costs = [cost_function.cost(lineage.times) for lineage in lineages]
    best: dict[Configuration, int] = {}
    for index, lineage in enumerate(lineages):
        key = key_of(lineage.configuration, join.names, oracle)
        if key not in best or _better(lineage, costs[index], lineages[best[key]], costs[best[key]]):
            best[key] = index
    return tuple(lineages[index] for index in sorted(best.values()))


def _better(lineage: Lineage, cost: float, other: Lineage, other_cost: float) -> bool:
    return (-len(lineage.times), cost) < (-len(other.times), other_cost - RESOLUTION)
