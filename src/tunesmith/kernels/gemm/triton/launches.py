"""The modules and the launches of the tiled Triton family, for each schedule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tunesmith.kernels.gemm.stream_k import ceil_div
from tunesmith.problems.gemm import Gemm
from tunesmith.records import CompiledFacts, Module, Plan, Step, Target, Value, Zero

from . import arguments as arg
from . import parameters as p
from .arguments import JitArgument
from .rules import resident_groups
from .shape import TritonShape, along_k

EPILOGUES = ("loads_source", "epilogue_source")
TILES = (*EPILOGUES, "gemm_source")
SOURCES = {
    **dict.fromkeys(("data_parallel", "persistent", "split"), TILES),
    "stream": (*TILES, "stream_source"),
    "add_parts": EPILOGUES,
    "add_many_parts": (*EPILOGUES, "adding_source"),
}
"""The sources that make each entry; the file with the entry itself is the last."""
ENTRIES = {
    p.DATA_PARALLEL: "data_parallel",
    p.PERSISTENT: "persistent",
    p.SPLIT_K: "split",
    p.FILL_K: "split",
    p.STREAM_K: "stream",
}
ADDING = {p.SPLIT_K: ("add_parts", 256, 2), p.FILL_K: ("add_many_parts", 64, 2)}
"""What adds the parts of K, and its tile along M and N, as in the entry's source."""
ADDING_WARPS = 4


def modules(shape: TritonShape, gemm: Gemm) -> tuple[Module, ...]:
    """The module of the product; with split-K also the module that adds its parts.

    `gemm` is the smallest problem of the type: only the tile's options depend on more than the type.
    """
    entry = ENTRIES.get(shape.schedule, "data_parallel")
    options: dict[str, Value] = {"num_warps": shape.warps, "num_stages": shape.stages}
    aligned = _aligned(shape)
    product = arg.module(SOURCES[entry], entry, _jit_arguments(shape, gemm), _constants(shape, gemm), options, aligned)
    if not shape.splits_k:
        return (product,)
    adding, (entry, _, _) = {"num_warps": ADDING_WARPS, "num_stages": 1}, ADDING[shape.schedule]
    return product, arg.module(
        SOURCES[entry], entry, _adding_arguments(shape, gemm), _constants(shape, gemm), adding, aligned
    )


def _aligned(shape: TritonShape) -> tuple[str, ...]:
    """The addresses that the program may take for multiples of 16 bytes.

    The workspace always begins at such a multiple. It is named only if operands must too, because the promise holds for
    all pointers: a program that reads one element at a time does without it.
    """
    loads = ("a", "b") if shape.read > 1 and not shape.loads_by_tma else ()
    stores = ("c", "d") if shape.write > 1 else ()
    return (*loads, *stores, *(("slots", "parts") if loads or stores or shape.loads_by_tma else ()))


def plan(shape: TritonShape, gemm: Gemm, target: Target, facts: Mapping[str, CompiledFacts]) -> Plan:
    entry = ENTRIES[shape.schedule]
    fact = facts.get(entry)
    items = (fact and fact.max_work_group_size) or shape.warps * target.sub_group_size
    groups = (_groups(shape, gemm, target, fact), 1, 1)
    product = arg.launch(0, SOURCES[entry][-1], entry, groups, items, _jit_arguments(shape, gemm), target)
    steps: tuple[Step, ...] = (product,)
    if shape.splits_k:
        entry, m, n = ADDING[shape.schedule]
        adding = (ceil_div(gemm.m, m) * ceil_div(gemm.n, n), gemm.batch, 1)
        arguments, items = _adding_arguments(shape, gemm), ADDING_WARPS * target.sub_group_size
        steps = (product, arg.launch(1, SOURCES[entry][-1], entry, adding, items, arguments, target))
    elif shape.streams and shape.streamed(gemm).shared:
        # Every launch clears the flags first: another plan may have used the workspace in the meantime.
        steps = (Zero("", shape.flags_offset(gemm), shape.flag_bytes(gemm)), product)
    return Plan(steps, shape.workspace(gemm))


def _groups(shape: TritonShape, gemm: Gemm, target: Target, fact: CompiledFacts | None) -> int:
    tiles = shape.tiles(gemm)
    if shape.streams:
        return shape.streamed(gemm).grid
    if shape.schedule == p.PERSISTENT:
        return min(tiles, resident_groups(fact, shape.warps, target) if fact else target.compute_units)
    return tiles * shape.splits


def _constants(shape: TritonShape, gemm: Gemm) -> dict[str, Value]:
    read = 1 if shape.loads_by_tma else shape.read
    is_float8 = gemm.dtype.startswith("float8")
    precision = shape.precision if gemm.dtype == "float32" else "ieee"
    # Hopper adds products of float8 in registers of about 14 bits: after each DepthU of K, sums are added in float32.
    narrow = shape.depth if is_float8 else 0
    return {
        "TILE": (shape.m, shape.n, shape.depth),
        "MAPPING": shape.mapping,
        "LOADS": (*along_k(gemm), shape.loads_by_tma, read),
        "DOT": (shape.swapped, precision, gemm.sums == "int32", narrow),
        "PARTS": shape.parts,
        "EPILOGUE": (gemm.bias, gemm.activation, gemm.use_beta, shape.stores_by_tma, shape.write),
        "SCALED": gemm.scaled,
        "SPECIALIZE": shape.specialized,
        "FLATTEN": shape.flat,
        "WIDTH": shape.write,
    }


def _jit_arguments(shape: TritonShape, gemm: Gemm) -> dict[str, JitArgument]:
    """The arguments of all entries, by parameter; an entry takes those of its own parameters."""
    arguments = {
        **_inputs(shape, gemm),
        **arg.epilogue(gemm),
        "d": _stored_by_tma(shape, gemm) if shape.stores_by_tma else arg.operand("D", gemm.dest),
        **arg.integers(m=gemm.m, n=gemm.n, k=gemm.k, batches=gemm.batch),
        **arg.longs(lda=gemm.lda, ldb=gemm.ldb, stride_a=gemm.stride_a, stride_b=gemm.stride_b),
        **arg.longs(ldc=gemm.ldc, ldd=gemm.ldd, stride_c=gemm.stride_c, stride_d=gemm.stride_d),
        **arg.integers(tiles=shape.tiles(gemm)),
    }
    if shape.splits_k:
        each, longer = divmod(shape.iterations(gemm), shape.splits)
        arguments |= {"parts": arg.workspace(gemm.sums), **arg.integers(each=each, longer=longer)}
    if shape.streams:
        schedule = shape.streamed(gemm)
        arguments |= {
            "slots": arg.workspace(gemm.sums),
            "flags": arg.workspace("int32", shape.flags_offset(gemm)),
            **arg.integers(alone=schedule.alone),
            **arg.longs(iterations=schedule.iterations, per_group=schedule.per_group, extra=schedule.extra),
        }
    return arguments


def _adding_arguments(shape: TritonShape, gemm: Gemm) -> dict[str, JitArgument]:
    arguments = _jit_arguments(replace(shape, stores_by_tma=False), gemm)
    return arguments | arg.integers(count=shape.splits)


def _inputs(shape: TritonShape, gemm: Gemm) -> dict[str, JitArgument]:
    if not shape.loads_by_tma:
        return {"a": arg.operand("A", gemm.dtype), "b": arg.operand("B", gemm.dtype)}
    return {
        "a": arg.loaded("A", gemm.dtype, gemm, shape.m, shape.depth),
        "b": arg.loaded("B", gemm.dtype, gemm, shape.n, shape.depth),
    }


def _stored_by_tma(shape: TritonShape, gemm: Gemm) -> JitArgument:
    """The descriptor of a part of D's tile: the columns of `tl.dot`'s result are cut into parts."""
    m, n = (shape.m // shape.parts, shape.n) if shape.swapped else (shape.m, shape.n // shape.parts)
    strides = (gemm.stride_d, gemm.ldd, 1)
    return arg.descriptor("D", gemm.dest, (gemm.batch, gemm.n, gemm.m), strides, (1, n, m))
