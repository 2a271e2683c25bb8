"""`Operation`, which every operation implements, and `Expected`, the reference values and tolerance of one output.

With the answers of an operation the bench makes inputs, checks outputs and counts work. `Expected.bound` is the
tolerance of a check; the docstring of `tunesmith.problems` lists the modules that derive it.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tunesmith.records import Configuration, Operand, Problem, ProblemType, UserError, Value

if TYPE_CHECKING:
    from .lists import ListedProblem

Array = NDArray[np.generic]

SMALL = 64
"""The largest size of a problem that takes next to no time."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What one output operand must hold: `abs(out[where] - value) <= bound`, elementwise, in float64.

    `where` indexes the logical array: `...` for all of it, or the sampled elements of a big one. `value` and `bound`
    have the shape of `out[where]`. Elements that `where` leaves out are still checked for having been written.
    A `value` of integers has the data type of its operand and must be met exactly, with a bound of 0: float64 cannot
    tell neighbours beyond 2^53 apart.
    """

    where: tuple[object, ...]
    value: NDArray[Any]
    bound: NDArray[np.float64]


class Operation(ABC):
    """One kind of computation.

    The life of a problem: `type_of` makes its type from a tuning file's fields; it gets sizes; then `operands`,
    `inputs` and `reference` are asked. Implementations are stateless and know nothing of kernels or devices.
    """

    name: str
    unit: str = "FLOP"
    """What `work` counts: `FLOP`, `B` for bytes, or a word such as `elements`. Rates are in this unit per second."""
    runs_users_code: bool = False
    """Whether measuring runs programs that a tuning file names."""
    single: tuple[str, ...] = ()
    """Indices whose size is 1 if a tuning file names no sizes; the other indices then have the first index's size."""

    @abstractmethod
    def type_of(self, fields: Mapping[str, Value], location: Callable[[str], str], folder: Path) -> ProblemType:
        """The type that a tuning file's `ProblemType` describes.

        `location(key)` is the `file:line` of a key; paths among the fields are relative to `folder`. Raises UserError
        for an unknown key, a value that makes no sense, and a type that is not supported.
        """

    def scalars_of(self, fields: Mapping[str, Value], location: Callable[[str], str]) -> Configuration:
        """The scalars to measure with. They come from the same fields, but belong to the problem, not to its type."""
        return Configuration()

    def validate(self, problem_type: ProblemType) -> None:
        """Raise UserError for a type that was read from a file and that `type_of` cannot have made."""
        return

    def former(self, problem: Problem) -> tuple[Problem, ...]:
        """The same problem in the forms of earlier versions, whose keys an older store has for it."""
        return ()

    def was_moved(self, former: Problem, stored: Problem) -> bool:
        """Whether `stored`, from a store, is this `former` form written when the files lay in another folder."""
        return False

    def assumed(self, fields: Mapping[str, Value]) -> Iterator[str]:
        """A sentence for the user for each assumption that `type_of` makes where these fields say nothing."""
        yield from ()

    def wrong_sizes(self, problem_type: ProblemType, sizes: tuple[int, ...]) -> str:
        """Why no problem of this type can have these sizes, in words; empty if one can."""
        return ""

    def leading(self, problem_type: ProblemType, sizes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        """Name and smallest value, in elements, of each leading dimension that `Exact` may give after the sizes."""
        return ()

    def listed(self, problem_type: ProblemType, path: Path, location: str) -> Sequence[ListedProblem]:
        """The rows of a list of problems: a CSV file with a column for each index.

        `location` is where the tuning file names the list. Raises UserError for whatever is wrong in the list, and for
        a type that cannot be listed.
        """
        from .lists import GROUPING, ListedProblem, read_list, size_column  # programs that only launch read no lists

        columns = {index: size_column("") for index in problem_type.indices} | GROUPING
        rows = read_list(path, columns, problem_type.indices, f"problems of {problem_type.name}")
        return [
            ListedProblem(
                tuple(row[index] for index in problem_type.indices), row.get("family", ""), row.get("weight", 1.0)
            )
            for row in rows
        ]

    def none_listed(self, problem_type: ProblemType, location: str, name: str, others: str) -> UserError:
        """The error if every row of the list `name` is of another type; `others` counts these rows by layout."""
        return UserError(location, f"{name} has no problem of {problem_type.name}, but {others}", "change the list")

    def extents(self, problem_type: ProblemType) -> Mapping[str, tuple[str, ...]]:
        """For each operand by name, the index of each logical extent; "" for an extent that is not a size by itself.

        The indices are read off the operands of a problem whose sizes are so unusual that each can be recognised.
        """
        sizes = {1_000_003 + 7919 * position: index for position, index in enumerate(problem_type.indices)}
        problem = Problem(problem_type, tuple(sizes), (), self.scalars_of(problem_type.fields, str))
        return {
            operand.name: tuple(sizes.get(extent, "") for extent in operand.shape) for operand in self.operands(problem)
        }

    def sizes_from(
        self, problem_type: ProblemType, shapes: Mapping[str, tuple[int, ...]], named_sizes: Mapping[str, int]
    ) -> tuple[int, ...]:
        """The sizes of a problem whose operands have these shapes; `named_sizes` are the sizes that the caller names.

        The caller must check that each shape fits all sizes. Raises TypeError for an unknown name, ValueError for a
        size that no shape determines or that is not positive.
        """
        extents, indices = self.extents(problem_type), problem_type.indices
        for what, names, known in (("size", named_sizes, indices), ("operand", shapes, extents or shapes)):
            if unknown := [name for name in names if name not in known]:
                raise TypeError(f"{problem_type.name} has no {what} {unknown[0]!r}; there are {', '.join(known)}")
        sizes = dict(named_sizes)
        for name, shape in shapes.items():
            for index, extent in zip(extents.get(name, ()), shape, strict=False):
                sizes.setdefault(index, extent)
        if missing := [index for index in indices if index not in sizes]:
            sources = ", ".join(f"{name} [{', '.join(names)}]" for name, names in extents.items()) or "no operand"
            what = f"{problem_type.name}: no shape tells {' and '.join(missing)} (sizes are told by {sources})"
            raise ValueError(f"{what}; give sizes={{{missing[0]!r}: ...}}")
        if empty := [index for index in indices if sizes[index] == 0]:
            raise ValueError(f"{problem_type.name}: {empty[0]} is 0; there is nothing to launch")
        return tuple(whole_size(problem_type, index, sizes[index]) for index in indices)

    def leading_from(
        self, problem_type: ProblemType, sizes: tuple[int, ...], strides: Mapping[str, tuple[int, ...]]
    ) -> tuple[int, ...]:
        """The leading dimensions of a problem whose operands have these strides in elements; () if all are natural.

        A leading dimension is natural if no stride determines it, or if its stride is too small: the caller must check
        the strides.
        """
        smallest = tuple(least for _, least in self.leading(problem_type, sizes))
        leading = list(smallest)
        natural = self.operands(Problem(problem_type, sizes, smallest)) if smallest else ()
        for index, least in enumerate(smallest):
            wider = self.operands(Problem(problem_type, sizes, (*smallest[:index], least + 1, *smallest[index + 1 :])))
            # A stride that grows with the leading dimension is a multiple of it; the smallest factor gives its value.
            growing = [
                (after - before, strides[operand.name][axis])
                for operand, widened in zip(natural, wider, strict=True)
                for axis, (before, after) in enumerate(zip(operand.strides, widened.strides, strict=True))
                if after > before and operand.shape[axis] > 1 and axis < len(strides.get(operand.name, ()))
            ]
            if growing:
                factor, stride = min(growing)
                leading[index] = max(least, stride // factor)
        return () if tuple(leading) == smallest else tuple(leading)

    @abstractmethod
    def operands(self, problem: Problem) -> tuple[Operand, ...]:
        """Every array that a kernel may touch, except the workspace."""

    @abstractmethod
    def inputs(self, problem: Problem, random: np.random.Generator) -> dict[str, Array]:
        """Independent random storage (1-D, `storage_elements` long) for every operand of role in or inout.

        Values are drawn so that a wrong result shows: no zeros, no two operands alike.
        """

    @abstractmethod
    def reference(self, problem: Problem, inputs: Mapping[str, Array]) -> dict[str, Expected]:
        """What each output must hold: values computed in float64, and the tolerance of each element.

        The tolerance is derived from the kernel's arithmetic, in the operation's `reference.py`.
        """

    def agreement(self, problem: Problem) -> Mapping[str, float]:
        """For each output that is compared with the first solution that runs, how far both may lie apart.

        The difference of two reals is relative to the first one's magnitude: its own, and the root mean square of all
        elements that the launch changed. Whole numbers must be equal. Empty if `reference` has the right values, which
        is the default; otherwise `reference` gives none.
        """
        return {}

    def share(self, problem: Problem, inputs: Callable[[], Mapping[str, Array]]) -> None:
        """Hand over what the verification of a problem needs and only this process has; by default nothing.

        The bench calls it in the process that asked for the measurement, before another process verifies the problem.
        `inputs` makes the problem's inputs.
        """
        del problem, inputs

    def checks(self, problem: Problem) -> tuple[Problem, ...]:
        """The problems to verify before `problem` is timed: `problem` first, then the same with other scalars.

        For a GEMM these are beta = 0 with a C full of NaN, and beta /= 0.
        """
        return (problem,)

    def small(self, problem: Problem) -> Problem:
        """A problem of the same type and scalars, no larger than `problem`, that takes next to no time."""
        return replace(problem, sizes=tuple(min(size, SMALL) for size in problem.sizes), leading=())

    def flops(self, problem: Problem) -> float:
        """Floating-point operations, by the field's convention (GEMM: 2 M N K batch); 0 if none are counted."""
        return 0.0

    def work(self, problem: Problem) -> float:
        """The amount of work, in `unit`: rates are work per second."""
        return self.bytes(problem) if self.unit == "B" else self.flops(problem)

    def bytes(self, problem: Problem) -> float:
        """Compulsory traffic: each input read once, each output written once."""
        return float(sum(traffic(operand) for operand in self.operands(problem)))


def refuse_mismatch(stored: ProblemType, rebuilt: ProblemType) -> None:
    """Raise UserError if a type from a file differs from the type that `type_of` makes of the same fields.

    The error's location is the first field that differs, or else `indices` or `name`.
    """
    if stored == rebuilt:
        return
    remedy = "take the file as tunesmith wrote it, or tune again"
    for name in (*rebuilt.fields, *stored.fields):
        if stored.fields.only([name]) != rebuilt.fields.only([name]):
            expected = str(rebuilt.fields[name]) if name in rebuilt.fields else "nothing"
            raise UserError(name, f"{name} of such a type is {expected}", remedy)
    indices = ", ".join(rebuilt.indices)
    differs = "indices" if stored.indices != rebuilt.indices else "name"
    raise UserError(differs, f"these fields make the type {rebuilt.name} with the sizes {indices}", remedy)


def whole_size(problem_type: ProblemType, index: str, size: object) -> int:
    """A size from a person or an array, as an int. Raises ValueError for anything but a whole number from 1 on."""
    try:
        whole = operator.index(size)  # type: ignore[arg-type]  # TypeError says that it is no whole number
    except TypeError:
        whole = 0
    if whole < 1 or isinstance(size, bool):
        raise ValueError(f"{problem_type.name}: {index} is {size!r}; give a whole number from 1 on")
    return whole


def storage_bytes(operand: Operand) -> int:
    """Bytes of memory that an operand takes, including the gaps between rows."""
    return operand.storage_elements * np.dtype(operand.dtype).itemsize


def traffic(operand: Operand) -> int:
    """Bytes of an operand's elements, counted twice if the operand is read and written."""
    return math.prod(operand.shape) * np.dtype(operand.dtype).itemsize * (2 if operand.role == "inout" else 1)


def strided(operand: Operand, storage: Array, writeable: bool = False) -> Array:
    """The operand's logical array as a view of its storage. Raises ValueError when the storage is too short."""
    if storage.size < operand.storage_elements:
        raise ValueError(f"{operand.name} needs {operand.storage_elements} elements, its storage has {storage.size}")
    strides = tuple(stride * storage.itemsize for stride in operand.strides)
    # Viewed as words: NumPy cannot stride arrays of types that are not its own.
    words = storage.view(f"u{storage.itemsize}")
    return np.lib.stride_tricks.as_strided(words, operand.shape, strides, writeable=writeable).view(storage.dtype)
