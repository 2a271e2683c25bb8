"""`CudaWgmmaGemm`: warp-group products on tiles that TMA fetches; one warp group fetches for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tunesmith.kernels.base import Facts, Kernel
from tunesmith.kernels.gemm.cuda.aligned import aligned_module
from tunesmith.records import Configuration, Module, Plan, Problem, ProblemType, Rejection, Target, Value
from tunesmith.spaces import Space

from . import rules
from .guess import seconds
from .launch import plan_of
from .operand_types import ROW_BYTES
from .parameters import INSTRUCTION, space_of
from .shape import ROWS_OF_A_GROUP, cluster_parts_of
from .text import module


class CudaWgmmaGemm(Kernel):
    """Persistent work-groups with macro tiles of 64 x WarpGroups by InstructionColumns, and 128 bytes of K a stage.

    Operands are fp16, bf16, float8, int8 or TF32 in any layout. Sums are in float32 (int32 for int8), D in the type of
    the operands or of the sums; bias, activation and scales are supported. Operands whose strides TMA does not take are
    copied first. Operands of float8, int8 and TF32 that are not contiguous along K are transposed.
    docs/gemm-wgmma.md explains the kernel.
    """

    name, operation, language, named_by = "CudaWgmmaGemm", "GEMM", "CUDA", INSTRUCTION.name

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return space_of(problem_type, target)

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        yield from rules.rejections(config, problem_type, target)

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        yield from rules.rejections_for(config, problem, target)

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        yield from rules.rejections_compiled(facts)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        return (module(config, problem_type), aligned_module())

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        return plan_of(config, problem, target)

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        rows, columns = ROWS_OF_A_GROUP * config.integer("WarpGroups"), config.integer("InstructionColumns")
        tile = (columns, rows) if config.word("RowsAlong") == "N" else (rows, columns)
        work_items = 128 * (config.integer("WarpGroups") + 1)
        parts = cluster_parts_of(config)
        return {"MacroTile": tile, "DepthBytes": ROW_BYTES, "WorkGroupSize": work_items, "ClusterParts": parts}

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float | None:
        return seconds(config, problem, target)
