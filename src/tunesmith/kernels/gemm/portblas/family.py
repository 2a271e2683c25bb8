"""The two families with portBLAS's parameters: one source in two languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.gemm.cuda_common import wrong_device
from tunesmith.kernels.gemm.types import beyond_blas
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, Module, Plan, Problem, ProblemType, Rejection, Target, Value
from tunesmith.spaces import Space

from . import rules
from .algorithms import ALGORITHMS
from .parameters import NAMED_BY, space
from .programs import EntryPoint, program, shared_bytes
from .tiling import ELEMENTS, ProgramTraits, Tiling

SINGLE_BYTES = 4
"""Bytes of an element in `derived`, which does not know the problem type."""


class PortBlasGemm(Kernel):
    """D = alpha op(A) op(B) + beta C by five algorithms with the parameters of portBLAS's GEMM kernels, in OpenCL C.

    On a CPU, work-items compute in its widest vectors and read them at any address. On a GPU they use vectors of 16
    bytes if leading dimensions and addresses allow, otherwise single elements.
    """

    name, operation, language = "PortBlasGemm", "GEMM", "OpenCL"
    named_by = NAMED_BY
    options: tuple[str, ...] = ("-cl-std=CL1.2", "-cl-mad-enable")

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return space(self.language)

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        tiling = Tiling.of(config)
        if tiling.algorithm not in ALGORITHMS:
            names = ", ".join(ALGORITHMS)
            yield Rejection("algorithm", f"{self.name} has no {tiling.algorithm}; there are {names}")
            return
        if type_rejections := list(beyond_blas(problem_type, ELEMENTS)):
            yield from type_rejections
            return
        yield from rules.common(ALGORITHMS[tiling.algorithm], tiling, ProgramTraits.of(problem_type), target)

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        tiling = Tiling.of(config)
        plan = self.plan(config, problem, target)
        yield from rules.problem_fits(ALGORITHMS[tiling.algorithm], tiling, problem, plan, target)

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        tiling = Tiling.of(config)
        yield from rules.compiled(ALGORITHMS[tiling.algorithm], tiling, facts, target)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        return (_module(self.language, self.options, Tiling.of(config), ProgramTraits.of(problem_type)),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        gemm, tiling, traits = Gemm.of(problem), Tiling.of(config), ProgramTraits.of(problem.type)
        if not gemm.m * gemm.n * gemm.batch:
            return Plan(())
        algorithm = ALGORITHMS[tiling.algorithm]
        return algorithm.plan(tiling, traits, gemm, target, shared_bytes(algorithm, tiling, traits, self.language))

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        """The derived values; DepthU is the number of a stage's steps for elements of 4 bytes."""
        tiling = Tiling.of(config)
        algorithm = ALGORITHMS.get(tiling.algorithm, ALGORITHMS["local"])
        return {
            "MacroTile": algorithm.block(tiling),
            "DepthU": max(1, tiling.cache_line // SINGLE_BYTES) if algorithm.is_staged else 1,
            "WorkGroupSize": algorithm.items(tiling),
        }


class PortBlasCuda(PortBlasGemm):
    """PortBlasGemm's source as CUDA C++, compiled by NVRTC. Vectors have at most 16 bytes."""

    name, language = "PortBlasCuda", "CUDA"
    options = ("--diag-suppress=177",)  # a function that this program does not need

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        yield from wrong_device(target)
        yield from super().rejections(config, problem_type, target)


@lru_cache(maxsize=4096)
def _module(language: str, options: tuple[str, ...], tiling: Tiling, traits: ProgramTraits) -> Module:
    algorithm = ALGORITHMS[tiling.algorithm]
    text = program(algorithm, tiling, traits, language, [EntryPoint("gemm", traits.transpose_a, traits.transpose_b)])
    return Module(language, text, ("gemm", "reduce") if algorithm.split else ("gemm",), options)
