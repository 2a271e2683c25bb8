"""What every operation must answer, so that the bench can make inputs, check outputs and count work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Configuration, Operand, Problem, ProblemType, Value

Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Expected:
    """What one output operand must hold: `abs(out[where] - value) <= bound`, elementwise, in float64.

    A `value` of integers has the data type of its operand and must be met exactly (float64 tells no two neighbours
    beyond 2^53 apart); its bound is 0. `where` indexes the logical array (`...` for all of it, or the sampled rows of a
    big one); `value` and `bound` have the shape of `out[where]`. Whatever `where` leaves out is still checked for
    elements that nobody wrote.
    """

    where: tuple[object, ...]
    value: NDArray[Any]
    bound: NDArray[np.float64]


class Operation(ABC):
    """One kind of computation. Life of a problem: type from a tuning file's fields; sizes; operands; inputs; reference.

    Implementations are stateless and know nothing of kernels or devices.
    """

    name: str
    unit: str = "FLOP"
    """What `work` counts, and a rate a second of."""

    @abstractmethod
    def type_of(self, fields: Mapping[str, Value], place: Callable[[str], str], folder: Path) -> ProblemType:
        """The type that a tuning file's `ProblemType` describes.

        `place(key)` is where a key stands (`file:line`); paths among the fields are relative to `folder`. Raises
        UserError for an unknown key, a value that makes no sense, and a type that nobody computes here.
        """

    def scalars_of(self, fields: Mapping[str, Value], place: Callable[[str], str]) -> Configuration:
        """The scalars to measure with, from the same fields: they belong to the problem, not to its type."""
        return Configuration()

    def validate(self, problem_type: ProblemType) -> None:
        """Raise UserError for a type, out of a file, that `type_of` cannot have made."""
        return

    def former(self, problem: Problem) -> tuple[Problem, ...]:
        """The same problem in the forms in which earlier versions wrote it: an older store has it under their keys."""
        return ()

    def assumed(self, fields: Mapping[str, Value]) -> Iterator[str]:
        """What a person should be told that `type_of` takes for granted where these fields say nothing."""
        yield from ()

    def leading(self, problem_type: ProblemType, sizes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        """Name and smallest value, in elements, of each leading dimension that `Exact` may give after the sizes."""
        return ()

    @abstractmethod
    def indices(self, problem_type: ProblemType) -> tuple[str, ...]:
        """Names of the sizes, in the order of a tuning file."""

    def extents(self, problem_type: ProblemType) -> Mapping[str, tuple[str, ...]]:
        """Of each operand by name, the sizes that its logical extents are; "" for what is no size by itself. Of an
        operation that says nothing here, every launch names the sizes."""
        return {}

    def sizes_from(
        self, problem_type: ProblemType, shapes: Mapping[str, tuple[int, ...]], given: Mapping[str, int]
    ) -> tuple[int, ...]:
        """The sizes of a problem whose operands have these shapes; `given` are those that the caller names.

        Whether each shape fits all sizes is for the caller to see. Raises TypeError for a name that means nothing,
        ValueError for a size that nothing tells or that is not positive.
        """
        extents, indices = self.extents(problem_type), problem_type.indices
        for what, names, known in (("size", given, indices), ("operand", shapes, extents or shapes)):
            if unknown := [name for name in names if name not in known]:
                raise TypeError(f"{problem_type.name} has no {what} {unknown[0]!r}; there are {', '.join(known)}")
        found = dict(given)
        for name, shape in shapes.items():
            for index, extent in zip(extents.get(name, ()), shape, strict=False):
                found.setdefault(index, extent)
        if missing := [index for index in indices if index not in found]:
            told_by = ", ".join(f"{name} [{', '.join(sizes)}]" for name, sizes in extents.items()) or "no operand"
            what = f"{problem_type.name}: no shape tells {' and '.join(missing)} (sizes are told by {told_by})"
            raise ValueError(f"{what}; give sizes={{{missing[0]!r}: ...}}")
        if empty := [index for index in indices if found[index] < 1]:
            raise ValueError(f"{problem_type.name}: {empty[0]} is {found[empty[0]]}; there is nothing to launch")
        return tuple(found[index] for index in indices)

    @abstractmethod
    def operands(self, problem: Problem) -> tuple[Operand, ...]:
        """Every array that a kernel may touch, workspace excepted."""

    @abstractmethod
    def inputs(self, problem: Problem, random: np.random.Generator) -> dict[str, Array]:
        """Independent random storage (1-D, `storage_elements` long) for every operand of role in or inout.

        Values are drawn so that a wrong result cannot hide: no zeros, no two operands alike.
        """

    @abstractmethod
    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """What each output must hold, computed in float64, with an elementwise bound derived from the arithmetic."""

    @abstractmethod
    def checks(self, problem: Problem) -> tuple[Problem, ...]:
        """The problems to verify before `problem` is timed: itself first, then the same with other scalars
        (for a GEMM, beta = 0 with a C full of NaN, and beta /= 0)."""

    @abstractmethod
    def small(self, problem: Problem) -> Problem:
        """A problem of the same type and scalars, no larger than `problem`, that takes next to no time."""

    @abstractmethod
    def flops(self, problem: Problem) -> float:
        """Floating-point operations, by the field's convention (GEMM: 2 M N K batch)."""

    def work(self, problem: Problem) -> float:
        """What a rate of this operation is measured in: floating-point operations, where there are any."""
        return self.flops(problem)

    @abstractmethod
    def bytes(self, problem: Problem) -> float:
        """Compulsory traffic: each input read once, each output written once."""
