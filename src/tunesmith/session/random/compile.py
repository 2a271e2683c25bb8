"""Compiling what a tuning of generators would need, for a device that is not there: nothing is launched."""

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
    """A generator's program for a distribution, a type and a block size, and what came of it.

    `configuration` is one that has the block size: grid sizes are not compiled in. With a `rejection` it was not
    compiled, or is useless as it came out; `failure` says why the compiler gave none. `found`: an earlier run had
    compiled it.
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
    """Compiles and measures nothing. `compiler` made the binaries of `programs`."""

    policy = POLICY
    measures = False

    def __init__(self, task: RandomTask, target: Target) -> None:
        self.target, self.compiler = target, TOOLCHAINS[family_on(target).language].version(target)
        self._wanted = list(_programs(task, target))
        self.programs: list[ProgramCompilation] = []

    def carry_out(self, run: Run) -> None:
        modules = {module.digest(): module for one in self._wanted for module in one.modules}
        run.observe(events.CompilingBegan(self.target, self.compiler, len(modules)))
        made = {one.module.digest(): one for one in run.bench(self.target).compile(list(modules.values()))}
        self.programs = [self._compiled(program, made) for program in self._wanted]

    def remarks(self) -> Iterator[str]:
        """A sentence for each program that the compiler did not make."""
        for program in self.programs:
            if failure := program.failure:
                yield f"{program.name}: {failure.reason}: {_telling_line(failure.detail)}"

    def _compiled(self, program: ProgramCompilation, made: Mapping[str, Compilation]) -> ProgramCompilation:
        mine = [made[module.digest()] for module in program.modules]
        results = [one.made for one in mine]
        failure = next((one for one in results if isinstance(one, Measurement)), None)
        facts = tuple(fact for one in results if isinstance(one, Binary) for fact in one.facts)
        useless = next(family_on(self.target).rejections_compiled(program.configuration, facts, self.target), None)
        rejection = program.rejection or (None if failure else useless)
        found = bool(mine) and all(one.found for one in mine)
        return replace(program, facts=facts, rejection=rejection, failure=failure, found=found)


def compile_random(
    task: RandomTask, folder: Path, architecture: str, *, observe: events.Observer = events.nobody
) -> RunOutcome[CompilePlan]:
    """Compile every program of a task for an architecture, on all cores, into the cache of the run folder `folder`.

    A program depends on generator, distribution, type and block size, and its binary on compiler and architecture
    beside: so a later `tune_random` there finds all of them, whatever its device's compute units and memory are.
    Raises UserError for a task that means nothing and for an architecture that cannot be compiled for.
    """
    task.check()
    return carry_out(CompilePlan(task, absent_target(architecture)), folder, observe=observe)


def _programs(task: RandomTask, target: Target) -> Iterator[ProgramCompilation]:
    """Those of a task, before they are compiled: with modules, or with a rejection."""
    family = family_on(target)
    for generator, problems in task.problems(target).items():
        shapes = dict.fromkeys((default_shape(generator), *task.matrix(generator, target).shapes()))
        for kind in problems:
            oracle = ConfigurationOracle(kind, target)
            for block in sorted({shape.block for shape in shapes}):
                mine = [shape for shape in shapes if shape.block == block and task.wants(kind, shape)]
                if not mine:
                    continue
                config, rejection = _first_legal(oracle, kind, mine, target)
                own = oracle.solution(config).configuration
                modules = () if rejection else family.modules(own, kind)
                yield ProgramCompilation(
                    generator.name, f"{plain_name(kind)}_t{block}", own, modules, rejection=rejection
                )


def _first_legal(
    oracle: ConfigurationOracle, kind: ProblemType, shapes: list[LaunchShape], target: Target
) -> tuple[Configuration, Rejection | None]:
    """A configuration with one of these grids, and if none is legal why the first is not."""
    configs = [configuration_of(kind, shape, target) for shape in shapes]
    legal = next((config for config in configs if not oracle.rejections(config)), None)
    return (legal, None) if legal else (configs[0], oracle.rejections(configs[0])[0])


def _telling_line(log: str) -> str:
    """The first line that speaks of an error, else the first."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line.lower()), lines[0] if lines else "no message")
