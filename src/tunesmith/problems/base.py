"""What every operation must answer, so that the bench can make inputs, check outputs and count work."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Configuration, Operand, Problem, ProblemType, UserError, Value

from .lists import GROUPING, ListedProblem, read_list, size_column

Array = NDArray[np.generic]

SMALL = 64
"""The largest size of a problem that takes next to no time."""


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
    """What `work` counts (`FLOP`, `B` for bytes, or a word such as `elements`), and a rate a second of."""
    runs_users_code: bool = False
    """Whether measuring runs programs that a tuning file names."""
    single: tuple[str, ...] = ()
    """Indices whose size is 1 where a tuning file names no sizes; the others have the first index's."""

    @abstractmethod
    def type_of(self, fields: Mapping[str, Value], location: Callable[[str], str], folder: Path) -> ProblemType:
        """The type that a tuning file's `ProblemType` describes.

        `location(key)` is where a key stands (`file:line`); paths among the fields are relative to `folder`. Raises
        UserError for an unknown key, a value that makes no sense, and a type that nobody computes here.
        """

    def scalars_of(self, fields: Mapping[str, Value], location: Callable[[str], str]) -> Configuration:
        """The scalars to measure with, from the same fields: they belong to the problem, not to its type."""
        return Configuration()

    def validate(self, problem_type: ProblemType) -> None:
        """Raise UserError for a type, out of a file, that `type_of` cannot have made."""
        return

    def former(self, problem: Problem) -> tuple[Problem, ...]:
        """The same problem in the forms in which earlier versions wrote it: an older store has it under their keys."""
        return ()

    def was_moved(self, former: Problem, stored: Problem) -> bool:
        """Whether `stored`, which a store has, is a `former` form too, written when the files lay in another place."""
        return False

    def assumed(self, fields: Mapping[str, Value]) -> Iterator[str]:
        """What a person should be told that `type_of` takes for granted where these fields say nothing."""
        yield from ()

    def wrong_sizes(self, problem_type: ProblemType, sizes: tuple[int, ...]) -> str:
        """Why no problem of this type has these sizes, in words; nothing where one has."""
        return ""

    def leading(self, problem_type: ProblemType, sizes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        """Name and smallest value, in elements, of each leading dimension that `Exact` may give after the sizes."""
        return ()

    def listed(self, problem_type: ProblemType, path: Path, location: str) -> Sequence[ListedProblem]:
        """The rows of a list of problems: a CSV file with a column for each index. A tuning file names it at `location`.

        Raises UserError for whatever is wrong in the file, and for a type that cannot be listed.
        """
        columns = {index: size_column("") for index in problem_type.indices} | GROUPING
        rows = read_list(path, columns, problem_type.indices, f"problems of {problem_type.name}")
        return [
            ListedProblem(
                tuple(row[index] for index in problem_type.indices), row.get("family", ""), row.get("weight", 1.0)
            )
            for row in rows
        ]

    def none_listed(self, problem_type: ProblemType, location: str, name: str, others: str) -> UserError:
        """The error where every row of the list `name` is of another type; `others` counts them by their layout."""
        return UserError(location, f"{name} has no problem of {problem_type.name}, but {others}", "change the list")

    def extents(self, problem_type: ProblemType) -> Mapping[str, tuple[str, ...]]:
        """Of each operand by name, the sizes that its logical extents are; "" for what is no size by itself.

        They are found in the operands of a problem whose sizes cannot be taken for one another or for anything else.
        """
        sizes = {1_000_003 + 7919 * position: index for position, index in enumerate(problem_type.indices)}
        problem = Problem(problem_type, tuple(sizes), (), self.scalars_of(problem_type.fields, str))
        return {x.name: tuple(sizes.get(extent, "") for extent in x.shape) for x in self.operands(problem)}

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
        if empty := [index for index in indices if found[index] == 0]:
            raise ValueError(f"{problem_type.name}: {empty[0]} is 0; there is nothing to launch")
        return tuple(whole_size(problem_type, index, found[index]) for index in indices)

    def leading_from(
        self, problem_type: ProblemType, sizes: tuple[int, ...], strides: Mapping[str, tuple[int, ...]]
    ) -> tuple[int, ...]:
        """The leading dimensions of a problem whose operands have these strides in elements, () where all are natural.
        One that no stride tells is natural, and so is one that would be too small: that is for the caller to see."""
        smallest = tuple(least for _, least in self.leading(problem_type, sizes))
        found = list(smallest)
        natural = self.operands(Problem(problem_type, sizes, smallest)) if smallest else ()
        for index, least in enumerate(smallest):
            wider = self.operands(Problem(problem_type, sizes, (*smallest[:index], least + 1, *smallest[index + 1 :])))
            # A stride that grows with it is a multiple of it; the smallest one is between neighbours.
            growing = [
                (after - before, strides[operand.name][axis])
                for operand, other in zip(natural, wider, strict=True)
                for axis, (before, after) in enumerate(zip(operand.strides, other.strides, strict=True))
                if after > before and operand.shape[axis] > 1 and axis < len(strides.get(operand.name, ()))
            ]
            if growing:
                factor, stride = min(growing)
                found[index] = max(least, stride // factor)
        return () if tuple(found) == smallest else tuple(found)

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

    def checks(self, problem: Problem) -> tuple[Problem, ...]:
        """The problems to verify before `problem` is timed: itself first, then the same with other scalars
        (for a GEMM, beta = 0 with a C full of NaN, and beta /= 0)."""
        return (problem,)

    def small(self, problem: Problem) -> Problem:
        """A problem of the same type and scalars, no larger than `problem`, that takes next to no time."""
        return replace(problem, sizes=tuple(min(size, SMALL) for size in problem.sizes), leading=())

    def flops(self, problem: Problem) -> float:
        """Floating-point operations, by the field's convention (GEMM: 2 M N K batch); 0 where none are counted."""
        return 0.0

    def work(self, problem: Problem) -> float:
        """What a rate of this operation is measured in, in its unit."""
        return self.bytes(problem) if self.unit == "B" else self.flops(problem)

    def bytes(self, problem: Problem) -> float:
        """Compulsory traffic: each input read once, each output written once."""
        return float(sum(traffic(operand) for operand in self.operands(problem)))


def refuse_other(found: ProblemType, made: ProblemType) -> None:
    """Raise UserError where a type out of a file is another than the one that its fields make, at the name of the first
    field that differs, or else at `indices` or `name`."""
    if found == made:
        return
    remedy = "take the file as tunesmith wrote it, or tune again"
    for name in (*made.fields, *found.fields):
        if found.fields.only([name]) != made.fields.only([name]):
            expected = str(made.fields[name]) if name in made.fields else "nothing"
            raise UserError(name, f"{name} of such a type is {expected}", remedy)
    indices = ", ".join(made.indices)
    differs = "indices" if found.indices != made.indices else "name"
    raise UserError(differs, f"these fields make the type {made.name} with the sizes {indices}", remedy)


def whole_size(problem_type: ProblemType, index: str, size: object) -> int:
    """A size as a person or an array gave it. Raises ValueError for what is no whole number from 1 on."""
    try:
        whole = operator.index(size)  # type: ignore[arg-type]  # whatever was given
    except TypeError:
        whole = 0
    if whole < 1 or isinstance(size, bool):
        raise ValueError(f"{problem_type.name}: {index} is {size!r}; give a whole number from 1 on")
    return whole


def storage_bytes(operand: Operand) -> int:
    """Of memory, the gaps between rows included."""
    return operand.storage_elements * np.dtype(operand.dtype).itemsize


def traffic(operand: Operand) -> int:
    """Bytes of an operand's elements, counted twice where they are read and written."""
    return math.prod(operand.shape) * np.dtype(operand.dtype).itemsize * (2 if operand.role == "inout" else 1)


def strided(operand: Operand, storage: Array, writeable: bool = False) -> Array:
    """The operand's logical array as a view of its storage. Raises ValueError when the storage is too short."""
    if storage.size < operand.storage_elements:
        raise ValueError(f"{operand.name} needs {operand.storage_elements} elements, its storage has {storage.size}")
    strides = tuple(stride * storage.itemsize for stride in operand.strides)
    # As words: NumPy strides no arrays of types that are not its own.
    words = storage.view(f"u{storage.itemsize}")
    return np.lib.stride_tricks.as_strided(words, operand.shape, strides, writeable=writeable).view(storage.dtype)
