"""`RegisterGemm`: GEMM through registers and caches, with a tile of D a work-item and without local memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tunesmith.kernels.gemm import parameters as parameter
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, ProblemType, Rejection, Target, Value
from tunesmith.spaces import Space

from .family import OpenClGemm
from .panels import PACK_DEPTH, Panels
from .schedule import OpenCLSchedule


class RegisterGemm(OpenClGemm):
    """D = alpha op(A) op(B) + beta C for CPUs.

    Every work-item holds ThreadTile sums in vectors of VectorWidth, and reads A and B through the caches, optionally
    from copies in panels (PackA, PackB). As in GotoBLAS, a column of A's panel is multiplied by a row of B's; the
    caches do the rest.
    """

    name, template = "RegisterGemm", "register.cl.j2"
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
                *parameter.DEALING,
                parameter.PACK_A,
                parameter.PACK_B,
            )
        )

    def work_group(self, schedule: OpenCLSchedule) -> tuple[int, int, int]:
        return (*schedule.work_group, 1)

    def values(self, config: Configuration, problem_type: ProblemType) -> Mapping[str, object]:
        return {
            "local_elements": 0,
            "panels": Panels.of(config, problem_type),
            "pack_a": config.flag("PackA"),
            "pack_b": config.flag("PackB"),
            "pack_depth": PACK_DEPTH,
        }

    def wrong_form(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        schedule = OpenCLSchedule.of(config)
        if schedule.local_split > 1:
            yield Rejection("local split", f"LocalSplitU {schedule.local_split} needs local memory to add sums in")
        if (rows := schedule.thread_tile[0]) % schedule.vector:
            detail = f"VectorWidth {schedule.vector} does not divide {rows}, the thread tile along M"
            yield Rejection("vector width and thread tile", detail)

    def wrong_edges(self, config: Configuration, problem_type: ProblemType, gemm: Gemm) -> Iterator[Rejection]:
        schedule = OpenCLSchedule.of(config)
        for operand, extent, tile in zip("AB", (gemm.m, gemm.n), schedule.thread_tile, strict=True):
            if not config.flag(f"Pack{operand}") and extent < tile:
                yield Rejection("shifted edge", f"{operand} is {extent} wide, a thread tile of {tile} has no room")
