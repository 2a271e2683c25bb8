"""Problem types that most families do not compute."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tunesmith.problems.gemm import DATA_TYPES, Gemm, dest_of, is_interleaved
from tunesmith.records import Problem, ProblemType, Rejection

EPILOGUE = ("UseBias", "Activation", "ScaleAB")
"""Fields that a type has only where something is added to plain BLAS."""


def typed(problem_type: ProblemType) -> Gemm:
    """What a type says by itself, as the smallest problem of it."""
    return Gemm.of(Problem(problem_type, (1,) * len(problem_type.indices)))


def wrong_type(problem_type: ProblemType) -> Iterator[Rejection]:
    """For a family that computes in the precision of its operands, on matrices one after the other, as BLAS does.

    TF32 is a permission, so such a family may serve that type: it is more exact.
    """
    fields = problem_type.fields
    known = DATA_TYPES[fields.word("DataType")]
    if known.sums != known.dtype:
        yield Rejection(
            "data type", f"{problem_type.name}: {known.dtype} needs sums in {known.sums}, which this family lacks"
        )
    yield from wrong_epilogue(problem_type)
    if is_interleaved(problem_type):
        yield Rejection("batch layout", f"{problem_type.name}: this family does not compute interleaved batches")


def beyond_blas(problem_type: ProblemType, data_types: Collection[str]) -> Iterator[Rejection]:
    """For a family that computes what BLAS computes and no more, C and D in the operands' type, of these types."""
    fields = problem_type.fields
    if fields.word("DataType") not in data_types:
        yield Rejection("data type", f"{problem_type.name}: this family has {', '.join(data_types)}")
    elif dest_of(problem_type) != fields.word("DataType"):
        yield Rejection("data type", f"{problem_type.name}: D is of the operands' type in this family")
    yield from wrong_epilogue(problem_type)


def wrong_epilogue(problem_type: ProblemType) -> Iterator[Rejection]:
    """For a family that computes what BLAS computes and no more."""
    if more := [name for name in EPILOGUE if name in problem_type.fields]:
        yield Rejection("epilogue", f"{problem_type.name}: this family computes no {', '.join(more)}")
