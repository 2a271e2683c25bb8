"""ProblemSizes of every dialect: counted as written, and written in our form.

Bare ranges become `Range`s; missing indices are copies of the first; leading dimensions are raised to the smallest
legal ones, as Tensile does; strides that a dense matrix does not have are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from tunesmith.problems import LIMIT, Node
from tunesmith.problems.keys import is_integer
from tunesmith.problems.sizes import Span
from tunesmith.records import Value

from .ledger import NameLedger
from .listing import plain_or_text
from .record import Fate

SECTION = "sizes"
MOST_EXPANDED = 4096
"""The most sizes of one Range with leading dimensions that are written out."""
STRIDES = {"LDD": "stridesD", "LDC": "stridesC", "LDA": "stridesA", "LDB": "stridesB"}


def written_sizes(node: Node) -> int:
    """The number of sizes that a ProblemSizes lists; an overlap counts twice."""
    return sum(_count(form, value) for form, value in _forms(node))


def _forms(node: Node) -> Iterator[tuple[str, Node]]:
    if is_bare(node):
        yield "Range", node
        return
    for item in node.content if isinstance(node.content, tuple) else (node,):
        if isinstance(item.content, dict):
            yield from item.content.items()


def is_bare(node: Node) -> bool:
    """Whether a ProblemSizes is one bare range, as in version 2 and before."""
    return (
        isinstance(node.content, tuple)
        and bool(node.content)
        and all(isinstance(item.content, (tuple, int)) for item in node.content)
    )


def _count(form: str, value: Node) -> int:
    if form in ("Exact", "Conv"):
        return 1
    if form != "Range" or not isinstance(value.content, tuple):
        return 0
    return prod(_length(_span(item)) for item in value.content if isinstance(item.content, tuple))


def _length(span: Span) -> int:
    """The number of sizes of one descriptor; with a growing step no more than LIMIT."""
    return span.count(LIMIT) if span.growth else (span.last - span.first) // span.step + 1


def _span(node: Node) -> Span:
    """The sizes of one descriptor; a single size for a descriptor that makes none."""
    items = node.content if isinstance(node.content, tuple) else ()
    numbers = [item.content for item in items if is_integer(item.content)]
    match numbers:
        case [first]:
            span = Span(first, 1, 0, first)
        case [first, last]:
            span = Span(first, first, 0, last)
        case [first, step, last]:
            span = Span(first, step, 0, last)
        case [first, step, growth, last]:
            span = Span(first, step, growth, last)
        case _:
            return Span(0, 1, 0, 0)
    is_wrong = span.first > span.last or span.step <= 0 or span.growth < 0
    return Span(span.first, 1, 0, span.first) if is_wrong else span


@dataclass(frozen=True)
class SizeTranslator:
    """Writes sizes for a GEMM with these transposes in our form."""

    transpose_a: bool
    transpose_b: bool
    batched: bool
    ledger: NameLedger

    @property
    def indices(self) -> int:
        return 4 if self.batched else 3

    def sizes(self, node: Node) -> Node:
        """A ProblemSizes in our form. What is malformed stays as it stands."""
        if is_bare(node):
            return Node(node.location, (_form("Range", self._padded(node)),))
        items = node.content if isinstance(node.content, tuple) else (node,)
        if not all(isinstance(item.content, dict) for item in items):
            return node
        forms = [form for item in items for form in self._item(item)]
        return Node(node.location, tuple(forms))

    def _item(self, item: Node) -> Iterator[Node]:
        kept: dict[str, Node] = {}
        for name, value in item.content.items() if isinstance(item.content, dict) else ():
            if name == "Range" and isinstance(value.content, tuple):
                yield from self._range(value)
            elif name == "Exact" and isinstance(value.content, (tuple, dict)):
                yield _form("Exact", self._exact(value))
            elif name == "MinStride":
                self._drop("MinStride", "memory is allocated for each problem", item.at(name), value)
            else:
                kept[name] = value
        if kept:
            yield Node(item.location, kept, {name: item.at(name) for name in kept})

    def _range(self, value: Node) -> Iterator[Node]:
        padded = self._padded(value)
        descriptors = padded.content if isinstance(padded.content, tuple) else ()
        leading = descriptors[self.indices :]
        if not leading:
            yield _form("Range", padded)
            return
        plain = Node(value.location, descriptors[: self.indices])
        if all(plain_or_text(each) in (0, (0,)) for each in leading):
            self._drop("leading dimensions of 0", "the natural ones", leading[0].location)
            yield _form("Range", plain)
            return
        spans = [_span(each) for each in descriptors if isinstance(each.content, tuple)]
        if prod(map(_length, spans)) > MOST_EXPANDED:
            self._drop("leading dimensions of a Range", "the natural ones: there are too many", leading[0].location)
            yield _form("Range", plain)
            return
        for chosen in product(*(tuple(span) for span in reversed(spans))):
            numbers = _resolved(descriptors, chosen[::-1])
            sizes, dimensions = numbers[: self.indices], numbers[self.indices :]
            yield _form("Exact", _numbers(value.location, (*sizes, *self._legal(sizes, dimensions, value))))

    def _padded(self, value: Node) -> Node:
        """A Range with a descriptor for each index: missing ones are copies of the first index, batch included."""
        descriptors = value.content if isinstance(value.content, tuple) else ()
        descriptors = tuple(self._sane(each) for each in descriptors)
        missing = self.indices - len(descriptors)
        if missing > 0 and descriptors:
            self.ledger.add(
                SECTION,
                "missing indices",
                Fate.TRANSLATED,
                "copies of the first index, as in Tensile",
                value.location,
                weak=True,
            )
            descriptors = (*descriptors, *(Node(value.location, 0) for _ in range(missing)))
        return Node(value.location, descriptors)

    def _sane(self, descriptor: Node) -> Node:
        """A descriptor whose first size lies above its last is its first size alone, as in Tensile."""
        span = plain_or_text(descriptor)
        if isinstance(span, tuple) and len(span) > 1 and all(map(is_integer, span)):
            first, last = int(span[0]), int(span[-1])  # type: ignore[arg-type]  # whole numbers
            if first > last > 0:
                self.ledger.add(
                    SECTION,
                    "a first size above the last",
                    Fate.TRANSLATED,
                    "the first size",
                    descriptor.location,
                    (span,),
                    weak=True,
                )
                return _numbers(descriptor.location, (first,))
        return descriptor

    def _exact(self, value: Node) -> Node:
        if isinstance(value.content, dict):
            return self._exact_dict(value, value.content)
        numbers = plain_or_text(value)
        if not isinstance(numbers, tuple) or len(numbers) != self.indices + 4 or not all(map(is_integer, numbers)):
            return value
        sizes = [int(number) for number in numbers[: self.indices]]  # type: ignore[arg-type]  # whole numbers
        dimensions = [int(number) for number in numbers[self.indices :]]  # type: ignore[arg-type]
        if min(sizes) < 1:
            return value
        legal = self._legal(sizes, dimensions, value)
        return value if legal == dimensions else _numbers(value.location, (*sizes, *legal))

    def _exact_dict(self, value: Node, fields: dict[str, Node]) -> Node:
        """Sizes as a dict: leading dimensions are taken from the strides if the matrices of the batch lie densely."""
        if "sizes" not in fields:
            return value
        sizes = plain_or_text(fields["sizes"])
        self.ledger.add(SECTION, "Exact: {sizes}", Fate.TRANSLATED, "Exact: [sizes]", value.location)
        for name in fields:
            if name != "sizes" and name not in STRIDES.values():
                self._drop(name, "the kernels read no elements outside of a matrix", value.at(name), fields[name])
        if not isinstance(sizes, tuple) or len(sizes) != self.indices or not all(map(is_integer, sizes)):
            return fields["sizes"]
        extents = [int(size) for size in sizes]  # type: ignore[arg-type]  # whole numbers
        natural = self._smallest(extents)
        columns = self._columns(extents)
        leading = []
        for (matrix, smallest), width in zip(natural.items(), columns, strict=True):
            strides = plain_or_text(fields[STRIDES[matrix]]) if STRIDES[matrix] in fields else ()
            numbers = strides if isinstance(strides, tuple) and all(map(is_integer, strides)) else ()
            first, second, between = (*(int(stride) for stride in numbers), -1, -1, -1)[:3]  # type: ignore[arg-type]
            dimension = second if second >= smallest else smallest
            is_dense = first in (-1, 1) and second in (-1, dimension) and between in (-1, dimension * width)
            if not is_dense:
                self._drop(
                    STRIDES[matrix], "those of dense matrices", value.at(STRIDES[matrix]), fields.get(STRIDES[matrix])
                )
            leading.append(dimension if is_dense else smallest)
        tail = () if leading == list(natural.values()) else tuple(leading)
        return _numbers(fields["sizes"].location, (*extents, *tail))

    def _smallest(self, sizes: Sequence[int]) -> dict[str, int]:
        m, n, k = sizes[0], sizes[1], sizes[-1]
        return {"LDD": m, "LDC": m, "LDA": k if self.transpose_a else m, "LDB": n if self.transpose_b else k}

    def _columns(self, sizes: Sequence[int]) -> tuple[int, int, int, int]:
        m, n, k = sizes[0], sizes[1], sizes[-1]
        return n, n, m if self.transpose_a else k, k if self.transpose_b else n

    def _legal(self, sizes: Sequence[int], dimensions: Sequence[int], value: Node) -> list[int]:
        """The leading dimensions LDD, LDC, LDA and LDB, raised to the smallest legal ones."""
        smallest = list(self._smallest(sizes).values())
        whole = [*dimensions, *smallest[len(dimensions) :]]
        legal = [max(number, least) for number, least in zip(whole, smallest, strict=False)]
        if any(0 < number < least for number, least in zip(whole, smallest, strict=False)):
            self.ledger.add(
                SECTION,
                "leading dimensions that are too small",
                Fate.TRANSLATED,
                "the smallest legal ones, as in Tensile",
                value.location,
                weak=True,
            )
        return legal

    def _drop(self, name: str, becomes: str, location: str, value: Node | None = None) -> None:
        written: tuple[Value, ...] = (plain_or_text(value),) if value is not None else ()
        self.ledger.add(SECTION, name, Fate.DROPPED, becomes, location, written)


def _resolved(descriptors: Sequence[Node], chosen: Sequence[int]) -> list[int]:
    """One number for each descriptor; a whole number names an earlier index, and 0 among leading dimensions nothing."""
    numbers: list[int] = []
    remaining = iter(chosen)
    for descriptor in descriptors:
        if isinstance(descriptor.content, tuple):
            numbers.append(next(remaining))
        else:
            index = descriptor.content if is_integer(descriptor.content) else 0
            numbers.append(numbers[index] if 0 <= index < len(numbers) else 0)
    return numbers


def _form(name: str, value: Node) -> Node:
    return Node(value.location, {name: value}, {name: value.location})


def _numbers(location: str, numbers: Sequence[int]) -> Node:
    return Node(location, tuple(Node(location, number) for number in numbers))
