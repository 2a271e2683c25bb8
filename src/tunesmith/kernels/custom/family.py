"""The family of kernels that a user describes: all its answers come from the description."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod

import numpy as np

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.registry import LANGUAGE
from tunesmith.problems import storage_bytes
from tunesmith.problems.custom import (
    FLOATS,
    ArrayArgument,
    CustomOperation,
    DescribedLaunch,
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
    WorkspaceArgument,
)
from tunesmith.spaces import Parameter, Space
from tunesmith.spaces.expressions import Expression, ceil_div, round_up

SCRATCH_ALIGNMENT = 256
"""Bytes to which every scratch array is aligned, as much as any device asks for."""


class CustomKernel(Kernel):
    """The described launches in OpenCL C.

    A launch's arguments are its kernel's arguments, in the same order; the parameters are macros of the source.
    If the description has no source in the family's language, its type has no parameters here.
    """

    name, operation, language = "Custom", "Custom", "OpenCL"
    local_alignment = 1
    """The bytes of an argument in local memory are rounded up to a multiple of this."""
    most_declared_bytes: int | None = None
    """Bytes of local memory that a source may declare, if that is less than the device has."""

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        description = description_of(problem_type)
        if self.language not in description.sources:
            return Space(())
        language = Parameter(LANGUAGE, self.language, (self.language,), "The language of the source that is compiled.")
        return Space((language, *description.parameters))

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        """The rejections that do not depend on a size."""
        description = description_of(problem_type)
        values = {**config, **limits_of(target)}
        yield from self._broken(description, values, sizes=())
        if not target.double_precision and any(array.dtype == "float64" for array in description.arrays):
            yield Rejection("double precision", f"{target.name} does not compute in double precision")

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        description = description_of(problem.type)
        values = {**config, **limits_of(target), **sizes_of(problem)}
        yield from self._broken(description, values, problem.type.indices)
        _, scratch_bytes = _scratch_offsets(description.scratch, values)
        yield from _memory(problem, target, scratch_bytes)
        for argument in description.arguments:
            if isinstance(argument, ValueArgument) and argument.dtype not in FLOATS:
                value, range_ = argument.value.evaluate(values), np.iinfo(argument.dtype)
                if isinstance(value, (int, float)) and not range_.min <= value <= range_.max:
                    yield Rejection("argument range", f"{argument.name} is {value}, too large for {argument.dtype}")

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        description = description_of(problem_type)
        source = description.sources[self.language]
        macros = [f"-D{parameter.name}={_macro(config[parameter.name])}" for parameter in description.parameters]
        return (Module(self.language, source.text, description.entries, (*source.options, *macros)),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        launches = self.launches(config, problem, target)
        scratch = description_of(problem.type).scratch
        if not scratch:
            return Plan(launches)
        _, workspace_bytes = _scratch_offsets(scratch, {**config, **limits_of(target), **sizes_of(problem)})
        return Plan(launches, workspace_bytes)

    def launches(self, config: Configuration, problem: Problem, target: Target) -> tuple[Launch, ...]:
        """The described launches, each with every argument that it names."""
        description = description_of(problem.type)
        values = {**config, **limits_of(target), **sizes_of(problem)}
        offsets, _ = _scratch_offsets(description.scratch, values)
        arguments = {argument.name: self._passed(argument, values, offsets) for argument in description.arguments}
        return tuple(_launch(launch, values, arguments) for launch in description.launches)

    def _broken(
        self, description: Description, values: Mapping[str, Value], sizes: Sequence[str]
    ) -> Iterator[Rejection]:
        """A rejection for each broken constraint and exceeded limit of the device.

        With `sizes`, only those whose expressions name a size are checked; without, only the others.
        """

        def is_checked(*expressions: Expression) -> bool:
            named_sizes = {name for expression in expressions for name in expression.names} & set(description.sizes)
            return bool(named_sizes) == bool(sizes)

        for constraint in description.constraints:
            if is_checked(constraint.require) and not constraint.require.truth(values):
                yield Rejection(constraint.reason, f"{constraint.require.text} does not hold", is_asked_for=True)
        for launch in description.launches:
            if is_checked(*launch.work_group):
                items, most = prod(_three(launch.work_group, values)), values["MaxWorkGroupSize"]
                if items > int(most):  # type: ignore[arg-type]  # a limit is a whole number
                    yield Rejection("work-group size", f"{items} work-items, the device allows {most}")
            yield from self._too_much_local(description, launch, values, is_checked)

    def _too_much_local(
        self,
        description: Description,
        launch: DescribedLaunch,
        values: Mapping[str, Value],
        is_checked: Callable[..., bool],
    ) -> Iterator[Rejection]:
        local_arguments = [
            argument
            for argument in description.arguments
            if isinstance(argument, LocalMemoryArgument) and argument.name in launch.arguments
        ]
        declared = [launch.local_memory] if launch.local_memory else []
        local_sizes = (*declared, *(argument.size for argument in local_arguments))
        if local_sizes and is_checked(*local_sizes):
            declared_bytes, most = sum(size.integer(values) for size in declared), values["LocalMemoryBytes"]
            need = declared_bytes + sum(self._local(argument, values).size for argument in local_arguments)
            if need > int(most):  # type: ignore[arg-type]
                yield Rejection("local memory", f"{need} bytes, the device has {most}")
            elif self.most_declared_bytes is not None and declared_bytes > self.most_declared_bytes:
                remedy = f"a source may declare {self.most_declared_bytes}, arguments may have more"
                yield Rejection("local memory", f"{declared_bytes} bytes declared: {remedy}")

    def _passed(
        self,
        argument: ArrayArgument | ValueArgument | LocalMemoryArgument,
        values: Mapping[str, Value],
        offsets: Mapping[str, int],
    ) -> Argument:
        """The argument of a launch. `offsets` has the offset in the workspace of each scratch array."""
        match argument:
            case LocalMemoryArgument():
                return self._local(argument, values)
            case ArrayArgument(name=name):
                return WorkspaceArgument(offsets[name]) if name in offsets else OperandArgument(name)
            case ValueArgument(dtype=dtype) if dtype in FLOATS:
                return ScalarArgument(argument.value.number(values), dtype)
        lowest = int(np.iinfo(argument.dtype).min)
        return ScalarArgument(argument.value.integer(values, least=lowest), argument.dtype)

    def _local(self, argument: LocalMemoryArgument, values: Mapping[str, Value]) -> LocalArgument:
        return LocalArgument(round_up(argument.size.integer(values, least=1), self.local_alignment))


def _memory(problem: Problem, target: Target, scratch_bytes: int) -> Iterator[Rejection]:
    needs = {operand.name: storage_bytes(operand) for operand in CustomOperation().operands(problem)}
    if scratch_bytes:
        needs["scratch"] = scratch_bytes
    largest = max(needs, key=needs.__getitem__)
    if needs[largest] > target.max_allocation_bytes:
        detail = f"{largest} has {needs[largest]} bytes, the device allocates at most {target.max_allocation_bytes}"
        yield Rejection("allocation size", detail)
    if sum(needs.values()) > target.global_memory_bytes:
        yield Rejection("memory", f"{sum(needs.values())} bytes, the device has {target.global_memory_bytes}")


def _launch(launch: DescribedLaunch, values: Mapping[str, Value], arguments: Mapping[str, Argument]) -> Launch:
    work_group, grid = _three(launch.work_group, values), _three(launch.grid, values)
    if launch.in_items:
        grid = tuple(map(ceil_div, grid, work_group))  # type: ignore[assignment]  # three, like its terms
    return Launch(0, launch.entry, grid, work_group, tuple(arguments[name] for name in launch.arguments))


def _scratch_offsets(scratch: Sequence[ArrayArgument], values: Mapping[str, Value]) -> tuple[dict[str, int], int]:
    """The offset of each scratch array in the workspace, and the bytes of all."""
    offsets, end = dict[str, int](), 0
    for array in scratch:
        offsets[array.name] = end
        elements = prod(extent.integer(values) for extent in array.shape)
        end += round_up(elements * np.dtype(array.dtype).itemsize, SCRATCH_ALIGNMENT)
    return offsets, end


def _three(extents: Sequence[Expression], values: Mapping[str, Value]) -> tuple[int, int, int]:
    numbers = [extent.integer(values, least=1) for extent in extents]
    x, y, z = [*numbers, 1, 1, 1][:3]
    return x, y, z


def limits_of(target: Target) -> dict[str, Value]:
    """The properties of the device that a description may name (`LIMITS`), with their values."""
    return {
        "ComputeUnits": target.compute_units,
        "LocalMemoryBytes": target.local_memory_bytes,
        "MaxWorkGroupSize": target.max_work_group_size,
        "SubGroupSize": target.sub_group_size,
    }


def _macro(value: Value) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
