"""The described kernel in Triton."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

import numpy as np

from tunesmith.kernels.base import Facts
from tunesmith.kernels.triton_types import TRITON_TYPES
from tunesmith.problems.custom import (
    FLOATS,
    MAXNREG,
    NUM_CTAS,
    NUM_WARPS,
    OPTIONS,
    ArrayArgument,
    Description,
    LocalMemoryArgument,
    ValueArgument,
    description_of,
    launch_parameters,
    sizes_of,
    triton_entry,
)
from tunesmith.records import (
    Configuration,
    Launch,
    Module,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    Target,
    Value,
)
from tunesmith.spaces import ActsAt, Space

from .cuda import too_many_groups
from .family import CustomKernel, limits_of

CONSTANT = "constexpr"
"""Triton's word for the type of a parameter that is a constant of the program."""

DEFAULT_WARPS = 4
"""Warps of a program if the description has no `num_warps`. Triton has the same default."""

CLUSTERS_SINCE = 90
"""The first compute capability, times ten, whose work-groups form clusters. `num_ctas` asks for clusters."""


class CustomTritonKernel(CustomKernel):
    """A described kernel whose arguments are those parameters of a jit function that are not constants.

    Described parameters are constants of the function, options of the compiler, or both. A parameter that only the
    launch uses has one program for all its values.
    """

    name, language = "CustomTriton", "Triton"

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        parameters = super().space(problem_type, target).parameters
        if not parameters:
            return Space(())
        only_launched = launch_parameters(description_of(problem_type))
        return Space(
            tuple(
                replace(parameter, when=ActsAt.LAUNCH) if parameter.name in only_launched else parameter
                for parameter in parameters
            )
        )

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        yield from super().rejections(config, problem_type, target)
        items, most = _warps(config) * target.sub_group_size, target.max_work_group_size
        if items > most:
            yield Rejection(
                "work-group size", f"{_warps(config)} warps are {items} work-items, the device allows {most}"
            )
        groups = _groups_of_program(config)
        if groups > 1 and not _has_clusters(target):
            yield Rejection("clusters", f"a program of {groups} work-groups (num_ctas), {target.name} has no clusters")

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        rejections = list(super().rejections_for(config, problem, target))
        yield from rejections or self._wrong_launch(config, problem, target)

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        for fact in facts:
            if (fact.local_bytes or 0) > target.local_memory_bytes:
                need = f"{fact.entry} takes {fact.local_bytes} bytes"
                yield Rejection("local memory", f"{need}, the device has {target.local_memory_bytes}")

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        """A module for each launch."""
        return tuple(self._module(config, launch) for launch in description_of(problem_type).single_launches)

    def launches(self, config: Configuration, problem: Problem, target: Target) -> tuple[Launch, ...]:
        """The launches, whose grids count the work-groups of all programs, without the constants."""
        launches = super().launches(config, problem, target)
        descriptions = description_of(problem.type).single_launches
        return tuple(
            _with_passed(replace(launch, module=number), description, config, target)
            for number, (launch, description) in enumerate(zip(launches, descriptions, strict=True))
        )

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        plan = super().plan(config, problem, target, facts)
        compiled = {fact.entry: fact.max_work_group_size for fact in facts if fact.max_work_group_size}
        steps = (
            replace(step, work_group=(compiled.get(step.entry, step.work_group[0]), 1, 1))
            for step in plan.steps
            if isinstance(step, Launch)
        )
        return replace(plan, steps=tuple(steps))

    def _module(self, config: Configuration, description: Description) -> Module:
        source, constants = description.sources[self.language], _constants(description, config)
        passed = [argument for argument in description.arguments if _is_passed(argument, constants)]
        types = {argument.name: _triton_type(argument) for argument in passed}
        pointers = tuple(argument.name for argument in passed if isinstance(argument, ArrayArgument))
        promised = tuple(name for name in description.divisible_by_16 if name in types)
        options: dict[str, Value] = {NUM_WARPS: DEFAULT_WARPS, **config.only(OPTIONS)}
        if not options.get(MAXNREG):
            options.pop(MAXNREG, None)
        settings: dict[str, Value] = {
            "signature": tuple(
                (parameter.name, types.get(parameter.name, CONSTANT))
                for parameter in triton_entry(description).parameters
            ),
            "constexprs": tuple(constants.items()),
            "divisible_by_16": (*pointers, *promised),
            "file": source.file,
        }
        return Module(self.language, source.text, description.entries, constants=Configuration(settings | options))

    def _wrong_launch(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        """Rejections of a grid that is too large, and of numbers that break a promise of `DivisibleBy16`."""
        for launch in self.launches(config, problem, target):
            yield from too_many_groups(launch)
        description = description_of(problem.type)
        values = {**config, **sizes_of(problem), **limits_of(target)}
        for argument in description.divisible_values:
            number = argument.value.evaluate(values)
            if isinstance(number, int | float) and number % 16:
                broken = f"{argument.name} is {number}, DivisibleBy16 promises a multiple of 16"
                yield Rejection("divisibility", broken)

    def _broken(
        self, description: Description, values: Mapping[str, Value], sizes: Sequence[str]
    ) -> Iterator[Rejection]:
        """The broken constraints. Work-groups and local memory of a description are those of its other languages."""
        arguments = tuple(item for item in description.arguments if not isinstance(item, LocalMemoryArgument))
        launches = tuple(replace(launch, work_group=(), local_memory=None) for launch in description.launches)
        yield from super()._broken(replace(description, launches=launches, arguments=arguments), values, sizes)


def _with_passed(launch: Launch, description: Description, config: Configuration, target: Target) -> Launch:
    """The launch with only the arguments that are no constants. The work-groups of a program lie along x."""
    constants = _constants(description, config)
    passed = tuple(
        value
        for argument, value in zip(description.arguments, launch.arguments, strict=True)
        if _is_passed(argument, constants)
    )
    x, y, z = launch.grid
    items = _warps(config) * target.sub_group_size
    return replace(launch, grid=(x * _groups_of_program(config), y, z), work_group=(items, 1, 1), arguments=passed)


def _constants(description: Description, config: Configuration) -> dict[str, Value]:
    """The value of each parameter of the function that is a constant of the program."""
    arguments = {argument.name: argument for argument in description.arguments}
    constants: dict[str, Value] = {}
    for parameter in triton_entry(description).constexprs(config):
        argument = arguments.get(parameter.name)
        if parameter.name in config:
            constants[parameter.name] = config[parameter.name]
        elif isinstance(argument, ValueArgument):
            constants[parameter.name] = _number(argument, config)
        elif parameter.default is not None:
            constants[parameter.name] = parameter.default
    return constants


def _number(argument: ValueArgument, config: Configuration) -> Value:
    """The value of a number that depends on nothing but parameters."""
    if argument.dtype in FLOATS:
        return argument.value.number(config)
    return argument.value.integer(config, least=int(np.iinfo(argument.dtype).min))


def _is_passed(
    argument: ArrayArgument | ValueArgument | LocalMemoryArgument, constants: Mapping[str, Value]
) -> TypeGuard[ArrayArgument | ValueArgument]:
    """Whether the launch passes the argument. Local memory is for other languages; Triton allocates its own."""
    return not isinstance(argument, LocalMemoryArgument) and argument.name not in constants


def _triton_type(argument: ArrayArgument | ValueArgument) -> str:
    return ("*" if isinstance(argument, ArrayArgument) else "") + TRITON_TYPES[argument.dtype]


def _warps(config: Configuration) -> int:
    return config.integer(NUM_WARPS) if NUM_WARPS in config else DEFAULT_WARPS


def _groups_of_program(config: Configuration) -> int:
    return config.integer(NUM_CTAS) if NUM_CTAS in config else 1


def _has_clusters(target: Target) -> bool:
    architecture = target.architecture
    is_nvidia = architecture.startswith("sm_")
    return is_nvidia and int(architecture.removeprefix("sm_").rstrip("af")) >= CLUSTERS_SINCE
