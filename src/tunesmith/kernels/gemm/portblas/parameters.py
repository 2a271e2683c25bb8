"""The parameters of portBLAS's GEMM kernels, and their effect on our kernels.

Source: the facts of portBLAS's auto-tuner (`tools/auto_tuner` of commit 6cf5e589); names are ours.
"""

from __future__ import annotations

from tunesmith.kernels.gemm.parameters import language, natural, one_of, pair, switch, work_group
from tunesmith.spaces import Space

ALGORITHM = one_of(
    "PortBlasAlgorithm",
    ("local", "non_local", "interleaved", "naive", "tall_skinny"),
    "Means the family with portBLAS's parameters, and which of its kernels: local (blocks of D through local memory, "
    "in stages), non_local (blocks straight from global memory), interleaved (a batch that is the fastest index, "
    "computed in vectors along it), naive (one element a work-item), tall_skinny (as local, with K split over "
    "work-groups and a second launch that adds the parts in a fixed order). none means any other family.",
)
VECTORIZATION = one_of(
    "Vectorization",
    ("full", "partial", "none"),
    "What is read in vectors of VectorSize elements. none: nothing. partial: an operand whose contiguous dimension is "
    "that of the block (rows of A, columns of B). full: also one whose contiguous dimension is K.",
)
VECTOR_SIZE = one_of(
    "VectorSize",
    (1, 2, 4, 8, 16),
    "Elements in one read from global memory; of interleaved batches also in every operation.",
    default=4,
)
CACHE_LINE = natural(
    "CacheLine",
    (0, 32, 64, 128),
    "Bytes along K of a row or column in one stage through local memory: its elements are the depth of a stage (local "
    "and tall_skinny; elsewhere it does nothing).",
    default=64,
)
WORK_ITEM = pair(
    "WorkItem",
    ((4, 4), (1, 1), (2, 2), (8, 2), (4, 8), (8, 4), (8, 8), (16, 4)),
    "Elements of D that one work-item computes: rows and columns.",
)
TOP_TILE = pair(
    "TopTile",
    ((1, 1), (2, 2), (4, 4), (8, 4), (8, 8)),
    "Blocks of D that work-groups visit one after the other before they go on to the next such tile: rows and columns "
    "of blocks. Neighbours in time then share rows of A and columns of B in the cache.",
)
BATCH_TILE = pair(
    "BatchTile",
    ((1, 1), (4, 2), (2, 4), (4, 4), (8, 2), (2, 8), (4, 8), (8, 4)),
    "Of an interleaved batch: matrices of a work-item, and work-items along the batch in a work-group.",
    default=(4, 2),
)
DOUBLE_BUFFER = switch(
    "DoubleBuffer",
    False,
    "Two stages in local memory, so that one is stored while the other is read: twice the local memory, one barrier "
    "for a stage instead of two.",
)
PAD_A = switch(
    "PadA",
    False,
    "Leave a gap after each step's rows of A in local memory, so that steps begin in different banks. The gap is as "
    "wide as one access (16 bytes, or less where WorkItem does not fill that), since a single element would break "
    "every wide access.",
)
PAD_B = switch("PadB", True, "What PadA is for A, for the columns of B.")

NAMED_BY = ALGORITHM.name


def space(name_of_language: str) -> Space:
    return Space(
        (
            language(name_of_language),
            ALGORITHM,
            VECTORIZATION,
            VECTOR_SIZE,
            CACHE_LINE,
            WORK_ITEM,
            work_group((16, 16, 1), (8, 8, 1), (16, 8, 1), (8, 16, 1), (32, 8, 1)),
            TOP_TILE,
            BATCH_TILE,
            DOUBLE_BUFFER,
            PAD_A,
            PAD_B,
        )
    )
