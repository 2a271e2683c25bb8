"""Compiling the programs of a `random tune` for a device that is not here; nothing is launched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tunesmith.bench import Compilation
from tunesmith.devices import absent_target
from tunesmith.records import (
    Binary,
    CompiledFacts,
    Configuration,
    LaunchShape,
    Measurement,
    Module,
    ProblemType,
    Rejection,
    Target,
)
from tunesmith.session.frame import events
from tunesmith.session.frame.oracle import ConfigurationOracle
from tunesmith.session.frame.record import RunOutcome
from tunesmith.session.frame.run import Run, RunPlan, carry_out
from tunesmith.toolchains import TOOLCHAINS

from .plan import POLICY
from .task import RandomTask, configuration_of, default_shape, family_on, plain_name


@dataclass(frozen=True, slots=True)
class ProgramCompilation:
    """A generator's program for a distribution, a type and a block size, and the result of compiling it.

    `configuration` is one of those with the block size: grid sizes are not compiled in. With a `rejection`, the program
    was not compiled, or the compiled program is useless. `failure` says why the compiler gave no binary. `found` means
    that an earlier run had compiled the program.
    """

    generator: str
    name: str
    configuration: Configuration = Configuration()
    modules: tuple[Module, ...] = ()
    facts: tuple[CompiledFacts, ...] = ()
    rejection: Rejection | None = None
    failure: Measurement | None = None
    found: bool = False


class CompilePlan(RunPlan):
    """A plan that compiles and measures nothing. `compiler` is the name of the compiler of `programs`."""

    policy = POLICY
    measures = False

    def __init__(self, task: RandomTask, target: Target) -> None:
        self.target, self.compiler = target, TOOLCHAINS[family_on(target).language].version(target)
        self._planned = list(_programs(task, target))
        self.programs: list[ProgramCompilation] = []

    def carry_out(self, run: Run) -> None:
        modules = {module.digest(): module for program in self._planned for module in program.modules}
        run.observe(events.CompilingBegan(self.target, self.compiler, len(modules)))
        compilations = run.bench(self.target).compile(list(modules.values()))
        by_digest = {compilation.module.digest(): compilation for compilation in compilations}
        self.programs = [self._compiled(program, by_digest) for program in self._planned]

    def remarks(self) -> Iterator[str]:
        """A sentence for each program that the compiler failed on."""
        for program in self.programs:
            if failure := program.failure:
                yield f"{program.name}: {failure.reason}: {_error_line(failure.detail)}"

    def _compiled(self, program: ProgramCompilation, by_digest: Mapping[str, Compilation]) -> ProgramCompilation:
        compilations = [by_digest[module.digest()] for module in program.modules]
        results = [compilation.made for compilation in compilations]
        failure = next((result for result in results if isinstance(result, Measurement)), None)
        facts = tuple(fact for result in results if isinstance(result, Binary) for fact in result.facts)
        useless = next(family_on(self.target).rejections_compiled(program.configuration, facts, self.target), None)
        rejection = program.rejection or (None if failure else useless)
        found = bool(compilations) and all(compilation.found for compilation in compilations)
        return replace(program, facts=facts, rejection=rejection, failure=failure, found=found)


def compile_random(
    task: RandomTask, folder: Path, architecture: str, *, observe: events.Observer = events.nobody
) -> RunOutcome[CompilePlan]:
    """Compile every program of a task for an architecture, on all cores, into the cache of the run folder `folder`.

    A program depends on generator, distribution, type and block size; its binary also depends on compiler and
    architecture. So a later `tune_random` in this folder finds all of them, whatever the device's compute units and
    memory are. Raises UserError for a task that makes no sense and for an architecture that cannot be compiled for.
    """
    task.check()
    return carry_out(CompilePlan(task, absent_target(architecture)), folder, observe=observe)


def _programs(task: RandomTask, target: Target) -> Iterator[ProgramCompilation]:
    """The programs of a task before they are compiled, each with modules or with a rejection."""
    family = family_on(target)
    for generator, problems in task.problems(target).items():
        shapes = dict.fromkeys((default_shape(generator), *task.matrix(generator, target).shapes()))
        for kind in problems:
            oracle = ConfigurationOracle(kind, target)
            for block in sorted({shape.block for shape in shapes}):
                of_block = [shape for shape in shapes if shape.block == block and task.includes(kind, shape)]
                if not of_block:
                    continue
                config, rejection = _first_legal(oracle, kind, of_block, target)
                full = oracle.solution(config).configuration
                modules = () if rejection else family.modules(full, kind)
                yield ProgramCompilation(
                    generator.name, f"{plain_name(kind)}_t{block}", full, modules, rejection=rejection
                )


def _first_legal(
    oracle: ConfigurationOracle, kind: ProblemType, shapes: list[LaunchShape], target: Target
) -> tuple[Configuration, Rejection | None]:
    """The first legal configuration with one of these shapes; if none is legal, the first one with its rejection."""
    configs = [configuration_of(kind, shape, target) for shape in shapes]
    legal = next((config for config in configs if not oracle.rejections(config)), None)
    return (legal, None) if legal else (configs[0], oracle.rejections(configs[0])[0])


def _error_line(log: str) -> str:
    """The first line of a compiler's log that contains "error", else the first line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no message")
