"""The source: the instruction for the tile's width, then the files of `source/` as one C++ text, and their macros."""

from __future__ import annotations

from tunesmith.kernels.base import source
from tunesmith.records import Configuration, Module, ProblemType

from .shape import EIGHT, WgmmaShape

ARCHITECTURE = "sm_90"
"""The only architecture with these `a` features, warp-group products among them (PTX ISA, wgmma)."""

TEXTS = ("hardware.cu", "layout.cu", "schedule.cu", "epilogue.cu", "kernel.cu")


def module(config: Configuration, problem_type: ProblemType) -> Module:
    shape = WgmmaShape.of(config, problem_type)
    options = (f"--gpu-architecture={ARCHITECTURE}a", *_macros(config, problem_type, shape))
    return Module("CUDA", "\n".join((_words(shape), _instruction(shape), *map(text, TEXTS))), ("gemm",), options)


def text(name: str) -> str:
    return source(__package__, "source", name)


def _macros(config: Configuration, problem_type: ProblemType, shape: WgmmaShape) -> tuple[str, ...]:
    fields = problem_type.fields
    macros = {
        "ELEMENT_BYTES": shape.operand_type.bytes,
        "WARP_GROUPS": shape.warp_groups,
        "COLUMNS": shape.columns,
        "STAGES": shape.stages,
        "GROUP": max(1, config.integer("WorkGroupMapping")),
        "ROWS_ARE_N": int(shape.rows_are_n),
        "X_ALONG_K": int(shape.x_along_k),
        "Y_ALONG_K": int(shape.y_along_k),
        "OUTPUT_F16": int(shape.dest == "float16"),
        "OUTPUT_BF16": int(shape.dest == "bfloat16"),
        "STORE_BY_TMA": int(shape.by_tma),
        "PART": shape.part,
        "PARTS_AT_ONCE": shape.parts,
        "SPLIT": int(shape.splits),
        "PROMOTE_EVERY": shape.promote_every,
        "ADDS_C": int(fields.flag("UseBeta")),
        "BIAS": int("UseBias" in fields),
        "ACTIVATION": fields.get("Activation", "none"),
        "SCALED": int("ScaleAB" in fields),
        "CLUSTER_ROWS": shape.cluster_rows,
        "CLUSTER_COLUMNS": shape.cluster_columns,
        "CLUSTER_PARTS": shape.cluster_parts,
        "EIGHTS_STEP": shape.slice_step // EIGHT,
        "MOST_EIGHTS": shape.slice(shape.least_parts) // EIGHT,
        "ROOM_IN_STAGES": int(shape.room_in_stages),
        "ROOM_EIGHTS": shape.room_columns // EIGHT,
    }
    return tuple(f"-D{name}={value}" for name, value in macros.items())


def _words(shape: WgmmaShape) -> str:
    sums = "int" if shape.operand_type.sums == "s32" else "float"
    return f"""typedef unsigned long long u64;
typedef unsigned int u32;
typedef long long i64;
typedef {sums} Sum;
"""


def _instruction(shape: WgmmaShape) -> str:
    """`multiply_add(sums, x, y, keep)`: the instruction; its outputs are COLUMNS / 2 registers of each thread."""
    operand_type, columns, count = shape.operand_type, shape.columns, shape.columns // 2
    ptx, sums = operand_type.ptx, operand_type.sums
    constraint = "+r" if sums == "s32" else "+f"
    registers = ", ".join(f"%{index}" for index in range(count))
    outputs = ", ".join(f'"{constraint}"(sums[{index}])' for index in range(count))
    name = f"wgmma.mma_async.sync.aligned.m64n{columns}k{operand_type.per_product}.{sums}.{ptx}.{ptx}"
    # These flags follow the predicate. Integers have no signs to change; only 16-bit types may be transposed.
    signs = () if sums == "s32" else (1, 1)
    transposes = (int(not shape.x_along_k), int(not shape.y_along_k)) if operand_type.any_layout else ()
    flags = ", ".join(map(str, ("keeps", *signs, *transposes)))
    return f"""__device__ __forceinline__ void multiply_add(Sum (&sums)[{count}], u64 x, u64 y, int keep)
{{
    asm volatile("{{ .reg .pred keeps; setp.ne.b32 keeps, %{count + 2}, 0;\\n"
        "{name} {{{registers}}}, %{count}, %{count + 1}, {flags}; }}"
        : {outputs} : "l"(x), "l"(y), "r"(keep));
}}
"""
