"""Turns a problem with its operands into a call of the library, to check a written logic or to compare with a peer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tunesmith.problems import OPERATIONS
from tunesmith.records import Problem, ProblemType, Registry

from .arrays._libraries import Array, spread

if TYPE_CHECKING:
    from .library import Library

Storage = Mapping[str, Array]
"""One-dimensional memory of a problem's inputs and outputs by operand name, as `Operation.inputs` gives it."""


class CallAdapter:
    """Calls the library for problems of one operation. This base class does so by `Library.launch`; an operation with
    a call of its own (GEMM: `matmul`) has a subclass."""

    def takes_host_arrays(self, problem_type: ProblemType) -> bool:
        """Whether a call with NumPy arrays can be a problem of the type."""
        return True

    def sizes(self, problem_type: ProblemType, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """A size for each index, from the sizes that a person gave. Raises ValueError for a wrong number of sizes."""
        indices = problem_type.indices
        if len(numbers) != len(indices):
            raise ValueError(
                f"{problem_type.name} has the sizes {', '.join(indices)}; {len(numbers)} numbers were given"
            )
        return numbers

    def unread(self, problem: Problem) -> Collection[str]:
        """Input operands that no kernel reads for this problem, so that a caller may leave them out."""
        return ()

    def call(self, library: Library, problem: Problem, storage: Storage) -> Callable[[], object]:
        """A function that solves the problem in this memory by a public method of the library."""
        sizes = dict(zip(problem.type.indices, problem.sizes, strict=True))
        arrays = logical_arrays(problem, storage)
        return partial(library.launch, problem.type, arrays, sizes=sizes, scalars=problem.scalars)

    def peer(self, problem: Problem, storage: Storage) -> Callable[[], object] | None:
        """A function that solves the problem in the same memory by another library on the host; None if there is no
        such library."""
        return None


CALL_ADAPTERS: Registry[CallAdapter] = Registry(
    "door", {"GEMM": "tunesmith.library.gemm._call_adapter:GemmCallAdapter"}, group="tunesmith.doors"
)
"""By operation, for operations with an adapter of their own. Other distributions register theirs under the group's
name, which therefore stays `tunesmith.doors`."""

_DEFAULT = CallAdapter()


def call_adapter_of(problem_type: ProblemType) -> CallAdapter:
    """The adapter of the type's operation; the one that calls `Library.launch` if the operation has none."""
    operation = problem_type.operation
    return CALL_ADAPTERS[operation] if operation in CALL_ADAPTERS else _DEFAULT  # noqa: SIM401 (a registry has no get)


def storage_for(problem: Problem, random: np.random.Generator) -> dict[str, Array]:
    """Random inputs as verification uses them; outputs full of NaN, or of zeros if their data type has no NaN."""
    operation = OPERATIONS[problem.type.operation]
    storage: dict[str, Array] = dict(operation.inputs(problem, random))
    for operand in operation.operands(problem):
        if operand.name not in storage:
            empty = np.nan if np.dtype(operand.dtype).kind not in "iu" else 0
            storage[operand.name] = np.full(operand.storage_elements, empty, operand.dtype)
    return storage


def logical_arrays(problem: Problem, storage: Storage) -> dict[str, Array]:
    """Views of the memory in the operands' logical shapes."""
    operands = OPERATIONS[problem.type.operation].operands(problem)
    present = [operand for operand in operands if operand.name in storage]
    return {operand.name: spread(storage[operand.name], operand.shape, operand.strides) for operand in present}
