"""Which lineages a join keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tunesmith.records import Configuration, UserError, Value

from .intervals import RESOLUTION
from .lineage import Lineage
from .objectives import yardstick
from .oracle import Oracle
from .steps import Fork, Join, Objective, Phases


def key_of(config: Configuration, names: Iterable[str], oracle: Oracle) -> Configuration:
    """The values of a join's names, derived or of parameters. Raises UserError for a name that is neither."""
    known: Mapping[str, Value] = {**config, **oracle.derived(config)}
    for name in names:
        if name not in known:
            raise UserError(
                "JoinParameters",
                f"{name} is neither a parameter nor derived from parameters",
                f"join over some of {', '.join(known)}",
            )
    return Configuration({name: known[name] for name in names})


def check_names(phases: Phases, oracle: Oracle) -> None:
    """Raise UserError for a join's name that some forked lineage could not answer, before anything is measured."""
    names = [name for step in phases.steps if isinstance(step, Join) for name in step.names]
    forked = [phases.start | choice for step in phases.steps if isinstance(step, Fork) for choice in step.choices]
    for config in (phases.start, *forked):
        key_of(config, names, oracle)


def best_of_each(lineages: Sequence[Lineage], join: Join, objective: Objective, oracle: Oracle) -> tuple[Lineage, ...]:
    """For each combination of values of the join's names the best lineage, in the order of the lineages.

    All are held against the same best times, by the objective of the steps and the weights of the sizes in force. One
    that ran on more problems goes before one that ran on fewer; of equals the first stays.
    """
    against = yardstick(objective, [lineage.times for lineage in lineages], oracle.work, join.weights)
    costs = [against.cost(lineage.times) for lineage in lineages]
    best: dict[Configuration, int] = {}
    for index, lineage in enumerate(lineages):
        key = key_of(lineage.configuration, join.names, oracle)
        if key not in best or _better(lineage, costs[index], lineages[best[key]], costs[best[key]]):
            best[key] = index
    return tuple(lineages[index] for index in sorted(best.values()))


def _better(one: Lineage, cost: float, other: Lineage, other_cost: float) -> bool:
    if len(one.times) != len(other.times):
        return len(one.times) > len(other.times)
    return cost < other_cost - RESOLUTION
