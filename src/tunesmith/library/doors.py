"""How an operation's problem becomes a call of the library: for who checks or compares what was tuned."""

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
"""One-dimensional memory of a problem's operands by name, inputs and outputs, as `Operation.inputs` gives it."""


class Door:
    """An operation's calls. This one is for all that have no front door but `Library.launch`."""

    def takes_host_arrays(self, problem_type: ProblemType) -> bool:
        """Whether NumPy arrays can ask for problems of the type."""
        return True

    def sizes(self, problem_type: ProblemType, given: tuple[int, ...]) -> tuple[int, ...]:
        """A size for each index, as a person gave them. Raises ValueError for another number of them."""
        indices = problem_type.indices
        if len(given) != len(indices):
            raise ValueError(f"{problem_type.name} has the sizes {', '.join(indices)}; {len(given)} numbers were given")
        return given

    def unread(self, problem: Problem) -> Collection[str]:
        """Operands of role in that nobody reads, so that a caller may leave them out."""
        return ()

    def call(self, library: Library, problem: Problem, storage: Storage) -> Callable[[], object]:
        """The call that solves the problem in this memory, by the library's public face."""
        sizes = dict(zip(problem.type.indices, problem.sizes, strict=True))
        arrays = logical_arrays(problem, storage)
        return partial(library.launch, problem.type, arrays, sizes=sizes, scalars=problem.scalars)

    def peer(self, problem: Problem, storage: Storage) -> Callable[[], object] | None:
        """The same by another library on the host, into the same memory; None where there is nobody to compare with."""
        return None


DOORS: Registry[Door] = Registry("door", {"GEMM": "tunesmith.library.gemm._door:GemmDoor"}, group="tunesmith.doors")
"""By operation, of those that have one of their own."""

_ANY = Door()


def door_of(problem_type: ProblemType) -> Door:
    operation = problem_type.operation
    return DOORS[operation] if operation in DOORS else _ANY  # noqa: SIM401 (a registry has no get)


def storage_for(problem: Problem, random: np.random.Generator) -> dict[str, Array]:
    """Random inputs as verification uses them, and outputs full of NaN, or of zeros where their type has none."""
    operation = OPERATIONS[problem.type.operation]
    storage: dict[str, Array] = dict(operation.inputs(problem, random))
    for operand in operation.operands(problem):
        if operand.name not in storage:
            empty = np.nan if np.dtype(operand.dtype).kind not in "iu" else 0
            storage[operand.name] = np.full(operand.storage_elements, empty, operand.dtype)
    return storage


def logical_arrays(problem: Problem, storage: Storage) -> dict[str, Array]:
    """Views of memory in the operands' logical shapes."""
    operands = OPERATIONS[problem.type.operation].operands(problem)
    return {x.name: spread(storage[x.name], x.shape, x.strides) for x in operands if x.name in storage}
