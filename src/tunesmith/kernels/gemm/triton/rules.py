"""The rejections of the Triton families: limits of Triton, of the copy engine and of devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from tunesmith.kernels.cuda_limits import REGISTERS_PER_BLOCK, SHARED_RESERVED
from tunesmith.kernels.gemm.cuda_common import GRID_LIMIT_Z, useless_program, wrong_size
from tunesmith.kernels.gemm.launching import too_much_local
from tunesmith.problems.gemm import Gemm
from tunesmith.records import CompiledFacts, Problem, Rejection, Target

from . import parameters as p
from .shape import TritonShape, along_k

DATA_TYPES = ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2", "int8")
SMALLEST, LARGEST = 16, 256
"""Limits of a tile's side, in elements. Source: `tl.dot`; a TMA box has at most 256 along each dimension."""
SHALLOWEST = {1: 32}
"""The fewest steps along K of `tl.dot`, by the bytes of an element, if more than `SMALLEST`."""
MOST_WARPS, MOST_STAGES = 8, 8
LOAD_BYTES, SHORTEST_COPY = 16, 4
"""Bytes of the longest load, and of the shortest asynchronous copy to shared memory (`cp.async`)."""
TMA_ALIGNMENT = 16
MOST_SUMS = 255
"""Registers of a work-item, and so the most sums that it can hold."""
HOPPER, BLACKWELL, FLOAT8 = 90, 100, 89
"""The first compute capabilities with the copy engine, after Hopper, and with products of float8."""
SPECIAL_WARPS = 4
"""The only NumWarps for which Triton specialises warps."""
SPECIAL_GROUPS = 2
"""Groups of NumWarps among which Triton then cuts the tile; one more group fetches."""
REGISTER_UNIT = 256
"""A warp gets registers in multiples of so many. Source: CUDA occupancy calculator."""
RESIDENT_THREADS = {"sm_80": 2048, "sm_90": 2048, "sm_100": 2048, "sm_103": 2048}
LEAST_RESIDENT_THREADS, LEAST_RESIDENT_GROUPS = 1536, 16
"""The least of any multiprocessor since compute capability 8.0."""

SHORTEST_TF32X3 = 8
"""The fewest terms of a sum for which tf32x3 keeps to float32's tolerance (`problems/gemm/reference.py`). tf32x3 keeps
two parts of 11 bits of each operand, both rounded to nearest: the rest is at most 2^-22 of the operand. The product of
the two small parts, at most 2^-22 of the product, is left out. That is an error of 3 x 2^-22 = 12 u of each product.
With the roundings of the sum it is within (4 sqrt(K) + 2) u |A||B| for every K from 8 on."""


def capability(target: Target) -> int:
    """The compute capability of an NVIDIA GPU, such as 90 for sm_90a; 0 for other devices."""
    name = target.architecture
    return int(name.removeprefix("sm_").rstrip("af")) if name.startswith("sm_") else 0


def wrong_device_or_type(gemm: Gemm, precision: str, target: Target) -> Iterator[Rejection]:
    if target.api not in ("CUDA", "HIP"):
        yield Rejection("device API", f"needs a CUDA or HIP device, {target.name} is reached by {target.api}")
    if gemm.dtype not in DATA_TYPES:
        yield Rejection("data type", f"{gemm.dtype}: this family has {', '.join(DATA_TYPES)}")
    if gemm.dtype.startswith("float8") and capability(target) < FLOAT8:
        yield Rejection("architecture", f"float8 needs sm_{FLOAT8} or newer, the device has {target.architecture}")
    if gemm.interleaved:
        yield Rejection("batch layout", "this family does not compute interleaved batches")
    if precision == "tf32" and not gemm.tf32:
        yield Rejection("input precision", "tf32 keeps 11 bits; only a type with F32XdlMathOp x permits that")
    if gemm.dtype == "float32" and precision != "ieee" and not capability(target):
        yield Rejection("input precision", f"{precision} needs NVIDIA's tensor cores, {target.architecture} has ieee")


def wrong_powers(**values: int) -> Iterator[Rejection]:
    for name, value in values.items():
        if value & (value - 1):
            yield Rejection("power of two", f"{name} {value}: Triton's blocks and warps are powers of two")


def wrong_widths(element: int, **widths: int) -> Iterator[Rejection]:
    for name, width in widths.items():
        yield from wrong_powers(**{name: width})
        if width * element > LOAD_BYTES:
            yield Rejection("vector width", f"{name}: {width} elements of {element} bytes, at most {LOAD_BYTES} bytes")


def wrong_shape(shape: TritonShape, gemm: Gemm, target: Target) -> Iterator[Rejection]:
    """Rules on a configuration alone, except those on schedules and the copy engine."""
    element, dest = np.dtype(gemm.dtype).itemsize, np.dtype(gemm.dest).itemsize
    sides = {"MacroTile M": shape.m, "MacroTile N": shape.n, "DepthU": shape.depth}
    yield from wrong_powers(**sides, NumWarps=shape.warps)
    yield from wrong_widths(element, GlobalReadVectorWidth=shape.read)
    yield from wrong_widths(dest, StoreVectorWidth=shape.write)
    least = {**dict.fromkeys(sides, SMALLEST), "DepthU": SHALLOWEST.get(element, SMALLEST)}
    for name, value in sides.items():
        if not least[name] <= value <= LARGEST:
            yield Rejection("tile shape", f"{name} is {value}, from {least[name]} to {LARGEST} is possible")
    if shape.warps > MOST_WARPS or shape.stages > MOST_STAGES:
        yield Rejection("warps and stages", f"{shape.warps} warps, {shape.stages} stages; at most {MOST_WARPS} each")
    lanes = shape.warps * target.sub_group_size * (SPECIAL_GROUPS if shape.specialized else 1)
    if lanes and shape.elements // lanes > MOST_SUMS:
        yield Rejection("registers", f"{shape.elements // lanes} sums for each of {lanes} work-items")
    columns = shape.m if shape.swapped else shape.n
    if columns // shape.parts < SMALLEST:
        yield Rejection("epilogue parts", f"{shape.parts} parts of {columns} columns, {SMALLEST} are the least")
    yield from too_much_local(_least_shared(shape, element), "for the stages of two operand tiles", target)


def _least_shared(shape: TritonShape, element: int) -> int:
    """The least shared memory that the stages take; with loads by work-items, one stage stays in registers."""
    if shape.loads_by_tma:
        return shape.stages * shape.stage_bytes(element)
    copies = shape.read * element >= SHORTEST_COPY
    return (shape.stages - 1) * shape.stage_bytes(element) if copies else 0


def wrong_schedule(shape: TritonShape) -> Iterator[Rejection]:
    """Rules on parameters that only one schedule uses, and on combinations that Triton does not compile."""
    if shape.schedule not in p.SCHEDULE.values:
        yield Rejection("schedule", f"{shape.schedule}: this family has {', '.join(map(str, p.SCHEDULE.values))}")
    if shape.splits_k != (shape.splits != 1) or (shape.schedule == p.FILL_K and shape.splits):
        yield Rejection("global split", f"GlobalSplitU {shape.splits} with the schedule {shape.schedule}")
    if not shape.streams and (shape.grid or shape.full_tiles):
        yield Rejection("stream-K", f"StreamKGrid and StreamKFullTiles mean nothing with {shape.schedule}")
    if shape.streams and not shape.grid and shape.full_tiles:
        yield Rejection("stream-K", f"StreamKFullTiles {shape.full_tiles} means nothing without StreamKGrid")
    if shape.flat and shape.schedule != p.PERSISTENT:
        yield Rejection("flattened loop", f"{shape.schedule} has no loop over tiles to flatten")
    if shape.splits_k and (shape.stores_by_tma or shape.parts > 1):
        yield Rejection("global split", "sums over a part of K are stored whole, by the work-items")


def wrong_specialization(shape: TritonShape, target: Target) -> Iterator[Rejection]:
    if not shape.specialized:
        return
    needs = {
        # On an H200 (2026-11-21) programs of Triton 3.6 wait for ever, with both schedules; 3.9 does not compile them.
        "a GPU newer than Hopper": capability(target) >= BLACKWELL,
        "operands loaded by TMA": shape.loads_by_tma,
        "D stored by the work-items, in one part": not shape.stores_by_tma and shape.parts == 1,
        "the schedule DataParallel or Persistent": shape.schedule in (p.DATA_PARALLEL, p.PERSISTENT),
        "loops that are not flattened": not shape.flat,
        f"{SPECIAL_WARPS} warps that multiply": shape.warps == SPECIAL_WARPS,
    }
    if missing := [what for what, present in needs.items() if not present]:
        yield Rejection("warp specialisation", f"Triton needs {', '.join(missing)}")


def no_copy_engine(target: Target) -> Iterator[Rejection]:
    if capability(target) < HOPPER:
        yield Rejection("architecture", f"TMA needs sm_{HOPPER} or newer, the device has {target.architecture}")


def wrong_alignment(shape: TritonShape, gemm: Gemm) -> Iterator[Rejection]:
    """Sizes and strides that the copy engine, or loads and stores of several elements, do not take."""
    a_along_k, b_along_k = along_k(gemm)
    reads = {
        "A": (gemm.k if a_along_k else gemm.m, gemm.lda, gemm.stride_a),
        "B": (gemm.k if b_along_k else gemm.n, gemm.ldb, gemm.stride_b),
    }
    writes = {"C": (gemm.m, gemm.ldc, gemm.stride_c), "D": (gemm.m, gemm.ldd, gemm.stride_d)}
    element, dest = np.dtype(gemm.dtype).itemsize, np.dtype(gemm.dest).itemsize
    if shape.loads_by_tma:
        yield from _unaligned({"A": gemm.lda, "B": gemm.ldb}, element)
        if not gemm.k:
            yield Rejection("TMA box", "K is 0: there is no descriptor of nothing")
    else:
        yield from uneven("A and B", shape.read, reads, gemm)
    if shape.stores_by_tma:
        yield from _unaligned({"D": gemm.ldd}, dest)
        if gemm.m * dest % TMA_ALIGNMENT:
            yield Rejection("TMA store", f"columns of {gemm.m} elements; the last 16 bytes would be written whole")
    yield from uneven("C and D", shape.write, writes, gemm)


def _unaligned(leading: Mapping[str, int], element: int) -> Iterator[Rejection]:
    """Columns at distances that the copy engine does not take; matrices of a batch lie at multiples of these."""
    for name, distance in leading.items():
        if distance * element % TMA_ALIGNMENT:
            aligned = f"no multiple of {TMA_ALIGNMENT // element}"
            yield Rejection("TMA alignment", f"{name} has a leading dimension of {distance} elements, {aligned}")


def uneven(who: str, width: int, sizes: Mapping[str, Sequence[int]], gemm: Gemm) -> Iterator[Rejection]:
    for name, (contiguous, leading, stride) in sizes.items():
        if contiguous % width or leading % width or (gemm.batch > 1 and stride % width):
            layout = f"{name} has {contiguous} contiguous elements and strides {leading} and {stride}"
            yield Rejection("vector width", f"{layout}, not multiples of {width} as asked for {who}")


def short_sum(precision: str, gemm: Gemm) -> Iterator[Rejection]:
    """Sums of so few float32 products that tf32x3 exceeds float32's tolerance."""
    if gemm.dtype == "float32" and precision == "tf32x3" and 0 < gemm.k < SHORTEST_TF32X3:
        what = f"a sum of {gemm.k} products by tf32x3 is less exact than float32"
        yield Rejection("input precision", f"{what}; it is as good from K = {SHORTEST_TF32X3} on")


def wrong_batch(gemm: Gemm) -> Iterator[Rejection]:
    """A batch that is too large to be a dimension of the grid."""
    if gemm.batch > GRID_LIMIT_Z:
        yield Rejection("grid", f"{gemm.batch} matrices, a launch has at most {GRID_LIMIT_Z} along y or z")


def wrong_launch(problem: Problem, groups: int, workspace: int, target: Target) -> Iterator[Rejection]:
    """Rejections of sizes, grids along x and buffers that the device does not support."""
    yield from wrong_size(problem, groups, 1, workspace, target)


def useless(facts: Iterable[CompiledFacts], warps: int, target: Target) -> Iterator[Rejection]:
    for fact in facts:
        yield from too_much_local(fact.local_bytes or 0, f"{fact.entry} takes after compilation", target)
        items = fact.max_work_group_size or warps * target.sub_group_size
        yield from useless_program(fact, items)


def resident_groups(fact: CompiledFacts, warps: int, target: Target) -> int:
    """Work-groups of a program that are sure to run at once, if the device has nothing else to do.

    On each multiprocessor, this is the least that registers, shared memory and work-items allow; 1 if that is unknown.
    """
    if not capability(target):
        return target.compute_units
    items = fact.max_work_group_size or warps * target.sub_group_size
    registers = -(-(fact.registers or MOST_SUMS) * target.sub_group_size // REGISTER_UNIT) * REGISTER_UNIT
    threads = RESIDENT_THREADS.get(target.architecture.rstrip("af"), LEAST_RESIDENT_THREADS)
    shared = (target.local_memory_bytes + SHARED_RESERVED) // ((fact.local_bytes or 0) + SHARED_RESERVED)
    by_registers = REGISTERS_PER_BLOCK // (registers * (items // target.sub_group_size))
    return target.compute_units * max(1, min(threads // items, by_registers, shared, LEAST_RESIDENT_GROUPS))


def not_resident(shape: TritonShape, facts: Sequence[CompiledFacts], target: Target) -> Iterator[Rejection]:
    """Stream-K's work-groups wait for one another, so all of them must run at once."""
    for fact in facts:
        room = resident_groups(fact, shape.warps, target)
        if fact.entry == "stream" and shape.grid > room:
            yield Rejection("co-residency", f"{shape.grid} work-groups wait for one another, {room} run at once")
