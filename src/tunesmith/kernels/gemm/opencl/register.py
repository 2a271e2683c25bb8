"""GEMM through registers and caches: a tile of D a work-item, without local memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from tunesmith.kernels.gemm import parameters as parameter
from tunesmith.problems.gemm import Gemm
from tunesmith.records import (
    Argument,
    CompiledFacts,
    Configuration,
    Launch,
    Module,
    OperandArgument,
    Plan,
    Problem,
    ProblemType,
    Rejection,
    Target,
    Value,
    WorkspaceArgument,
)
from tunesmith.spaces import Space

from . import _rules as rules
from ._family import OpenClGemm
from ._guess import seconds
from ._launches import REDUCTION_ITEMS, Workspace, integers, longs
from ._product import product, sums_bytes
from ._reasons import Reason
from ._render import render
from ._schedule import Schedule

PACK_DEPTH = 64
"""Steps along K that one work-item of a packing launch copies."""


@dataclass(frozen=True, slots=True)
class Panels:
    """An operand copied into panels as wide as the thread tile; see `register.cl.j2`.

    `along_tile` says that the operand's contiguous dimension is M (of A) or N (of B).
    """

    operand: str
    tile: int
    along_tile: bool

    @staticmethod
    def of(config: Configuration, problem_type: ProblemType) -> tuple[Panels, ...]:
        """The operands that are packed, A before B."""
        tile = dict(zip("AB", config.integers("ThreadTile"), strict=True))
        contiguous_k = {"A": problem_type.fields.flag("TransposeA"), "B": not problem_type.fields.flag("TransposeB")}
        return tuple(Panels(x, tile[x], not contiguous_k[x]) for x in "AB" if config.flag(f"Pack{x}"))

    def count(self, gemm: Gemm) -> int:
        return -(-self.extent(gemm) // self.tile)

    def extent(self, gemm: Gemm) -> int:
        return gemm.m if self.operand == "A" else gemm.n

    def stride(self, gemm: Gemm) -> int:
        """Elements of the panels of one matrix of the batch."""
        return self.count(gemm) * self.tile * gemm.k

    def size(self, gemm: Gemm) -> int:
        """Bytes of all panels."""
        return self.stride(gemm) * gemm.batch * np.dtype(gemm.dtype).itemsize

    def pack(self, gemm: Gemm, to: WorkspaceArgument) -> Launch:
        chunks = -(-gemm.k // PACK_DEPTH)
        ld, stride = (gemm.lda, gemm.stride_a) if self.operand == "A" else (gemm.ldb, gemm.stride_b)
        return Launch(
            module=0,
            entry=f"pack_{self.operand}",
            grid=(self.count(gemm) * chunks, 1, gemm.batch),
            work_group=(1, 1, 1),
            arguments=(
                to,
                OperandArgument(self.operand),
                *longs(ld, stride),
                *integers(self.extent(gemm), gemm.k, chunks),
            ),
        )


class RegisterGemm(OpenClGemm):
    """D = alpha op(A) op(B) + beta C. Every work-item holds ThreadTile sums in vectors of VectorWidth and reads A and B
    through the caches, optionally from copies in panels (PackA, PackB). Made for CPUs.

    The inner product of a column of A's panel with a row of B's is that of GotoBLAS; the rest is the cache's work.
    """

    name = "RegisterGemm"
    form: Mapping[str, Value] = MappingProxyType({"LocalMemory": False})

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space(
            (
                parameter.language(self.language),
                parameter.local_memory(False),
                parameter.work_group((1, 2, 1), (1, 1, 1), (1, 4, 1), (2, 1, 1), (2, 2, 1)),
                parameter.thread_tile((32, 8), (16, 4), (16, 8), (32, 4), (32, 12), (48, 8), (64, 4), (64, 6)),
                parameter.vector_width(16),
                parameter.LOOP_UNROLL,
                parameter.DEPTH_U,
                parameter.EDGE_TYPE,
                parameter.GLOBAL_SPLIT,
                parameter.STREAM_GRID,
                parameter.STREAM_FULL_TILES,
                parameter.GROUP_MAPPING,
                parameter.PACK_A,
                parameter.PACK_B,
            )
        )

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        schedule = Schedule.of(config)
        if config.flag("LocalMemory"):
            yield Rejection(Reason.FORM, "RegisterGemm is the form with LocalMemory: False")
        yield from rules.common(config, problem_type, target)
        if schedule.local_split > 1:
            yield Rejection(Reason.LOCAL_SPLIT, f"LocalSplitU {schedule.local_split} needs local memory to add sums in")
        if schedule.thread_tile[0] % schedule.vector:
            yield Rejection(
                Reason.THREAD_TILE,
                f"VectorWidth {schedule.vector} does not divide {schedule.thread_tile[0]}, the thread tile along M",
            )

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        gemm, schedule = Gemm.of(problem), Schedule.of(config)
        if config.word("EdgeType") == "ShiftPtr":
            for operand, extent, tile in zip("AB", (gemm.m, gemm.n), schedule.thread_tile, strict=True):
                if not config.flag(f"Pack{operand}") and extent < tile:
                    yield Rejection(
                        Reason.SHIFTED_EDGE, f"{operand} is {extent} wide, a thread tile of {tile} has no room"
                    )
        yield from rules.problem_fits(schedule, problem, self.plan(config, problem, target), target)

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        return (_module(config, problem_type),)

    def plan(
        self, config: Configuration, problem: Problem, target: Target, facts: Sequence[CompiledFacts] = ()
    ) -> Plan:
        gemm, schedule = Gemm.of(problem), Schedule.of(config)
        if not gemm.m * gemm.n * gemm.batch:
            return Plan(())
        panels = Panels.of(config, problem.type)
        workspace = Workspace((sums_bytes(schedule, gemm), *(packed.size(gemm) for packed in panels)))
        packed = {x.operand: (workspace.argument(part), x) for part, x in enumerate(panels, start=1)}
        factors = (*_factor("A", gemm, packed), *_factor("B", gemm, packed))
        packing = [x.pack(gemm, place) for place, x in packed.values()] if gemm.k else []
        launches = product(schedule, gemm, factors, workspace.argument(0), _work_group(schedule))
        return Plan((*packing, *launches), workspace.total)

    def guess(self, config: Configuration, problem: Problem, target: Target) -> float | None:
        gemm = Gemm.of(problem)
        copied = sum(2 * panels.size(gemm) for panels in Panels.of(config, problem.type))
        return seconds(Schedule.of(config), problem, target, copied)


def _factor(operand: str, gemm: Gemm, packed: Mapping[str, tuple[WorkspaceArgument, Panels]]) -> tuple[Argument, ...]:
    """Address, leading dimension and stride of A or B as the kernel reads it: packed or as it is."""
    if operand in packed:
        place, panels = packed[operand]
        return (place, *longs(0, panels.stride(gemm)))
    ld, stride = (gemm.lda, gemm.stride_a) if operand == "A" else (gemm.ldb, gemm.stride_b)
    return (OperandArgument(operand), *longs(ld, stride))


def _work_group(schedule: Schedule) -> tuple[int, int, int]:
    return (*schedule.work_group, 1)


@lru_cache(maxsize=4096)
def _module(config: Configuration, problem_type: ProblemType) -> Module:
    schedule = Schedule.of(config)
    panels = Panels.of(config, problem_type)
    entries = (*(f"pack_{packed.operand}" for packed in panels), "gemm", *schedule.sums)
    values = {
        "schedule": schedule,
        "work_group": _work_group(schedule),
        "local_elements": 0,
        "shift": config.word("EdgeType") == "ShiftPtr",
        "panels": panels,
        "pack_a": config.flag("PackA"),
        "pack_b": config.flag("PackB"),
        "pack_depth": PACK_DEPTH,
        "reduction_items": REDUCTION_ITEMS,
    }
    return render("register.cl.j2", entries, problem_type, values)
