"""`OpenClGemm`, the answers that both OpenCL families share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.gemm.launching import input_arguments
from tunesmith.problems.gemm import Gemm
from tunesmith.records import (
    Configuration,
    Module,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    Target,
    Value,
    WorkspaceArgument,
)

from . import rules as rules
from .guess import seconds
from .launches import REDUCTION_ITEMS, product, sums_bytes
from .panels import Panels
from .schedule import OpenCLSchedule
from .text import opencl_module

ALIGNMENT = 256
"""Bytes to which parts of the workspace are aligned: enough for any vector and for views of a buffer."""


class OpenClGemm(Kernel):
    """A GEMM whose work is cut as `OpenCLSchedule` says. Families differ in their `template` and the values for it."""

    operation, language = "GEMM", "OpenCL"
    template: str

    @abstractmethod
    def work_group(self, schedule: OpenCLSchedule) -> tuple[int, int, int]:
        """Work-items of a work-group of the product."""

    @abstractmethod
    def values(self, config: Configuration, problem_type: ProblemType) -> Mapping[str, object]:
        """The template's values beside those that all templates have."""

    @abstractmethod
    def wrong_form(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        """The rejections of this form alone."""

    @abstractmethod
    def wrong_edges(self, config: Configuration, problem_type: ProblemType, gemm: Gemm) -> Iterator[Rejection]:
        """The rejections of matrices that are too small to move addresses back at their edges (ShiftPtr)."""

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        form = self.form["LocalMemory"]
        if config.flag("LocalMemory") != form:
            yield Rejection("form", f"{self.name} is the form with LocalMemory: {form}")
        yield from rules.common(OpenCLSchedule.of(config), problem_type, target)
        yield from rules.depth(OpenCLSchedule.of(config))
        yield from self.wrong_form(config, problem_type, target)

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        if config.word("EdgeType") == "ShiftPtr":
            yield from self.wrong_edges(config, problem.type, Gemm.of(problem))
        yield from rules.problem_fits(OpenCLSchedule.of(config), problem, self.plan(config, problem, target), target)

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        yield from rules.compiled(OpenCLSchedule.of(config), facts, target)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        return (_module(self, config, problem_type),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        gemm, schedule = Gemm.of(problem), OpenCLSchedule.of(config)
        if not gemm.m * gemm.n * gemm.batch:
            return Plan(())
        panels = Panels.of(config, problem.type)
        sizes = (sums_bytes(schedule, gemm), *(packed.size(gemm) for packed in panels))
        sums, *offsets, end = accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in sizes), initial=0)
        copies = [(packed, WorkspaceArgument(offset)) for packed, offset in zip(panels, offsets, strict=True)]
        packing = [packed.pack(gemm, copy) for packed, copy in copies] if gemm.k else []
        arguments = {name: input_arguments(name, gemm) for name in "AB"}
        arguments |= {packed.operand: packed.input_arguments(gemm, copy) for packed, copy in copies}
        inputs, work_group = (*arguments["A"], *arguments["B"]), self.work_group(schedule)
        return Plan((*packing, *product(schedule, gemm, inputs, WorkspaceArgument(sums), work_group)), end)

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        schedule = OpenCLSchedule.of(config)
        return {
            "MacroTile": schedule.macro_tile,
            "MacroTile0": schedule.macro_tile[0],
            "MacroTile1": schedule.macro_tile[1],
            "DepthU": schedule.depth,
            "LoopUnroll": schedule.loop_unroll,
            "NumThreads": schedule.work_items,
            "WorkGroupSize": schedule.work_items,
        }

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float | None:
        gemm = Gemm.of(problem)
        copied = sum(2 * panels.size(gemm) for panels in Panels.of(config, problem.type))
        return seconds(OpenCLSchedule.of(config), problem, target, copied)


@lru_cache(maxsize=8192)
def _module(family: OpenClGemm, config: Configuration, problem_type: ProblemType) -> Module:
    schedule = OpenCLSchedule.of(config)
    packing = (f"pack_{panels.operand}" for panels in Panels.of(config, problem_type))
    values = {
        "schedule": schedule,
        "work_group": family.work_group(schedule),
        "shift": config.word("EdgeType") == "ShiftPtr",
        "reduction_items": REDUCTION_ITEMS,
        **family.values(config, problem_type),
    }
    return opencl_module(family.template, values, problem_type, (*packing, "gemm", *schedule.sums))
