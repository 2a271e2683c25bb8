"""GEMM on Hopper's tensor cores in CUDA C++: TMA and warp-group products, one warp group fetching for the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tunesmith.kernels._base import Kernel
from tunesmith.kernels.gemm.cuda_common import wrong_device, wrong_size
from tunesmith.kernels.gemm.parameters import GROUP_MAPPING, language
from tunesmith.problems.gemm import Gemm, is_interleaved
from tunesmith.records import (
    CompiledFacts,
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
    TensorMapArgument,
    Value,
)
from tunesmith.spaces import Parameter, Space

ARCHITECTURE = "sm_90"
"""Its `a` features, warp-group products among them, are in no other architecture (PTX ISA, wgmma)."""

DEPTH, ROWS_OF_A_GROUP, PART = 64, 64, 32
ELEMENT = 2
STAGE_ALIGNMENT, BARRIER_BYTES = 1024, 16
MOST_BOX = 256
TMA_ALIGNMENT = 16
SWIZZLE_64, SWIZZLE_128 = 2, 3
"""CU_TENSOR_MAP_SWIZZLE_64B and _128B."""

INSTRUCTION = Parameter(
    "MatrixInstruction",
    "wgmma",
    ("wgmma",),
    "The tensor cores' instruction: wgmma multiplies 64 rows by a multiple of 32 columns from shared memory (Hopper).",
)
WARP_GROUPS = Parameter(
    "WarpGroups", 2, (1, 2, 3), "Warp groups that multiply, 64 rows of the macro tile each; one more fetches.",
    accepts="positive integer",
)  # fmt: skip
COLUMNS = Parameter(
    "InstructionColumns",
    256,
    (32, 64, 96, 128, 160, 192, 224, 256),
    "Columns of the macro tile, and of each instruction.",
    accepts="positive integer",
)
STAGES = Parameter(
    "Stages", 0, (0, 2, 3, 4, 6), "Tiles of A and B in shared memory at once, 64 of K each; 0: as many as fit.",
    accepts="natural number",
)  # fmt: skip
ROWS_ALONG = Parameter(
    "RowsAlong",
    "N",
    ("N", "M"),
    "Which of D's dimensions the instruction's rows are; with M, few columns fit a small N.",
)


class CudaWgmmaGemm(Kernel):
    """Persistent work-groups; macro tiles of 64 x WarpGroups by InstructionColumns. Half precision, sums in single."""

    name, operation, language, named_by = "CudaWgmmaGemm", "GEMM", "CUDA", INSTRUCTION.name

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space((language(self.language), INSTRUCTION, WARP_GROUPS, COLUMNS, STAGES, ROWS_ALONG, GROUP_MAPPING))

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        shape = Shape.of(config, problem_type, target.local_memory_bytes)
        yield from wrong_device(target)
        if target.architecture != ARCHITECTURE:
            yield Rejection("architecture", f"wgmma is {ARCHITECTURE}'s alone, the device has {target.architecture}")
        if problem_type.fields.word("DataType") != "h":
            yield Rejection("data type", f"{problem_type.name}: only half precision (h) in this family")
        if is_interleaved(problem_type):
            yield Rejection("batch layout", f"{problem_type.name}: this family does not compute interleaved batches")
        if shape.columns % PART or shape.columns > MOST_BOX:
            yield Rejection("tile shape", f"{shape.columns} columns, not a multiple of {PART} up to {MOST_BOX}")
        if not 1 <= shape.warp_groups <= 3:
            yield Rejection("work-group size", f"{shape.warp_groups} warp groups multiply; 1 to 3 have the registers")
        if not shape.y_along_k and shape.columns % ROWS_OF_A_GROUP:
            what = f"{shape.columns} columns of an operand that is not contiguous along K"
            yield Rejection("TMA box", f"{what}: only multiples of {ROWS_OF_A_GROUP}")
        if shape.stages < 2:
            yield Rejection("local memory", f"two stages do not fit into {target.local_memory_bytes} bytes")
        elif (need := shape.shared_bytes) > target.local_memory_bytes:
            yield Rejection("local memory", f"{need} bytes for the stages, the device has {target.local_memory_bytes}")

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        gemm = Gemm.of(problem)
        yield from wrong_size(problem, 1, gemm.batch, 0, target)
        for name, leading, stride in (
            ("A", gemm.lda, gemm.stride_a),
            ("B", gemm.ldb, gemm.stride_b),
            ("D", gemm.ldd, gemm.stride_d),
        ):
            if leading * ELEMENT % TMA_ALIGNMENT or (gemm.batch > 1 and stride * ELEMENT % TMA_ALIGNMENT):
                aligned = f"multiples of {TMA_ALIGNMENT // ELEMENT}"
                yield Rejection("TMA alignment", f"{name} has strides {leading} and {stride} elements, not {aligned}")
        if gemm.m * ELEMENT % TMA_ALIGNMENT:
            yield Rejection("TMA store", f"columns of {gemm.m} elements; the last 16 bytes would be written whole")

    def rejections_compiled(
        self, config: Configuration, facts: Sequence[CompiledFacts], target: Target
    ) -> Iterator[Rejection]:
        for fact in facts:
            if fact.spill_bytes:
                yield Rejection("spills", f"{fact.spill_bytes} bytes of a work-item's sums live in memory")

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        shape = Shape.of(config, problem_type)
        macros = {
            "ELEMENT_BF16": 0,
            "WARP_GROUPS": shape.warp_groups,
            "COLUMNS": shape.columns,
            "STAGES": shape.stages,
            "GROUP": max(1, config.integer("WorkGroupMapping")),
            "ROWS_ARE_N": int(shape.rows_are_n),
            "X_ALONG_K": int(shape.x_along_k),
            "Y_ALONG_K": int(shape.y_along_k),
        }
        options = (f"--gpu-architecture={ARCHITECTURE}a", *(f"-D{name}={value}" for name, value in macros.items()))
        text = _instruction(shape.columns, "f16", not shape.x_along_k, not shape.y_along_k) + _source()
        return (Module(self.language, text, ("gemm",), options),)

    def plan(
        self, config: Configuration, problem: Problem, target: Target, facts: Sequence[CompiledFacts] = ()
    ) -> Plan:
        gemm, shape = Gemm.of(problem), Shape.of(config, problem.type)
        rows, columns = (gemm.n, gemm.m) if shape.rows_are_n else (gemm.m, gemm.n)
        tiles = -(-rows // shape.rows) * -(-columns // shape.columns) * gemm.batch
        a = _side("A", gemm.batch, gemm.m, gemm.k, gemm.lda, gemm.stride_a, gemm.transpose_a)
        b = _side("B", gemm.batch, gemm.n, gemm.k, gemm.ldb, gemm.stride_b, not gemm.transpose_b)
        x, y = (b, a) if shape.rows_are_n else (a, b)
        part = (1, ROWS_OF_A_GROUP, PART) if shape.rows_are_n else (1, PART, ROWS_OF_A_GROUP)
        d_shape, d_strides = (gemm.batch, gemm.n, gemm.m), (gemm.stride_d, gemm.ldd, 1)
        launch = Launch(
            module=0,
            entry="gemm",
            grid=(min(tiles, target.compute_units), 1, 1),
            work_group=(128 * (shape.warp_groups + 1), 1, 1),
            arguments=(
                x.fetched(shape.rows),
                y.fetched(shape.columns),
                TensorMapArgument(
                    "D", "float16", d_shape, d_strides, part, SWIZZLE_64 if shape.rows_are_n else SWIZZLE_128
                ),
                OperandArgument("C"),
                *(ScalarArgument(value, "int32") for value in (rows, columns, gemm.k, gemm.batch)),
                *(ScalarArgument(value, "int64") for value in (gemm.ldc, gemm.stride_c)),
                *(ScalarArgument(value, "float32") for value in (gemm.alpha, gemm.beta)),
            ),
            shared_bytes=shape.shared_bytes,
        )
        return Plan((launch,))

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        rows, columns = ROWS_OF_A_GROUP * config.integer("WarpGroups"), config.integer("InstructionColumns")
        tile = (columns, rows) if config.word("RowsAlong") == "N" else (rows, columns)
        return {"MacroTile": tile, "DepthU": DEPTH, "WorkGroupSize": 128 * (config.integer("WarpGroups") + 1)}


LOCAL_BYTES = 227 * 1024
"""Shared memory of a work-group on Hopper (CUDA programming guide)."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A configuration, typed: x is the operand whose side makes the rows, y the other one."""

    warp_groups: int
    columns: int
    stages: int
    rows_are_n: bool
    x_along_k: bool
    y_along_k: bool

    @staticmethod
    def of(config: Configuration, problem_type: ProblemType, memory: int = LOCAL_BYTES) -> Shape:
        fields = problem_type.fields
        a_along_k, b_along_k = fields.flag("TransposeA"), not fields.flag("TransposeB")
        rows_are_n = config.word("RowsAlong") == "N"
        groups, columns = config.integer("WarpGroups"), config.integer("InstructionColumns")
        stages = config.integer("Stages")
        if not stages:
            fixed = STAGE_ALIGNMENT + groups * 2 * _PART_BYTES
            stages = (memory - fixed) // (_stage_bytes(groups, columns) + BARRIER_BYTES)
        along = (b_along_k, a_along_k) if rows_are_n else (a_along_k, b_along_k)
        return Shape(groups, columns, stages, rows_are_n, *along)

    @property
    def rows(self) -> int:
        return ROWS_OF_A_GROUP * self.warp_groups

    @property
    def shared_bytes(self) -> int:
        """The stages with their barriers, two parts of D for each warp group, and room to align."""
        stages = self.stages * (_stage_bytes(self.warp_groups, self.columns) + BARRIER_BYTES)
        return STAGE_ALIGNMENT + stages + self.warp_groups * 2 * _PART_BYTES


_PART_BYTES = ROWS_OF_A_GROUP * PART * ELEMENT


def _stage_bytes(groups: int, columns: int) -> int:
    return (ROWS_OF_A_GROUP * groups + columns) * DEPTH * ELEMENT


@dataclass(frozen=True, slots=True)
class _Side:
    """An operand as it lies in memory: batch, outer, contiguous."""

    name: str
    shape: tuple[int, int, int]
    strides: tuple[int, int, int]
    along_k: bool

    def fetched(self, side: int) -> TensorMapArgument:
        """With the box that one copy brings, of a tile that has `side` rows or columns."""
        box = (1, side, DEPTH) if self.along_k else (1, DEPTH, ROWS_OF_A_GROUP)
        return TensorMapArgument(self.name, "float16", self.shape, self.strides, box, SWIZZLE_128)


def _side(name: str, batch: int, side: int, k: int, leading: int, stride: int, along_k: bool) -> _Side:
    shape = (batch, side, k) if along_k else (batch, k, side)
    return _Side(name, shape, (stride, leading, 1), along_k)


@cache
def _source() -> str:
    return files(__package__).joinpath("wgmma.cu").read_text(encoding="utf-8")


def _instruction(columns: int, element: str, transpose_x: bool, transpose_y: bool) -> str:
    """`multiply_add(sums, x, y, keep)`: the instruction, whose outputs are COLUMNS / 2 registers of each thread."""
    count = columns // 2
    registers = ", ".join(f"%{place}" for place in range(count))
    outputs = ", ".join(f'"+f"(sums[{place}])' for place in range(count))
    kind = f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{element}.{element}"
    flags = f"keeps, 1, 1, {int(transpose_x)}, {int(transpose_y)}"
    return f"""typedef unsigned long long u64;
typedef unsigned int u32;
typedef long long i64;

__device__ __forceinline__ void multiply_add(float (&sums)[{count}], u64 x, u64 y, int keep)
{{
    asm volatile("{{ .reg .pred keeps; setp.ne.b32 keeps, %{count + 2}, 0;\\n"
        "{kind} {{{registers}}}, %{count}, %{count + 1}, {flags}; }}"
        : {outputs} : "l"(x), "l"(y), "r"(keep));
}}

"""
