"""`Kernel`, which every kernel family implements, whatever its language."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
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
"""What the compiler reported of each entry of a configuration's modules; empty if they are not compiled."""


@cache
def source(package: str, *path: str) -> str:
    """The text of a source file that lies in a package beside its modules."""
    from importlib.resources import files  # imported here since programs whose kernels are compiled need no source

    return files(package).joinpath(*path).read_text(encoding="utf-8")


class Kernel(ABC):
    """A family of kernels: one algorithm in one language, configured by parameters.

    The life of a configuration: `space` says what may vary. `rejections` and `rejections_for` say why it cannot run.
    `modules` are compiled, and `rejections_compiled` judges the compiled program. `plan` says what is launched for a
    problem. Implementations are stateless and pure: they see a Target, never a device. Only the family that makes the
    source says what is legal.
    """

    name: str
    operation: str
    language: str
    form: Mapping[str, Value] = MappingProxyType({})
    """The parameter values that pick this family among those of its language; empty if it is the only one."""
    named_by: str = ""
    """A parameter that picks this family: a configuration that sets it (to a value other than `none`) means a family
    with this `named_by`. Empty for a family that a configuration means if it sets no such parameter."""

    @abstractmethod
    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        """The parameters with their defaults. Without a target, the parameters that a tuning file may name."""

    @abstractmethod
    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        """The reasons why this configuration can never run on the target; none if it can."""

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        """The reasons why it cannot run this problem (memory, smallest size).

        Only asked about configurations without `rejections`.
        """
        yield from ()

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        """The reasons why the compiled program is useless (registers, spills, work-group size)."""
        yield from ()

    @abstractmethod
    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        """What the toolchain compiles. A Launch names a module by its index here."""

    @abstractmethod
    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        """The launches that solve the problem."""

    def timed(self, plan: Plan) -> Plan:
        """What is timed for a plan. A family says otherwise if the library makes some calls in another way than those
        whose results can be checked."""
        return plan

    def checks(self, config: Configuration, problem: Problem, usual: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """The problems to verify before `problem` is timed; by default the operation's, which are `usual`.

        A family changes them if the right result depends on the configuration, as on the launch shape of random
        engines. It then writes what the result depends on into the scalars.
        """
        return usual

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        """Values that follow from the parameters and that a join may name (MacroTile, DepthU, WorkGroupSize)."""
        return {}

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float | None:
        """The expected time in seconds, used only to order candidates."""
        return None

    def identity(self, solution: Solution) -> str:
        config = solution.configuration
        return identity(self.modules(config, solution.type), self.space(solution.type).launch_time(config))
