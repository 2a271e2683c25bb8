"""Rejections of problem types that most families do not compute."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tunesmith.problems.gemm import DATA_TYPES, Gemm, dest_of, is_interleaved
from tunesmith.records import Problem, ProblemType, Rejection

EPILOGUE = ("UseBias", "Activation", "ScaleAB")
"""Fields that a type has only if it adds something to plain BLAS."""


def gemm_of_type(problem_type: ProblemType) -> Gemm:
    """The typed view of a problem type: that of its smallest problem."""
    return Gemm.of(Problem(problem_type, (1,) * len(problem_type.indices)))


def wrong_type(problem_type: ProblemType) -> Iterator[Rejection]:
    """Rejections of a family that computes in the precision of its operands, on strided batches, as BLAS does.

    A type that permits TF32 is not rejected: such a family is more exact than it must be.
    """
    fields = problem_type.fields
    operands = DATA_TYPES[fields.word("DataType")]
    if operands.sums != operands.dtype:
        yield Rejection(
            "data type",
            f"{problem_type.name}: {operands.dtype} needs sums in {operands.sums}, which this family lacks",
        )
    yield from wrong_epilogue(problem_type)
    if is_interleaved(problem_type):
        yield Rejection("batch layout", f"{problem_type.name}: this family does not compute interleaved batches")


def beyond_blas(problem_type: ProblemType, data_types: Collection[str]) -> Iterator[Rejection]:
    """Rejections of a family that computes only what BLAS computes, of these types, with C and D in the operands'
    type."""
    fields = problem_type.fields
    if fields.word("DataType") not in data_types:
        yield Rejection("data type", f"{problem_type.name}: this family has {', '.join(data_types)}")
    elif dest_of(problem_type) != fields.word("DataType"):
        yield Rejection("data type", f"{problem_type.name}: D is of the operands' type in this family")
    yield from wrong_epilogue(problem_type)


def wrong_epilogue(problem_type: ProblemType) -> Iterator[Rejection]:
    """A rejection of a family that computes only what BLAS computes, if the type has more."""
    if additional := [name for name in EPILOGUE if name in problem_type.fields]:
        yield Rejection("epilogue", f"{problem_type.name}: this family computes no {', '.join(additional)}")
