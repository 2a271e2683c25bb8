"""The rejections of both families. Limits of portBLAS's kernels that ours do not have are not among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tunesmith.kernels.cuda_limits import REGISTERS_PER_BLOCK
from tunesmith.kernels.gemm.cuda_common import MOST_SPILLED_BYTES, wrong_size
from tunesmith.kernels.gemm.launching import too_much_for_program, too_much_local
from tunesmith.problems.gemm import Gemm
from tunesmith.records import CompiledFacts, Plan, Problem, Rejection, Target

from .algorithm import Algorithm
from .staged import REDUCE_ITEMS
from .tiling import ProgramTraits, Tiling, blocks

REGISTERS_MAX = 255
"""The most 32-bit registers of a work-item on any GPU; a CPU spills to its first-level cache instead."""
WORDS_MAX = 2_048
"""The most 32-bit numbers of a work-item on devices that spill to memory. The loops over them are unrolled, and beyond
this limit compilers take minutes (PoCL 3.1 on a busy CPU: 10 s for 1,024 sums, 28 s for 4,096, 2026-11-22)."""
MOST_BLOCKS = 2**31 - 1


def common(algorithm: Algorithm, tiling: Tiling, traits: ProgramTraits, target: Target) -> Iterator[Rejection]:
    """Rejections for any problem of the type: types, layout, limits of the device."""
    if traits.data_type == "d" and not target.double_precision:
        yield Rejection("double precision", f"{target.name} has none")
    if algorithm.interleaved != traits.interleaved:
        needs, has = (("strided", "interleaved")[flag] for flag in (algorithm.interleaved, traits.interleaved))
        yield Rejection("batch layout", f"{tiling.algorithm} is for {needs} batches, this one is {has}")
    if tiling.shared != 1:
        detail = f"{tiling.shared} work-items cannot share an element of D in this family: the third of WorkGroup is 1"
        yield Rejection("local split", detail)
    items = max(algorithm.items(tiling), REDUCE_ITEMS if algorithm.split else 1)
    if items > target.max_work_group_size:
        yield Rejection("work-group size", f"{items} work-items, the device allows {target.max_work_group_size}")
    if algorithm.is_staged and (wrong := wrong_depth(tiling, traits)):
        yield wrong
        return
    for width in algorithm.widths(tiling, traits):
        if width.used != width.requested:
            detail = f"{width.extent} are {width.what}, which vectors of {width.requested} do not fill"
            yield Rejection("vector size", f"{detail}: it would be the program with vectors of {width.used}")
    yield from too_much_local(algorithm.local_bytes(tiling, traits), "for stages of A and B", target)
    words = algorithm.registers(tiling, traits)
    if target.kind == "GPU" and words > REGISTERS_MAX:
        yield Rejection("registers", f"about {words} for sums and operands, a work-item has {REGISTERS_MAX}")
    elif words > WORDS_MAX:
        yield Rejection("unrolled code", f"about {words} numbers of a work-item, at most {WORDS_MAX}")


def wrong_depth(tiling: Tiling, traits: ProgramTraits) -> Rejection | None:
    """A rejection unless a stage has at least one step, and only whole steps."""
    size = traits.element.size
    if tiling.cache_line and tiling.cache_line % size == 0:
        return None
    return Rejection("depth", f"CacheLine {tiling.cache_line} is no number of elements of {size} bytes")


def problem_fits(
    algorithm: Algorithm, tiling: Tiling, problem: Problem, plan: Plan, target: Target
) -> Iterator[Rejection]:
    """Rejections of sizes beyond 32-bit indices, of grids that cannot be launched, and of too large buffers."""
    launches = [step for step in plan.steps if hasattr(step, "grid")]
    widest, deepest = (max((step.grid[axis] for step in launches), default=0) for axis in (0, 2))
    yield from wrong_size(problem, widest, deepest, plan.workspace_bytes, target)
    count_m, count_n = blocks(algorithm.block(tiling), Gemm.of(problem))
    if count_m * max(count_n, tiling.top[1]) > MOST_BLOCKS or tiling.top[0] * count_n > MOST_BLOCKS:
        yield Rejection("grid", f"{count_m} x {count_n} blocks cannot be counted in 32 bits")


def compiled(
    algorithm: Algorithm, tiling: Tiling, facts: Sequence[CompiledFacts], target: Target
) -> Iterator[Rejection]:
    """Rejections by what the compiler reports: registers, spills, work-items and local memory."""
    for fact in facts:
        items = REDUCE_ITEMS if fact.entry == "reduce" else algorithm.items(tiling)
        yield from too_much_for_program(fact, items, target)
        if fact.registers and fact.registers * items > REGISTERS_PER_BLOCK:
            need = f"{fact.registers} for each of {items} work-items"
            yield Rejection("registers", f"{need}, a work-group has {REGISTERS_PER_BLOCK}")
        if fact.spill_bytes and fact.spill_bytes > MOST_SPILLED_BYTES:
            detail = f"{fact.spill_bytes} bytes of a work-item live in memory, {MOST_SPILLED_BYTES} is too slow"
            yield Rejection("spills", detail)
