"""GEMM's calls for who checks or compares what was tuned: `matmul` of NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tunesmith.library.doors import Door, Storage, logical_arrays
from tunesmith.records import Problem, ProblemType

if TYPE_CHECKING:
    from tunesmith.library.library import Library

OF_TENSORS = ("ScaleAB", "F32XdlMathOp")
"""Fields of types that are asked for by torch tensors alone: NumPy's arrays have no scale, and no TF32."""

EPILOGUE = ("UseBias", "Activation")


class GemmDoor(Door):
    """Row-major arrays ask for the product's transpose, so that `b` is the problem's A. They have the problem's leading
    dimensions; a transposed operand is a transposed view."""

    def takes_host_arrays(self, problem_type: ProblemType) -> bool:
        return not any(name in problem_type.fields for name in OF_TENSORS)

    def sizes(self, problem_type: ProblemType, given: tuple[int, ...]) -> tuple[int, ...]:
        """M, N, 1, K will do where there is no batch."""
        if "Batch" not in problem_type.indices and len(given) == 4:
            if given[2] != 1:
                raise ValueError(f"{problem_type.name} has no batch, {given[2]} was given")
            given = (*given[:2], given[3])
        return super().sizes(problem_type, given)

    def unread(self, problem: Problem) -> Collection[str]:
        has_c = problem.type.fields.flag("UseBeta") and problem.scalars.get("beta", 0.0) != 0
        return () if has_c else ("C",)

    def call(self, library: Library, problem: Problem, storage: Storage) -> Callable[[], object]:
        a, b, c, out = _row_major(problem, storage)
        fields, scalars = problem.type.fields, problem.scalars
        more: dict[str, Any] = {}
        if "UseBias" in fields:
            more["bias"] = storage["Bias"]
        if "Activation" in fields:
            more["activation"] = fields.word("Activation")
        if scalars.get("alpha", 1.0) != 1:
            more["alpha"] = scalars["alpha"]
        if "C" not in self.unread(problem):
            more |= {"c": c, "beta": scalars["beta"]}
        return partial(library.matmul, a, b, out=out, **more)

    def peer(self, problem: Problem, storage: Storage) -> Callable[[], object] | None:
        """NumPy's BLAS, of a plain product."""
        plain = "C" in self.unread(problem) and not any(name in problem.type.fields for name in EPILOGUE)
        asked = self.takes_host_arrays(problem.type) and problem.scalars.get("alpha", 1.0) == 1
        if not (plain and asked):
            return None
        a, b, _, out = _row_major(problem, storage)
        return partial(np.matmul, a, b, out=out)


def _row_major(problem: Problem, storage: Storage) -> tuple[Any, Any, Any, Any]:
    """a, b, c and out of `matmul`."""
    arrays = logical_arrays(problem, storage)
    return arrays["B"].T, arrays["A"].T, arrays["C"].T, arrays["D"].T
