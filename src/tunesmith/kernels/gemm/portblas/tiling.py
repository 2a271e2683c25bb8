"""The numbers of a configuration (`Tiling`) and of a problem type (`ProgramTraits`): no source, no limits."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.problems.gemm import Gemm, is_interleaved
from tunesmith.records import Configuration, ProblemType

Pair = tuple[int, int]

MOST_LANES = 16
"""Elements of OpenCL's longest vector."""
WIDEST_ACCESS = 16
"""The most bytes that a work-item of a GPU moves at once."""
WIDEST_REGISTER = 64
"""Bytes of a CPU's widest vector register (AVX-512)."""


@dataclass(frozen=True, slots=True)
class Element:
    """A data type in C: the type of sums, the bytes of an element in memory, and the bytes of a sum."""

    real: str
    size: int
    sum_size: int


ELEMENTS = {"s": Element("float", 4, 4), "d": Element("double", 8, 8), "h": Element("float", 2, 4)}


@dataclass(frozen=True, slots=True)
class ProgramTraits:
    """The properties of a problem type on which a program depends."""

    data_type: str
    transpose_a: bool
    transpose_b: bool
    use_beta: bool
    interleaved: bool

    @staticmethod
    def of(problem_type: ProblemType) -> ProgramTraits:
        fields = problem_type.fields
        return ProgramTraits(
            data_type=fields.word("DataType"),
            transpose_a=fields.flag("TransposeA"),
            transpose_b=fields.flag("TransposeB"),
            use_beta=fields.flag("UseBeta"),
            interleaved=is_interleaved(problem_type),
        )

    @property
    def element(self) -> Element:
        return ELEMENTS[self.data_type]


@dataclass(frozen=True, slots=True)
class Tiling:
    """The parameters. Pairs are rows and columns: `group` of work-items, `item` of elements, `top` of blocks.

    `batch` is the number of matrices of a work-item and of work-items along an interleaved batch. `shared` is the third
    entry of WorkGroup.
    """

    algorithm: str
    group: Pair
    shared: int
    item: Pair
    top: Pair
    batch: Pair
    vectorization: str
    vector_size: int
    cache_line: int
    double_buffer: bool
    pad: tuple[bool, bool]

    @staticmethod
    def of(config: Configuration) -> Tiling:
        rows, columns, shared = config.integers("WorkGroup")
        return Tiling(
            algorithm=config.word("PortBlasAlgorithm"),
            group=(rows, columns),
            shared=shared,
            item=_pair(config, "WorkItem"),
            top=_pair(config, "TopTile"),
            batch=_pair(config, "BatchTile"),
            vectorization=config.word("Vectorization"),
            vector_size=config.integer("VectorSize"),
            cache_line=config.integer("CacheLine"),
            double_buffer=config.flag("DoubleBuffer"),
            pad=(config.flag("PadA"), config.flag("PadB")),
        )

    @property
    def items(self) -> int:
        """Work-items that compute one block of one matrix."""
        return self.group[0] * self.group[1]

    @property
    def block(self) -> Pair:
        """Rows and columns of D that a work-group computes, if work-items have `item` elements."""
        return self.group[0] * self.item[0], self.group[1] * self.item[1]

    def requested_width(self, along_k: bool) -> int:
        """Elements that the parameters request to read at once, along K or along the block."""
        reads = {"none": False, "partial": not along_k, "full": True}
        return self.vector_size if reads[self.vectorization] else 1

    def depth(self, element: Element) -> int:
        """Steps along K of a stage."""
        return self.cache_line // element.size


@dataclass(frozen=True, slots=True)
class AccessWidth:
    """How many elements of `what` are `requested` to be read at once; it has `extent` of them side by side."""

    what: str
    requested: int
    extent: int

    @property
    def used(self) -> int:
        """The elements that sources read at once: as many as divide the extent."""
        return widest(min(self.requested, MOST_LANES), self.extent)


def widest(most: int, extent: int) -> int:
    """The largest power of two that is at most `most` and divides `extent`."""
    powers = (1 << bit for bit in range(max(1, most).bit_length()))
    return max(width for width in powers if extent % width == 0)


def blocks(block: Pair, gemm: Gemm) -> Pair:
    """The numbers of blocks that cover one matrix D, along M and N."""
    return -(-gemm.m // block[0]), -(-gemm.n // block[1])


def _pair(config: Configuration, name: str) -> Pair:
    first, second = config.integers(name)
    return first, second
