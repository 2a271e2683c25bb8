"""GEMM types of ours and of Tensile's library logic, one made of the other.

Both have the same indices, in the same order: M, N, batch (if there is one), K; and the same order of leading
dimensions: D, C, A, B.
"""

from __future__ import annotations

from typing import Any

from tunesmith.problems.gemm import DATA_TYPES, dest_of, is_interleaved
from tunesmith.records import ProblemType

from .contraction import TENSILE_DATA_TYPES, TYPES_BY_LETTERS, ContractionType

_SUMS = {"float32": "s", "float64": "d", "int32": "i"}
"""Letters of the types of sums, by NumPy's names."""
_ONLY_OURS = {
    "Interleaved": "its batch is interleaved",
    "UseBias": "it has a bias",
    "Activation": "it has an activation",
    "ScaleAB": "its operands have scales",
}
"""Fields of our types that Tensile's have no counterpart of."""


def mismatch(contraction: ContractionType, problem_type: ProblemType) -> str:
    """Why a logic's sizes are not those of one of our GEMM types, in words; empty if they are.

    Operands, result, transposes and the order of the indices must agree. A batched logic has problems of an unbatched
    type, too, where its batch is 1. Neither beta nor what follows the sums matters.
    """
    fields = problem_type.fields
    if not contraction.is_gemm or any(contraction.conjugated) or is_interleaved(problem_type):
        return "it is no GEMM of real numbers in Tensile's order"
    ours = (TYPES_BY_LETTERS[letter] for letter in (fields.word("DataType"), dest_of(problem_type)))
    transposes = fields.flag("TransposeA"), fields.flag("TransposeB")
    checks = {
        "data types": (*ours, "F32XdlMathOp" in fields) == (contraction.data_type, contraction.dest, contraction.xf32),
        "transposes": transposes == contraction.transposes,
        "batch": bool(contraction.batch) or not fields.flag("Batched"),
        "order of indices": (contraction.a, contraction.b) == _assignments(*contraction.transposes, contraction),
    }
    wrong = [name for name, agrees in checks.items() if not agrees]
    return f"other {', '.join(wrong)}" if wrong else ""


def not_exported(problem_type: ProblemType) -> str:
    """Why Tensile has no such type, in words; empty if it has."""
    if problem_type.operation != "GEMM":
        return f"{problem_type.operation} is no GEMM"
    return next((reason for field, reason in _ONLY_OURS.items() if field in problem_type.fields), "")


def tensile_fields(problem_type: ProblemType) -> dict[str, Any]:
    """The ProblemType of a library logic for one of our GEMM types, with Tensile's numbers of data types."""
    fields = problem_type.fields
    operands = DATA_TYPES[fields.word("DataType")]
    sums = _SUMS[operands.sums]
    is_wide = operands.sums != operands.dtype
    batched = fields.flag("Batched")
    transposes = fields.flag("TransposeA"), fields.flag("TransposeB")
    summed, batch = (3, [2]) if batched else (2, [])
    a, b = ([summed, 0] if transposes[0] else [0, summed]), ([1, summed] if transposes[1] else [summed, 1])
    return {
        "Batched": batched,
        "ComplexConjugateA": False,
        "ComplexConjugateB": False,
        "ComputeDataType": _number(sums),
        "DataType": _number(fields.word("DataType")),
        "DestDataType": _number(dest_of(problem_type)),
        "F32XdlMathOp": _number("x" if "F32XdlMathOp" in fields else "s"),
        "HighPrecisionAccumulate": is_wide,
        "Index0": 0,
        "Index01A": 0,
        "Index01B": 1,
        "Index1": 1,
        "IndexAssignmentsA": [*a, *batch],
        "IndexAssignmentsB": [*b, *batch],
        "IndexUnroll": summed,
        "IndexUnrollA": a.index(summed),
        "IndexUnrollB": b.index(summed),
        "IndicesBatch": batch,
        "IndicesFree": [0, 1],
        "IndicesSummation": [summed],
        "NumIndicesBatch": len(batch),
        "NumIndicesC": 2 + len(batch),
        "NumIndicesFree": 2,
        "NumIndicesSummation": 1,
        "OperationType": "GEMM",
        "SilentHighPrecisionAccumulate": False,
        "StridedBatched": True,
        "TLUA": not transposes[0],
        "TLUB": transposes[1],
        "Tensor0": 0,
        "Tensor1": 1,
        "TileA": 0,
        "TileB": 1,
        "TotalIndices": summed + 1,
        "TransposeA": transposes[0],
        "TransposeB": transposes[1],
        "UseBeta": fields.flag("UseBeta"),
        "UseInitialStridesAB": False,
        "UseInitialStridesCD": False,
    }


def _assignments(
    transposed_a: bool, transposed_b: bool, contraction: ContractionType
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The indices of A and B of a GEMM with these transposes."""
    summed, batch = contraction.index_count - 1, contraction.batch
    a = (summed, 0) if transposed_a else (0, summed)
    b = (1, summed) if transposed_b else (summed, 1)
    return (*a, *batch), (*b, *batch)


def _number(letters: str) -> int:
    return TENSILE_DATA_TYPES.index(TYPES_BY_LETTERS[letters])
