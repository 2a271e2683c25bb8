"""What the protocol asks about a configuration without measuring it. The session answers from the kernel family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tunesmith.records import Configuration, Problem, Rejection, Value


class Oracle(Protocol):
    """Legality, derived values, identity and work, for one problem type on one target.

    Pure: the same question has the same answer. It may be asked often, so an implementation should remember.
    """

    def rejections(self, config: Configuration) -> Sequence[Rejection]:
        """Why this configuration can never run; empty when it can."""
        ...

    def rejections_for(self, config: Configuration, problem: Problem) -> Sequence[Rejection]:
        """Why it cannot run this problem; asked only of configurations without `rejections`."""
        ...

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        """Values that follow from the parameters and that a join may name (MacroTile, DepthU); asked of illegal
        configurations too."""
        ...

    def identity(self, config: Configuration) -> str:
        """Equal for configurations that are one solution; asked only of legal ones."""
        ...

    def work(self, problem: Problem) -> float:
        """Floating-point operations of a problem, for the objective `max`."""
        ...

    def guess(self, config: Configuration, problem: Problem) -> float:
        """Seconds that are expected, infinite where nothing is; asked only of what may run. A search may learn faster
        with it."""
        ...


def first_rejection(oracle: Oracle, config: Configuration, problems: Sequence[Problem]) -> Rejection | None:
    """Why the configuration is of no use on any of these problems; None when it can run at least one."""
    if never := oracle.rejections(config):
        return never[0]
    first: Rejection | None = None
    for problem in problems:
        refused = oracle.rejections_for(config, problem)
        if not refused:
            return None
        first = first or refused[0]
    return first
