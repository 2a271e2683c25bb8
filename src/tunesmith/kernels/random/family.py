"""The kernel families of random generators: one source in two languages, with a block and a grid to choose.

`_text` joins a program's source from files of `source/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

import numpy as np

from tunesmith.kernels.base import Facts, Kernel, source
from tunesmith.kernels.cuda_limits import DECLARED_SHARED_BYTES, MOST_WORK_GROUPS, REGISTERS_PER_BLOCK
from tunesmith.problems.random import GENERATORS, GeneratorKind, RandomFill, poisson_table, width_of
from tunesmith.records import (
    Argument,
    Configuration,
    Launch,
    Module,
    OperandArgument,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    ScalarArgument,
    Target,
    WorkspaceArgument,
    Write,
)
from tunesmith.spaces import ActsAt, Parameter, Space

from .launches import work_groups_of_fill
from .programs import HEADERS, PROGRAMS, GeneratorProgram, constant_tables, workspace_offsets

CHECKED_TURNS = 2
"""Whole vectors that each engine gives when a configuration is verified; some engines give one more."""

MOST_CHECKED = 1 << 22
"""The most values of a problem that is verified; more would only repeat what every work-item does already."""

DISTRIBUTION_KINDS = {name: number for number, name in enumerate(("uniform", "normal", "log_normal", "poisson"))}
"""The numbers of the distributions in `source/types.h`."""
VALUE_KINDS = {
    name: number
    for number, name in enumerate(
        ("unsigned_char", "unsigned_short", "unsigned_int", "unsigned_long_long", "half", "float", "double")
    )
}
"""The numbers of the value types in `source/types.h`."""


class OpenCLRandom(Kernel):
    """A generator in OpenCL C: `BlockSize` work-items in each of `GridSize` work-groups, looping over the output."""

    name, operation, language = "OpenCLRandom", "Random", "OpenCL"
    quiet: tuple[str, ...] = ()
    """Compiler options that suppress warnings."""

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        generator = GENERATORS[problem_type.fields.word("Generator")]
        return Space(
            (
                Parameter("KernelLanguage", self.language, (self.language,), "The language the kernel is compiled as."),
                Parameter(
                    "BlockSize",
                    generator.default_block,
                    (64, 128, 256, 512, 1024),
                    "Work-items of a work-group (rocRAND's threads).",
                    accepts="positive integer",
                ),
                Parameter(
                    "GridSize",
                    generator.default_grid,
                    (64, 128, 256, 512, 1024, 2048),
                    "Work-groups (rocRAND's blocks), of a Sobol generator in each dimension; fewer for a small buffer, "
                    "where that changes no number.",
                    ActsAt.LAUNCH,
                    accepts="positive integer",
                ),
            )
        )

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        generator, block = GENERATORS[problem_type.fields.word("Generator")], config.integer("BlockSize")
        if self.language != target.api:
            yield Rejection("device API", f"{target.name} is reached by {target.api}, which runs no {self.language}")
        if block > target.max_work_group_size:
            yield Rejection("work-group size", f"{block} work-items, the device allows {target.max_work_group_size}")
        program = PROGRAMS[generator.name]
        is_double = problem_type.fields.word("ValueType") == "double" or program.needs_double
        if is_double and not target.double_precision:
            yield Rejection("double precision", f"{target.name} does not compute in double precision")
        if (need := program.local_bytes(block)) > target.local_memory_bytes:
            yield Rejection("local memory", f"{need} bytes, the device has {target.local_memory_bytes}")
        if generator.kind is GeneratorKind.ENGINE:
            yield from _wrong_engines(config, problem_type)

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        fill = RandomFill.of(problem)
        need = fill.count * fill.dimensions * np.dtype(fill.dtype).itemsize
        if need > target.max_allocation_bytes:
            yield Rejection("maximum allocation", f"{need} bytes, the device allows {target.max_allocation_bytes}")
        if fill.dimensions > MOST_WORK_GROUPS[1]:
            yield Rejection("grid", f"{fill.dimensions} dimensions, a launch has at most {MOST_WORK_GROUPS[1]}")

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        block = config.integer("BlockSize")
        for fact in facts:
            if fact.registers and fact.registers * block > REGISTERS_PER_BLOCK and target.api == "CUDA":
                need = f"{fact.registers} registers for each of {block} work-items"
                yield Rejection("registers", f"{need}, a work-group has {REGISTERS_PER_BLOCK}")

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        fields = problem_type.fields
        program, generator = PROGRAMS[fields.word("Generator")], GENERATORS[fields.word("Generator")]
        macros: dict[str, int | str] = {
            "BLOCK_SIZE": config.integer("BlockSize"),
            "DISTRIBUTION_KIND": DISTRIBUTION_KINDS[fields.word("Distribution")],
            "VALUE_KIND": VALUE_KINDS[fields.word("ValueType")],
            "DOUBLE_WORDS": width_of(generator, "uniform", "double").words,
            **program.macros,
        }
        if self._local_at_launch(program, config.integer("BlockSize")):
            macros["LOCAL_AT_LAUNCH"] = 1
        options = (*self.quiet, *(f"-D{name}={value}" for name, value in macros.items()))
        return (Module(self.language, _text(program.sources), program.entries, options),)

    def _local_at_launch(self, program: GeneratorProgram, block: int) -> int:
        """Bytes of local memory that a launch must ask for because the source may not declare them."""
        return 0

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        fill = RandomFill.of(problem)
        program = PROGRAMS[fill.generator.name]
        block = (config.integer("BlockSize"), 1, 1)
        size = fill.count * np.dtype(fill.dtype).itemsize
        grid = (work_groups_of_fill(fill.generator, block[0], config.integer("GridSize"), size), fill.dimensions, 1)
        tables, shared = constant_tables(fill), self._local_at_launch(program, block[0])
        offsets, workspace_size = workspace_offsets(program, engines_of(config), tables)
        distribution = tuple(_distribution_arguments(fill, problem.scalars, offsets))
        setup: tuple[Write | Launch, ...] = tuple(Write(offsets[name], data) for name, data in tables.items())
        seed, offset = ScalarArgument(fill.seed, "uint64"), ScalarArgument(fill.offset, "uint64")
        if fill.generator.kind is GeneratorKind.COUNTER:
            generator: tuple[Argument, ...] = (seed, offset)
        elif fill.generator.kind is GeneratorKind.QUASI:
            generator = (*(WorkspaceArgument(offsets[name]) for name in ("directions", "shift")), offset)
        else:
            state = WorkspaceArgument()
            generator = (state, ScalarArgument(fill.offset % engines_of(config), "uint32"))
            seeding = (state, WorkspaceArgument(offsets["jumps"]), seed, offset)
            setup = (*setup, Launch(0, "initialise", grid, block, seeding, shared))
        arguments = (OperandArgument("Out"), ScalarArgument(fill.count, "uint64"), *generator, *distribution)
        return Plan((Launch(0, "generate", grid, block, arguments, shared),), workspace_size, setup)

    def checks(self, config: Configuration, problem: Problem, usual: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """The problem with the engines of this launch and at most `MOST_CHECKED` values; then again with an offset."""
        fill = RandomFill.of(problem)
        engines = engines_of(config)
        scalars = problem.scalars
        if fill.generator.kind is GeneratorKind.ENGINE:
            scalars = scalars | {"engines": engines}
        turns = engines * fill.width.values * CHECKED_TURNS + engines // 3 + 1
        sizes = (min(fill.count, MOST_CHECKED, turns), *(min(size, 3) for size in problem.sizes[1:]))
        checked = replace(problem, sizes=sizes, scalars=scalars)
        if not fill.generator.skips:
            return (checked,)
        return checked, replace(checked, scalars=scalars | {"offset": fill.offset + 4 * engines + 5})


class CudaRandom(OpenCLRandom):
    """The same source, compiled as CUDA C++ by NVRTC."""

    name, language = "CudaRandom", "CUDA"
    quiet = ("--diag-suppress=177",)  # a function that this generator does not need

    def _local_at_launch(self, program: GeneratorProgram, block: int) -> int:
        need = program.local_bytes(block)
        return need if need > DECLARED_SHARED_BYTES else 0


def engines_of(config: Configuration) -> int:
    """The engines of a launch: its work-items in one dimension."""
    return config.integer("BlockSize") * config.integer("GridSize")


def _wrong_engines(config: Configuration, problem_type: ProblemType) -> Iterator[Rejection]:
    generator = GENERATORS[problem_type.fields.word("Generator")]
    block, engines = config.integer("BlockSize"), engines_of(config)
    if problem_type.fields.word("Ordering") == "default" and engines != generator.default_engines:
        yield Rejection("ordering", f"{engines} engines, the default sequence is that of {generator.default_engines}")
    if generator.power_of_two and engines & (engines - 1):
        yield Rejection("duplicate streams", f"{engines} engines are no power of two: some would share a stream")
    if generator.block and block != generator.block:
        yield Rejection("work-group size", f"{block} work-items, this generator has {generator.block}")
    elif block % generator.block_multiple:
        detail = f"{block} work-items of a work-group, where {generator.block_multiple} each share a state"
        yield Rejection("engines", detail)
    if generator.most_engines and engines > generator.most_engines:
        yield Rejection("engines", f"{engines} engines, there are streams for {generator.most_engines}")


def _distribution_arguments(fill: RandomFill, scalars: Configuration, offsets: Mapping[str, int]) -> Iterator[Argument]:
    """The arguments of DISTRIBUTION_ARGUMENTS in `source/distributions.h`."""
    if fill.distribution in ("normal", "log_normal"):
        real = "float64" if fill.dtype == "float64" else "float32"
        yield from (ScalarArgument(float(scalars[name]), real) for name in ("mean", "stddev"))  # type: ignore[arg-type]
    if fill.distribution == "poisson":
        table = poisson_table(fill.lam)
        yield WorkspaceArgument(offsets["poisson"])
        yield from (ScalarArgument(value, "uint32") for value in (table.bits, table.base))
        yield from (ScalarArgument(value, "float32") for value in (fill.lam - table.base, float(np.sqrt(fill.lam))))


@cache
def _text(sources: tuple[str, ...]) -> str:
    return "\n".join(source(__package__, "source", name) for name in (*HEADERS, *sources))
