"""Sizes as a tuning file writes them: `Range` with its five forms, `Exact`, and `--max-size`.

The grammar is Tensile's, but mistakes that Tensile lets pass are errors. Each value comes with its location
(`file:line`), and every function here raises UserError at the location of the value that is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from typing import TYPE_CHECKING

from tunesmith.records import Problem, ProblemType, UserError, Value

from .keys import is_integer, shortened
from .mistakes import Mistakes

if TYPE_CHECKING:
    from .base import Operation

LIMIT = 100_000
"""The most sizes that one ProblemSizes may hold: a run measures a few of them in a second."""

LARGEST = 2**31 - 1
"""The largest size: indices and leading dimensions are 32-bit numbers in the kernels, as in BLAS."""

_FORMS = "[size], [first, last], [first, step, last] or [first, step, growth, last]"

LocatedValue = tuple[Value, str]
Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """The sizes of one index: from `first` in steps of `step`, which grows by `growth` each time, up to `last`.

    `last` itself is a member only if a step hits it exactly.
    """

    first: int
    step: int
    growth: int
    last: int

    def __iter__(self) -> Iterator[int]:
        size, step = self.first, self.step
        while size <= self.last:
            yield size
            size, step = size + step, step + self.growth

    def count(self, limit: int) -> int:
        """The number of sizes, counted no further than `limit`."""
        return sum(1 for _ in islice(self, limit))


@dataclass(frozen=True, slots=True)
class SameAs:
    """The size of an earlier index, which is named by its position."""

    index: int


def range_sizes(entries: Sequence[LocatedValue], problem_type: ProblemType, location: str) -> list[Sizes]:
    """The sizes of one `Range`: the product of its spans, the first index varying fastest.

    `entries` are the descriptors, one for each index; `location` is that of the Range.
    """
    indices = problem_type.indices
    if len(entries) != len(indices):
        raise _wrong_count(location, "Range", len(entries), problem_type)
    mistakes = Mistakes()
    read = mistakes.each(lambda entry: _entry(entry[0], *entry[1]), enumerate(entries))
    mistakes.tell()
    spans = [entry for entry in read if isinstance(entry, Span)]
    if math.prod(span.count(LIMIT + 1) for span in spans) > LIMIT:
        raise UserError(location, f"ProblemSizes.Range makes more than {LIMIT:,} sizes", "give larger steps")
    # `product` varies its last factor fastest, so the spans go in reversed and each result is reversed back.
    return [_resolve(read, chosen[::-1]) for chosen in product(*(tuple(span) for span in reversed(spans)))]


def exact_sizes(
    entries: Sequence[LocatedValue], problem_type: ProblemType, operation: Operation, location: str
) -> tuple[Sizes, Sizes]:
    """The sizes and leading dimensions of one `Exact`; the leading dimensions are () if they are the natural ones."""
    count = len(problem_type.indices)
    mistakes = Mistakes()
    read = mistakes.each(lambda entry: _extent(f"Exact[{entry[0]}]", *entry[1]), enumerate(entries[:count]))
    mistakes.tell()
    sizes = tuple(read)
    smallest = operation.leading(problem_type, sizes) if len(sizes) == count else ()
    if len(entries) not in (count, count + len(smallest)):
        raise _wrong_count(location, "Exact", len(entries), problem_type, tuple(name for name, _ in smallest))
    leading = []
    for (name, least), entry in zip(smallest, entries[count:], strict=False):
        extent = _extent(name, *entry)
        if extent < least:
            raise UserError(entry[1], f"ProblemSizes.Exact: {name} {extent} is too small", f"give at least {least}")
        leading.append(extent)
    natural = leading == [least for _, least in smallest]
    return sizes, () if natural else tuple(leading)


def clamp_sizes(problems: Sequence[Problem], max_size: int) -> tuple[Problem, ...]:
    """The problems with every size cut to `max_size`, each problem once, in the same order.

    A problem keeps its leading dimensions if none of its sizes was cut; otherwise they become the natural ones.
    """
    return tuple(dict.fromkeys(_cut(problem, max_size) for problem in problems))


def _cut(problem: Problem, max_size: int) -> Problem:
    sizes = tuple(min(size, max_size) for size in problem.sizes)
    return problem if sizes == problem.sizes else replace(problem, sizes=sizes, leading=())


def _entry(position: int, value: Value, location: str) -> Span | SameAs:
    if isinstance(value, tuple):
        return _span(f"ProblemSizes.Range[{position}]", value, location)
    if is_integer(value) and 0 <= value < position:
        return SameAs(value)
    # A size without its brackets is the likeliest mistake.
    remedies = [f"[{value}] for that size" if is_integer(value) and 1 <= value <= LARGEST else _FORMS]
    if position:
        remedies.append("0 for the size of index 0" if position == 1 else f"an earlier index, 0 to {position - 1}")
    reason = "refers to no earlier index" if is_integer(value) else "is neither a list nor an earlier index"
    first = "" if position else " (it is the first)"
    what = f"ProblemSizes.Range[{position}]: {shortened(value)} {reason}{first}"
    raise UserError(location, what, f"give {', or '.join(remedies)}")


def _span(where: str, value: tuple[Value, ...], location: str) -> Span:
    if not 1 <= len(value) <= 4:
        raise UserError(location, f"{where}: {shortened(value)} has {len(value)} numbers", f"give {_FORMS}")
    numbers = [item for item in value if is_integer(item)]
    if len(numbers) < len(value):
        raise UserError(location, f"{where}: {shortened(value)} is not made of whole numbers", "give whole numbers")
    first, last = _extent(where, value[0], location), _extent(where, value[-1], location)
    # With two numbers the step is the first size, as in Tensile: [16, 64] is 16, 32, 48, 64.
    step = numbers[1] if len(numbers) > 2 else first
    growth = numbers[2] if len(numbers) > 3 else 0
    if first > last:
        raise UserError(
            location, f"{where}: {first} lies above {last} in {shortened(value)}", "give the smaller size first"
        )
    if step <= 0:
        what = f"{where}: step {step} never reaches {last} in {shortened(value)}"
        raise UserError(location, what, f"give a positive step, or [{first}] for one size")
    if growth < 0:
        what = f"{where}: the step would shrink by {-growth} each time in {shortened(value)}"
        raise UserError(location, what, f"give a growth of 0 or more, or [{first}, {step}, {last}] for a constant step")
    return Span(first, step, growth, last)


def _extent(where: str, value: Value, location: str) -> int:
    if not is_integer(value) or not 1 <= value <= LARGEST:
        where = where if where.startswith("ProblemSizes") else f"ProblemSizes.{where}"
        raise UserError(location, f"{where}: {shortened(value)} is no size", f"give a whole number from 1 to {LARGEST}")
    return value


def _resolve(entries: Sequence[Span | SameAs], chosen: Sequence[int]) -> Sizes:
    sizes: list[int] = []
    remaining = iter(chosen)
    for entry in entries:
        sizes.append(sizes[entry.index] if isinstance(entry, SameAs) else next(remaining))
    return tuple(sizes)


def _wrong_count(
    location: str, form: str, count: int, problem_type: ProblemType, leading: tuple[str, ...] = ()
) -> UserError:
    indices = problem_type.indices
    what = f"ProblemSizes.{form} has {count} entries, {problem_type.name} has {len(indices)} indices"
    more = f", and no more or all of {', '.join(leading)}" if leading else ""
    return UserError(location, what, f"give one entry for each of {', '.join(indices)}{more}")
