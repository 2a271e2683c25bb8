"""`TiledGemm`: GEMM through local memory, with one macro tile of D a work-group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tunesmith.kernels.gemm import parameters as parameter
from tunesmith.kernels.gemm.launching import too_much_local
from tunesmith.problems.gemm import Gemm
from tunesmith.records import Configuration, ProblemType, Rejection, Target, Value
from tunesmith.spaces import Space

from . import rules as rules
from .family import OpenClGemm
from .schedule import OpenCLSchedule, TileLoads

REGISTERS_MAX = 255
"""The most 32-bit registers of a work-item on any GPU; a CPU spills to its first-level cache instead."""


class TiledGemm(OpenClGemm):
    """D = alpha op(A) op(B) + beta C. Work-groups stage DepthU rows of both tiles in local memory and multiply them.

    After Tensile's source kernels; parameter names and meanings are Tensile's (`gemm/parameters.py`).
    """

    name, template = "TiledGemm", "tiled.cl.j2"
    form: Mapping[str, Value] = MappingProxyType({"LocalMemory": True})

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space(
            (
                parameter.language(self.language),
                parameter.local_memory(True),
                parameter.work_group((16, 16, 1), (8, 32, 1), (32, 8, 1), (8, 8, 1), (16, 8, 2)),
                parameter.thread_tile((4, 4), (2, 8), (8, 2), (8, 8), (4, 8), (8, 4)),
                parameter.vector_width(1),
                parameter.LOOP_UNROLL,
                parameter.DEPTH_U,
                parameter.LOADS_A,
                parameter.LOADS_B,
                parameter.PREFETCH,
                parameter.EDGE_TYPE,
                *parameter.DEALING,
                parameter.LDS_PAD,
            )
        )

    def work_group(self, schedule: OpenCLSchedule) -> tuple[int, int, int]:
        return (schedule.work_items, 1, 1)

    def values(self, config: Configuration, problem_type: ProblemType) -> Mapping[str, object]:
        return {
            "a": TileLoads.of("A", config, problem_type),
            "b": TileLoads.of("B", config, problem_type),
            "pad": config.integer("LdsPad"),
            "prefetch": config.flag("PrefetchGlobalRead"),
            "local_elements": local_elements(config),
        }

    def wrong_form(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        schedule = OpenCLSchedule.of(config)
        if any(extent % schedule.vector for extent in schedule.thread_tile):
            detail = f"VectorWidth {schedule.vector} does not divide ThreadTile {schedule.thread_tile}"
            yield Rejection("vector width and thread tile", detail)
        tiles = [TileLoads.of(operand, config, problem_type) for operand in "AB"]
        for tile in tiles:
            yield from rules.loads(tile)
        need = local_elements(config) * rules.element_bytes(problem_type)
        yield from too_much_local(need, "for tiles of A and B", target)
        elements = schedule.thread_tile[0] * (schedule.thread_tile[1] + 1)
        elements += sum(tile.elements for tile in tiles) // schedule.work_items
        words = elements * (rules.element_bytes(problem_type) // 4)
        if target.kind == "GPU" and words > REGISTERS_MAX:
            yield Rejection("registers", f"about {words} for sums and loads, a work-item has {REGISTERS_MAX}")

    def wrong_edges(self, config: Configuration, problem_type: ProblemType, gemm: Gemm) -> Iterator[Rejection]:
        schedule = OpenCLSchedule.of(config)
        for operand, extent in (("A", gemm.m), ("B", gemm.n)):
            along_tile = TileLoads.of(operand, config, problem_type).along_tile
            if along_tile and extent < schedule.vector:
                side_by_side = f"{operand} has {extent} elements side by side"
                yield Rejection("shifted edge", f"{side_by_side}, fewer than VectorWidth {schedule.vector}")


def local_elements(config: Configuration) -> int:
    """Elements of local memory: both tiles with their padding. At the end, with LocalSplitU, sums reuse this memory."""
    schedule = OpenCLSchedule.of(config)
    tile0, tile1 = schedule.macro_tile
    staged = schedule.depth * (tile0 + tile1 + 2 * config.integer("LdsPad"))
    return max(staged, tile0 * tile1 if schedule.local_split > 1 else 0)
