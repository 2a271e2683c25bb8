"""`CudaSimtGemm`: GEMM in CUDA C++ by plain multiply-adds; with split-K, a second launch adds the parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from tunesmith.kernels.base import Facts, Kernel, source
from tunesmith.kernels.gemm.cuda_common import (
    BlockTile,
    tile_parameters,
    useless_program,
    wrong_device,
    wrong_size,
    wrong_work_group,
)
from tunesmith.kernels.gemm.launching import integers, longs, too_much_local
from tunesmith.kernels.gemm.parameters import GLOBAL_SPLIT, language
from tunesmith.kernels.gemm.stream_k import ceil_div
from tunesmith.kernels.gemm.types import wrong_type
from tunesmith.problems.gemm import DATA_TYPES, Gemm
from tunesmith.records import (
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
    Value,
    WorkspaceArgument,
)
from tunesmith.spaces import ActsAt, Space

REDUCE_THREADS = 256
LARGEST_THREAD_TILE = 128
"""The most elements of D per work-item: more sums do not fit into 255 registers beside everything else."""


class CudaSimtGemm(Kernel):
    """One macro tile a work-group, staged through shared memory (`simt.cu`).

    With GlobalSplitU = s > 1, s work-groups take one part of K each for the same macro tile. They write their sums to
    the workspace, which has s x Batch x N x M elements, and a second launch adds them in a fixed order. Only whether K
    is split is compiled in, so that all s > 1 share a program.
    """

    name, operation, language = "CudaSimtGemm", "GEMM", "CUDA"

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space((language(self.language), *tile_parameters(), replace(GLOBAL_SPLIT, when=ActsAt.LAUNCH)))

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        tile = BlockTile.of(config)
        yield from wrong_device(target)
        yield from wrong_type(problem_type)
        yield from wrong_work_group(tile, target)
        if tile.thread_m * tile.thread_n > LARGEST_THREAD_TILE:
            elements = f"{tile.thread_m} x {tile.thread_n} elements"
            yield Rejection("registers", f"{elements} for a work-item, at most {LARGEST_THREAD_TILE} stay in registers")
        yield from too_much_local(tile.operand_bytes(_dtype(problem_type)), "for two operand tiles", target)

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        gemm, parts = Gemm.of(problem), config.integer("GlobalSplitU")
        groups_x = max(BlockTile.of(config).count(gemm), -(-gemm.m * gemm.n // REDUCE_THREADS))
        yield from wrong_size(problem, groups_x, gemm.batch * parts, _workspace(gemm, parts), target)
        if parts > gemm.k:
            yield Rejection("global split", f"{parts} parts of K = {gemm.k} leave some without work")

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        for fact in facts:
            if fact.entry == "gemm":
                yield from useless_program(fact, BlockTile.of(config).items)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        tile, fields = BlockTile.of(config), problem_type.fields
        split = config.integer("GlobalSplitU") > 1
        macros: dict[str, int | str] = {
            "REAL": {"float32": "float", "float64": "double"}[_dtype(problem_type)],
            "ITEMS_M": tile.items_m,
            "ITEMS_N": tile.items_n,
            "THREAD_M": tile.thread_m,
            "THREAD_N": tile.thread_n,
            "DEPTH": tile.depth,
            "A_ALONG_K": int(fields.flag("TransposeA")),
            "B_ALONG_K": int(not fields.flag("TransposeB")),
            "SPLIT": int(split),
            "REDUCE_THREADS": REDUCE_THREADS,
        }
        options = tuple(f"-D{name}={value}" for name, value in macros.items())
        entries = ("gemm", "reduce") if split else ("gemm",)
        return (Module(self.language, source(__package__, "simt.cu"), entries, options),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        gemm, tile, parts = Gemm.of(problem), BlockTile.of(config), config.integer("GlobalSplitU")
        part = ceil_div(ceil_div(gemm.k, tile.depth), parts) * tile.depth
        outputs = (OperandArgument("C"), OperandArgument("D"))
        strides_and_factors = (
            *longs(gemm.ldc, gemm.ldd, gemm.stride_c, gemm.stride_d),
            *(ScalarArgument(value, gemm.dtype) for value in (gemm.alpha, gemm.beta)),
        )
        multiply = Launch(
            module=0,
            entry="gemm",
            grid=(tile.count(gemm), 1, gemm.batch * parts),
            work_group=(tile.items, 1, 1),
            arguments=(
                *(OperandArgument("A"), OperandArgument("B")),
                *((WorkspaceArgument(),) if parts > 1 else outputs),
                *integers(gemm.m, gemm.n, gemm.k, part, parts),
                *longs(gemm.lda, gemm.ldb, gemm.stride_a, gemm.stride_b),
                *(() if parts > 1 else strides_and_factors),
            ),
            shared_bytes=tile.operand_bytes(gemm.dtype),
        )
        if parts == 1:
            return Plan((multiply,))
        add = Launch(
            module=0,
            entry="reduce",
            grid=(-(-gemm.m * gemm.n // REDUCE_THREADS), 1, gemm.batch),
            work_group=(REDUCE_THREADS, 1, 1),
            arguments=(WorkspaceArgument(), *outputs, *integers(gemm.m, gemm.n, parts), *strides_and_factors),
        )
        return Plan((multiply, add), workspace_bytes=_workspace(gemm, parts))

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        return BlockTile.of(config).derived()


def _dtype(problem_type: ProblemType) -> str:
    return DATA_TYPES[problem_type.fields.word("DataType")].dtype


def _workspace(gemm: Gemm, parts: int) -> int:
    return 0 if parts == 1 else parts * gemm.batch * gemm.n * gemm.m * np.dtype(gemm.dtype).itemsize
