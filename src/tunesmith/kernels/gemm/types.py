"""Problem types that most families do not compute."""

from __future__ import annotations

from collections.abc import Iterator

from tunesmith.problems.gemm import is_interleaved
from tunesmith.records import ProblemType, Rejection


def wrong_type(problem_type: ProblemType) -> Iterator[Rejection]:
    """For a family that computes in the precision of its operands, on matrices one after the other."""
    if problem_type.fields.word("DataType") == "h":
        yield Rejection("data type", f"{problem_type.name}: half precision needs wider sums, which this family lacks")
    if is_interleaved(problem_type):
        yield Rejection("batch layout", f"{problem_type.name}: this family does not compute interleaved batches")
