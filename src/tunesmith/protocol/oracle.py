"""`Oracle`: the protocol's questions about a configuration that need no measurement. The session's implementation asks
the kernel family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tunesmith.records import Configuration, Problem, Rejection, Value


class Oracle(Protocol):
    """Answers for one problem type on one target: legality, derived values, identity, work, and expected times.

    Pure: the same question has the same answer. Questions are asked often, so an implementation should cache answers.
    """

    def rejections(self, config: Configuration) -> Sequence[Rejection]:
        """Why this configuration cannot run at any size; empty if it can run."""
        ...

    def rejections_for(self, config: Configuration, problem: Problem) -> Sequence[Rejection]:
        """Why this configuration cannot run this problem. Asked only about configurations without `rejections`."""
        ...

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        """Values that follow from the parameters and that a join may name (MacroTile, DepthU). Asked about illegal
        configurations, too."""
        ...

    def identity(self, config: Configuration) -> str:
        """A text that is equal for configurations that are the same solution. Asked only about legal configurations."""
        ...

    def work(self, problem: Problem) -> float:
        """Floating-point operations of a problem, for the objective `max`."""
        ...

    def guess(self, config: Configuration, problem: Problem) -> float:
        """The expected seconds, infinite if unknown. Asked only about configurations that may run the problem. A search
        may learn faster with it."""
        ...


def first_rejection(oracle: Oracle, config: Configuration, problems: Sequence[Problem]) -> Rejection | None:
    """Why the configuration runs none of these problems; None if it can run at least one."""
    if everywhere := oracle.rejections(config):
        return everywhere[0]
    first: Rejection | None = None
    for problem in problems:
        rejections = oracle.rejections_for(config, problem)
        if not rejections:
            return None
        first = first or rejections[0]
    return first
