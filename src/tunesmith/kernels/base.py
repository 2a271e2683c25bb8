"""What every kernel family must answer, whatever its language."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from tunesmith.records import (
    CompiledFacts,
    Configuration,
    Module,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    Solution,
    Target,
    Value,
    identity,
)
from tunesmith.spaces import Space

Facts = Sequence[CompiledFacts]
"""What the compiler said of the entries of a configuration's modules; nothing where they are not compiled."""


@cache
def source(package: str, *path: str) -> str:
    """The text of a source that lies in a package, as data beside its modules."""
    return files(package).joinpath(*path).read_text(encoding="utf-8")


class Kernel(ABC):
    """A family of kernels: one algorithm in one language, configured by parameters.

    Life of a configuration: `space` says what may vary; `rejections` and `rejections_for` say why not; `modules` are
    compiled; `rejections_compiled` looks at what the compiler made; `plan` says what is launched for a problem.
    Implementations are stateless and pure: they see a Target, never a device. The family that makes the source is
    also the only one that says what is legal.
    """

    name: str
    operation: str
    language: str
    form: Mapping[str, Value] = MappingProxyType({})
    """What a configuration says to mean this family among those of its language; nothing when it is the only one."""
    named_by: str = ""
    """A parameter whose mention in a configuration (with a value other than `none`) means a family that has it, and no
    other; empty for a family that is meant where nothing is mentioned."""

    @abstractmethod
    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        """Parameters with defaults. Without a target, the parameters as a tuning file may name them."""

    @abstractmethod
    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        """Why this configuration can never run there; nothing when it can."""

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        """Why it cannot run this problem (memory, smallest size); asked only of configurations without `rejections`."""
        yield from ()

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        """Why the compiled program is useless (registers, spills, work-group size)."""
        yield from ()

    @abstractmethod
    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        """What the toolchain compiles; a Launch names a module by its place here."""

    @abstractmethod
    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        """The launches that solve the problem."""

    def checks(self, config: Configuration, problem: Problem, usual: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """The problems to verify before `problem` is timed: the operation's, unless the right result depends on the
        configuration (the launch shape of random engines), which the family then writes into the scalars."""
        return usual

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        """Values that follow from the parameters, which a join may name (MacroTile, DepthU, WorkGroupSize)."""
        return {}

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float | None:
        """Expected seconds, only to order candidates."""
        return None

    def identity(self, solution: Solution) -> str:
        config = solution.configuration
        return identity(self.modules(config, solution.type), self.space(solution.type).launch_time(config))
