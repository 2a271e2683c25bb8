"""The parameters of GEMM kernels. Names and meanings are Tensile's, unless a parameter's text says otherwise.

A parameter that several families have is defined here once, so that it means the same in all of them.
"""

from __future__ import annotations

from functools import partial

from tunesmith.records import Value
from tunesmith.spaces import ActsAt, Parameter


def _listed(accepts: str, name: str, values: tuple[Value, ...], doc: str, default: Value | None = None) -> Parameter:
    return Parameter(name, values[0] if default is None else default, values, doc, accepts=accepts)


one_of = partial(_listed, "one of the values")
positive = partial(_listed, "positive integer")
natural = partial(_listed, "natural number")
pair = partial(_listed, "list of 2 positive integers")
"""Each makes a parameter of one kind of value, from its name, values and meaning. The default is the first value,
unless another is given."""


def switch(name: str, default: bool, doc: str) -> Parameter:
    return Parameter(name, default, (default, not default), doc, accepts="truth value")


def language(name: str) -> Parameter:
    text = "The language the kernel is written in; with the form it picks the family."
    return one_of("KernelLanguage", (name,), text)


def local_memory(default: bool) -> Parameter:
    return Parameter(
        "LocalMemory",
        default,
        (True, False),
        "True: a work-group stages tiles of A and B in local memory and shares them, as GPUs want it. False: every "
        "work-item reads what it needs through the caches into registers, as CPUs want it.",
        accepts="truth value",
    )


def work_group(default: tuple[int, int, int], *more: tuple[int, int, int]) -> Parameter:
    return Parameter(
        "WorkGroup",
        default,
        (default, *more),
        "Work-items of a work-group: along M, along N, and how many share the same elements of D and split the depth "
        "of a tile among themselves (LocalSplitU).",
        accepts="list of 3 positive integers",
    )


def thread_tile(default: tuple[int, int], *more: tuple[int, int]) -> Parameter:
    return pair("ThreadTile", (default, *more), "Elements of D that one work-item computes: along M and along N.")


def vector_width(default: int) -> Parameter:
    text = "Elements in one load, one store and one vector operation; neighbours in memory."
    return one_of("VectorWidth", (1, 2, 4, 8, 16), text, default)


DEPTH_U = natural(
    "DepthU",
    (0, 4, 8, 16, 32, 64),
    "Steps along K between two trips to memory: LoopUnroll x LocalSplitU. 0 lets it follow from LoopUnroll; in "
    "TritonGemm, which takes powers of two from 16 to 256, it stands for 64.",
)
LOOP_UNROLL = natural(
    "LoopUnroll",
    (0, 1, 2, 4, 8, 16, 32),
    "Steps along K in the unrolled inner loop. 0 lets it follow from DepthU, or be 8 when that is 0 too.",
)
LOADS_A = positive(
    "NumLoadsCoalescedA",
    (1, 2, 4, 8),
    "Of the loads that bring in a tile of A, how many lie side by side along A's contiguous dimension; the others lie "
    "across it.",
)
LOADS_B = positive("NumLoadsCoalescedB", (1, 2, 4, 8), "What NumLoadsCoalescedA is for A, for the tile of B.")
PREFETCH = switch(
    "PrefetchGlobalRead", False, "Read the next tiles into registers while the present ones are multiplied."
)
EDGE_TYPE = one_of(
    "EdgeType",
    ("Branch", "ShiftPtr"),
    "At the edge of the matrix: Branch asks for each element whether it exists; ShiftPtr moves the address back until "
    "all of them do, and computes some elements twice, which needs a matrix no smaller than what is moved.",
)
GLOBAL_SPLIT = positive(
    "GlobalSplitU",
    (1, 2, 4, 8),
    "Work-groups that share one macro tile, each with its part of K. Their sums go to the workspace and are added in a "
    "fixed order, by a second launch or by the work-group with the first part, so that results repeat bit by bit. "
    "Compiled in for OpenCL, a parameter of the launch elsewhere.",
)
STREAM_GRID = Parameter(
    "StreamKGrid",
    0,
    (0, -1, 16, 32, 64, 128, 256),
    "0: a work-group for each macro tile. Otherwise stream-K on so many work-groups: they take whole tiles in waves, "
    "then split the rest along K evenly, whatever the number of tiles. Sums over part of K go to the workspace and are "
    "added in a fixed order. -1: for each problem when it is launched, with StreamKFullTiles, by what stream-K is "
    "predicted to cost.",
    ActsAt.LAUNCH,
    accepts="natural number or -1",
)
STREAM_FULL_TILES = Parameter(
    "StreamKFullTiles",
    0,
    (0, 1, -1),
    "How many whole waves of tiles are split along K together with those beyond whole waves (StreamKGrid). -1: none is "
    "split, not even the tiles beyond whole waves.",
    ActsAt.LAUNCH,
    accepts="natural number or -1",
)
GROUP_MAPPING = positive(
    "WorkGroupMapping",
    (1, 2, 4, 8, 16, 32, 64),
    "Work-groups walk over the tiles of D in blocks of this many tile columns, row by row inside a block, so that "
    "neighbours in time share a tile of A. 1 walks down each column of tiles.",
)
DEALING = (GLOBAL_SPLIT, STREAM_GRID, STREAM_FULL_TILES, GROUP_MAPPING)
"""The parameters that say how macro tiles, or parts of them, are dealt to work-groups."""

LDS_PAD = natural(
    "LdsPad",
    (0, 1, 2, 4, 8),
    "Elements left empty after each row of a tile in local memory, so that rows start in different banks.",
)
PACK_A = switch(
    "PackA",
    False,
    "Launch a copy first that lays A out in panels as high as the thread tile, in the order in which the kernel reads "
    "it: no cache conflicts between columns, no edges. Ours, after the packing of BLIS and GotoBLAS.",
)
PACK_B = switch("PackB", False, "What PackA is for A, for B.")
