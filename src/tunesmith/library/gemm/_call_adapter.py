"""Turns a GEMM problem into a call of `matmul` with NumPy arrays, to check a written logic or to compare with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tunesmith.library.call_adapters import CallAdapter, Storage, logical_arrays
from tunesmith.records import Problem, ProblemType

if TYPE_CHECKING:
    from tunesmith.library.library import Library

OF_TENSORS = ("ScaleAB", "F32XdlMathOp")
"""Fields of types that only calls with torch tensors need: NumPy's arrays have no scale on the device, and no TF32."""

EPILOGUE = ("UseBias", "Activation")


class GemmCallAdapter(CallAdapter):
    """Calls `matmul`. A product of row-major arrays is the problem of the transposed product, so `b` is the problem's
    A. The arrays have the problem's leading dimensions; a transposed operand is a transposed view."""

    def takes_host_arrays(self, problem_type: ProblemType) -> bool:
        return not any(name in problem_type.fields for name in OF_TENSORS)

    def sizes(self, problem_type: ProblemType, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """As in `CallAdapter`; a type without a batch also takes M, N, 1, K."""
        if "Batch" not in problem_type.indices and len(numbers) == 4:
            if numbers[2] != 1:
                raise ValueError(f"{problem_type.name} has no batch, {numbers[2]} was given")
            numbers = (*numbers[:2], numbers[3])
        return super().sizes(problem_type, numbers)

    def unread(self, problem: Problem) -> Collection[str]:
        has_c = problem.type.fields.flag("UseBeta") and problem.scalars.get("beta", 0.0) != 0
        return () if has_c else ("C",)

    def call(self, library: Library, problem: Problem, storage: Storage) -> Callable[[], object]:
        a, b, c, out = row_major(problem, storage)
        fields, scalars = problem.type.fields, problem.scalars
        options: dict[str, Any] = {}
        if "UseBias" in fields:
            options["bias"] = storage["Bias"]
        if "Activation" in fields:
            options["activation"] = fields.word("Activation")
        if scalars.get("alpha", 1.0) != 1:
            options["alpha"] = scalars["alpha"]
        if "C" not in self.unread(problem):
            options |= {"c": c, "beta": scalars["beta"]}
        return partial(library.matmul, a, b, out=out, **options)

    def peer(self, problem: Problem, storage: Storage) -> Callable[[], object] | None:
        """NumPy's BLAS for a plain product (alpha 1, no beta, no epilogue); None for any other problem."""
        has_epilogue = any(name in problem.type.fields for name in EPILOGUE) or "C" not in self.unread(problem)
        is_plain = not has_epilogue and problem.scalars.get("alpha", 1.0) == 1
        if not (is_plain and self.takes_host_arrays(problem.type)):
            return None
        a, b, _, out = row_major(problem, storage)
        return partial(np.matmul, a, b, out=out)


def row_major(problem: Problem, storage: Storage) -> tuple[Any, Any, Any, Any]:
    """The arguments a, b, c and out of `matmul`."""
    arrays = logical_arrays(problem, storage)
    return arrays["B"].T, arrays["A"].T, arrays["C"].T, arrays["D"].T
