"""GEMM in Triton whose operands come through TMA descriptors made on the host; compiled ahead of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from tunesmith.kernels._base import Facts, Kernel
from tunesmith.kernels.gemm.cuda_common import (
    Tile,
    tile_parameters,
    useless_program,
    wrong_device,
    wrong_size,
    wrong_work_group,
)
from tunesmith.kernels.gemm.parameters import language
from tunesmith.kernels.gemm.types import wrong_type
from tunesmith.problems.gemm import Gemm
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
    TensorMapArgument,
    Value,
)
from tunesmith.spaces import Parameter, Space

WARP, MOST_WARPS = 32, 16
SMALLEST_TILE, LARGEST_BOX = 16, 256
"""Elements along a side of an operand's tile: what `tl.dot` multiplies, and what one TMA descriptor can fetch."""
TMA_ALIGNMENT = 16
"""Bytes that strides and addresses are multiples of. Source: `cuTensorMapEncodeTiled` in the CUDA driver API."""
ELEMENT = 4
"""Bytes of a float32."""

STAGES = Parameter(
    "NumStages",
    3,
    (2, 3, 4, 5),
    "Tiles of A and B that are in shared memory or on their way there at once.",
    accepts="positive integer",
)
PRECISION = Parameter(
    "InputPrecision",
    "tf32x3",
    ("tf32x3", "ieee"),
    "How float32 products are made: tf32x3 by tensor cores, three products of halves of the operands, about as exact "
    "as float32; ieee by plain multiply-adds. tf32 makes one product, of 11 bits of each operand, which is no float32 "
    "GEMM: some families have it for types that permit it (F32XdlMathOp: x).",
)

SHORTEST_TF32X3 = 8
"""Terms of a sum from which tf32x3 keeps to float32's bound (`problems`). Of each operand it keeps two parts of 11
bits, both rounded to nearest: what is left is at most 2^-22 of the operand. The product of the two small parts, at most
2^-22 of the product, is left out. That is 3 x 2^-22 = 12 u of each product; with the roundings of the sum it is within
(4 sqrt(K) + 2) u |A||B| for every K from 8 on."""


class TritonTmaGemm(Kernel):
    """One macro tile a work-group; `tl.dot` on tiles that the copy engine brings, NumStages deep. float32 only.

    The macro tile is WorkGroup x ThreadTile as everywhere; Triton decides which thread holds which element.
    """

    name, operation, language = "TritonTmaGemm", "GEMM", "Triton"

    def space(self, problem_type: ProblemType, target: Target | None = None) -> Space:
        return Space((language(self.language), *tile_parameters(), STAGES, PRECISION))

    def rejections(self, config: Configuration, problem_type: ProblemType, target: Target) -> Iterator[Rejection]:
        tile = Tile.of(config)
        yield from wrong_device(target)
        if not target.architecture.startswith("sm_") or int(target.architecture[3:].rstrip("af")) < 90:
            yield Rejection("architecture", f"TMA needs sm_90 or newer, the device has {target.architecture}")
        yield from wrong_type(problem_type)
        if problem_type.fields.word("DataType") == "d":
            yield Rejection("data type", f"{problem_type.name}: only single precision (s) in this family")
        yield from wrong_work_group(tile, target)
        if tile.items % WARP or not _power_of_two(tile.items // WARP) or tile.items > WARP * MOST_WARPS:
            warps = f"{WARP} times a power of two up to {MOST_WARPS}"
            yield Rejection("warps", f"{tile.items} work-items, Triton takes {warps}")
        sides = (tile.m, tile.n, tile.depth)
        if not all(map(_power_of_two, sides)) or min(sides) < SMALLEST_TILE:
            shown = "x".join(map(str, sides))
            yield Rejection("tile shape", f"{shown}: every side is a power of two of at least {SMALLEST_TILE}")
        if max(sides) > LARGEST_BOX:
            yield Rejection("TMA box", f"a side of {max(sides)} elements, a descriptor fetches at most {LARGEST_BOX}")
        need = config.integer("NumStages") * tile.operand_bytes("float32")
        yield from _shared_memory(need, "for the stages of two operand tiles", target)

    def rejections_for(self, config: Configuration, problem: Problem, target: Target) -> Iterator[Rejection]:
        gemm = Gemm.of(problem)
        yield from wrong_size(problem, Tile.of(config).count(gemm), gemm.batch, 0, target)
        yield from short_sum(config.word(PRECISION.name), gemm)
        for name, leading, stride in (("A", gemm.lda, gemm.stride_a), ("B", gemm.ldb, gemm.stride_b)):
            if leading * ELEMENT % TMA_ALIGNMENT or stride * ELEMENT % TMA_ALIGNMENT:
                aligned = f"multiples of {TMA_ALIGNMENT // ELEMENT}"
                yield Rejection("TMA alignment", f"{name} has strides {leading} and {stride} elements, not {aligned}")

    def rejections_compiled(self, config: Configuration, facts: Facts, target: Target) -> Iterator[Rejection]:
        for fact in facts:
            yield from _shared_memory(fact.local_bytes or 0, "after compilation", target)
            yield from useless_program(fact, Tile.of(config))

    def modules(self, config: Configuration, problem_type: ProblemType) -> tuple[Module, ...]:
        tile = Tile.of(config)
        a_along_k, b_along_k = _along_k(problem_type)
        constexprs: dict[str, Value] = {
            "TILE_M": tile.m,
            "TILE_N": tile.n,
            "DEPTH": tile.depth,
            "A_ALONG_K": a_along_k,
            "B_ALONG_K": b_along_k,
            "PRECISION": config.word("InputPrecision"),
        }
        signature = {
            "a": f"tensordesc<fp32{list(_block(tile.m, tile.depth, a_along_k))}>",
            "b": f"tensordesc<fp32{list(_block(tile.n, tile.depth, b_along_k))}>",
            **dict.fromkeys(("c", "d"), "*fp32"),
            **dict.fromkeys(("m", "n", "k"), "i32"),
            **dict.fromkeys(("ldc", "ldd", "stride_c", "stride_d"), "i64"),
            **dict.fromkeys(("alpha", "beta"), "fp32"),
            **dict.fromkeys(constexprs, "constexpr"),
        }
        constants = Configuration(
            {
                "signature": tuple((name, kind.replace(" ", "")) for name, kind in signature.items()),
                "constexprs": tuple(constexprs.items()),
                "num_warps": tile.items // WARP,
                "num_stages": config.integer("NumStages"),
            }
        )
        place = f"{__package__}.tma_source:gemm"
        return (Module(self.language, _source(), ("gemm",), python=place, constants=constants),)

    def plan(self, config: Configuration, problem: Problem, target: Target, facts: Facts = ()) -> Plan:
        gemm, tile = Gemm.of(problem), Tile.of(config)
        a_along_k, b_along_k = _along_k(problem.type)
        launch = Launch(
            module=0,
            entry="gemm",
            grid=(tile.count(gemm), 1, gemm.batch),
            work_group=(tile.items, 1, 1),
            arguments=(
                _tensor_map(
                    "A", gemm, gemm.m, gemm.lda, gemm.stride_a, _block(tile.m, tile.depth, a_along_k), a_along_k
                ),
                _tensor_map(
                    "B", gemm, gemm.n, gemm.ldb, gemm.stride_b, _block(tile.n, tile.depth, b_along_k), b_along_k
                ),
                OperandArgument("C"),
                OperandArgument("D"),
                *(ScalarArgument(value, "int32") for value in (gemm.m, gemm.n, gemm.k)),
                *(ScalarArgument(value, "int64") for value in (gemm.ldc, gemm.ldd, gemm.stride_c, gemm.stride_d)),
                *(ScalarArgument(value, "float32") for value in (gemm.alpha, gemm.beta)),
            ),
        )
        return Plan((launch,))

    def derived(self, config: Configuration) -> Mapping[str, Value]:
        return Tile.of(config).derived()


def short_sum(precision: str, gemm: Gemm) -> Iterator[Rejection]:
    """Products of float32 that are not float32's."""
    if gemm.dtype == "float32" and precision == "tf32x3" and 0 < gemm.k < SHORTEST_TF32X3:
        what = f"a sum of {gemm.k} products by tf32x3 is less exact than float32"
        yield Rejection("input precision", f"{what}; it is as good from K = {SHORTEST_TF32X3} on")


@cache
def _source() -> str:
    return files(__package__).joinpath("tma_source.py").read_text(encoding="utf-8")


def _power_of_two(value: int) -> bool:
    return value > 0 and value & (value - 1) == 0


def _along_k(problem_type: ProblemType) -> tuple[bool, bool]:
    """Whether K is the contiguous dimension, of A and of B."""
    return problem_type.fields.flag("TransposeA"), not problem_type.fields.flag("TransposeB")


def _block(rows: int, depth: int, along_k: bool) -> tuple[int, int, int]:
    """A tile as it lies in memory: batch, outer, contiguous. `rows` are those along M or N."""
    return (1, rows, depth) if along_k else (1, depth, rows)


def _tensor_map(
    name: str, gemm: Gemm, rows: int, leading: int, stride: int, block: tuple[int, int, int], along_k: bool
) -> TensorMapArgument:
    shape = (gemm.batch, rows, gemm.k) if along_k else (gemm.batch, gemm.k, rows)
    return TensorMapArgument(name, "float32", shape, (stride, leading, 1), block)


def _shared_memory(need: int, what: str, target: Target) -> Iterator[Rejection]:
    if need > target.local_memory_bytes:
        yield Rejection("local memory", f"{need} bytes {what}, the device has {target.local_memory_bytes}")
