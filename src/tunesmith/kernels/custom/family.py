"""Any kernel that a user describes, as a family: the description answers what a family must answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

import numpy as np

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.registry import LANGUAGE
from tunesmith.problems import storage_bytes
from tunesmith.problems.custom import (
    FLOATS,
    ArrayArgument,
    CustomOperation,
    Description,
    LocalMemoryArgument,
    ValueArgument,
    description_of,
    sizes_of,
)
from tunesmith.records import (
    Argument,
    Configuration,
    Launch,
    LocalArgument,
    Module,
    OperandArgument,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    ScalarArgument,
    Target,
    Value,
)
from tunesmith.spaces import Parameter, Space
from tunesmith.spaces.expressions import Expression, ceil_div, round_up


class CustomKernel(Kernel):
    """One launch of the described kernel in OpenCL C: every argument of the description is one of the kernel's, in its
    order; its parameters are macros of the source.

    A type whose description has no source in the family's language has no parameters here.
    """

    name, operation, language = "Custom", "Custom", "OpenCL"
    local_alignment = 1
    """What the bytes of an argument in local memory are rounded up to."""
    most_declared_bytes: int | None = None
    """Local memory that a source may declare, where that is less than the device has."""

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        description = description_of(problem_type)
        if self.language not in description.sources:
            return Space(())
        language = Parameter(LANGUAGE, self.language, (self.language,), "The language of the source that is compiled.")
        return Space((language, *description.parameters))

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        """Those that no size can change."""
        description = description_of(problem_type)
        known = {**config, **_limits(target)}
        yield from self._broken(description, known, sizes=())
        if not target.double_precision and any(array.dtype == "float64" for array in description.arrays):
            yield Rejection("double precision", f"{target.name} does not compute in double precision")

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        description = description_of(problem.type)
        known = {**config, **_limits(target), **sizes_of(problem)}
        yield from self._broken(description, known, problem.type.indices)
        yield from _memory(problem, target)
        for argument in description.arguments:
            if isinstance(argument, ValueArgument) and argument.dtype not in FLOATS:
                value, range_ = argument.value.evaluate(known), np.iinfo(argument.dtype)
                if isinstance(value, (int, float)) and not range_.min <= value <= range_.max:
                    yield Rejection("argument range", f"{argument.name} is {value}, too large for {argument.dtype}")

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        description = description_of(problem_type)
        source = description.sources[self.language]
        macros = [f"-D{parameter.name}={_macro(config[parameter.name])}" for parameter in description.parameters]
        return (Module(self.language, source.text, (description.entry,), (*source.options, *macros)),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        return Plan((self.launch(config, problem, target),))

    def launch(self, config: Configuration, problem: Problem, target: Target) -> Launch:
        """The launch with every argument of the description."""
        description = description_of(problem.type)
        known = {**config, **_limits(target), **sizes_of(problem)}
        work_group = _three(description.work_group, known)
        grid = _three(description.grid, known)
        if description.in_items:
            grid = tuple(map(ceil_div, grid, work_group))  # type: ignore[assignment]  # three, like its terms
        arguments = tuple(
            self._local(argument, known) if isinstance(argument, LocalMemoryArgument) else _passed(argument, known)
            for argument in description.arguments
        )
        return Launch(0, description.entry, grid, work_group, arguments)

    def _broken(
        self, description: Description, known: Mapping[str, Value], sizes: Sequence[str]
    ) -> Iterator[Rejection]:
        """Constraints and limits of the device that are broken: those that name a size if there are `sizes`, else the
        others."""

        def asked(*expressions: Expression) -> bool:
            named = {name for expression in expressions for name in expression.names} & set(description.sizes)
            return bool(named) == bool(sizes)

        for constraint in description.constraints:
            if asked(constraint.require) and not constraint.require.truth(known):
                yield Rejection(constraint.reason, f"{constraint.require.text} does not hold", is_asked_for=True)
        if asked(*description.work_group):
            items, most = prod(_three(description.work_group, known)), known["MaxWorkGroupSize"]
            if items > int(most):  # type: ignore[arg-type]  # a limit is a whole number
                yield Rejection("work-group size", f"{items} work-items, the device allows {most}")
        given = [argument for argument in description.arguments if isinstance(argument, LocalMemoryArgument)]
        declared = [description.local_memory] if description.local_memory else []
        if (given or declared) and asked(*declared, *(argument.size for argument in given)):
            own, most = sum(size.integer(known) for size in declared), known["LocalMemoryBytes"]
            need = own + sum(self._local(argument, known).size for argument in given)
            if need > int(most):  # type: ignore[arg-type]
                yield Rejection("local memory", f"{need} bytes, the device has {most}")
            elif self.most_declared_bytes is not None and own > self.most_declared_bytes:
                remedy = f"a source may declare {self.most_declared_bytes}, arguments may have more"
                yield Rejection("local memory", f"{own} bytes declared: {remedy}")

    def _local(self, argument: LocalMemoryArgument, known: Mapping[str, Value]) -> LocalArgument:
        return LocalArgument(round_up(argument.size.integer(known, least=1), self.local_alignment))


def _memory(problem: Problem, target: Target) -> Iterator[Rejection]:
    needs = {operand.name: storage_bytes(operand) for operand in CustomOperation().operands(problem)}
    largest = max(needs, key=needs.__getitem__)
    if needs[largest] > target.max_allocation_bytes:
        detail = f"{largest} has {needs[largest]} bytes, the device allocates at most {target.max_allocation_bytes}"
        yield Rejection("allocation size", detail)
    if sum(needs.values()) > target.global_memory_bytes:
        yield Rejection("memory", f"{sum(needs.values())} bytes, the device has {target.global_memory_bytes}")


def _passed(argument: ArrayArgument | ValueArgument, known: Mapping[str, Value]) -> Argument:
    if isinstance(argument, ArrayArgument):
        return OperandArgument(argument.name)
    if argument.dtype in FLOATS:
        return ScalarArgument(argument.value.number(known), argument.dtype)
    lowest = int(np.iinfo(argument.dtype).min)
    return ScalarArgument(argument.value.integer(known, least=lowest), argument.dtype)


def _three(extents: Sequence[Expression], known: Mapping[str, Value]) -> tuple[int, int, int]:
    found = [extent.integer(known, least=1) for extent in extents]
    x, y, z = [*found, 1, 1][:3]
    return x, y, z


def _limits(target: Target) -> dict[str, Value]:
    """The names that `LIMITS` promises to a description."""
    return {
        "ComputeUnits": target.compute_units,
        "LocalMemoryBytes": target.local_memory_bytes,
        "MaxWorkGroupSize": target.max_work_group_size,
        "SubGroupSize": target.sub_group_size,
    }


def _macro(value: Value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
