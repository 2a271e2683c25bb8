"""The parameters of the family, and their defaults for a problem type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tunesmith.kernels.gemm.parameters import (
    GLOBAL_SPLIT,
    GROUP_MAPPING,
    STREAM_FULL_TILES,
    STREAM_GRID,
    language,
    natural,
    one_of,
    positive,
)
from tunesmith.problems.gemm import DATA_TYPES, dest_of
from tunesmith.records import ProblemType, Target
from tunesmith.spaces import ActsAt, Parameter, Space

from .clusters import clusters_at_once
from .operand_types import operand_type_of
from .shape import MOST_IN_A_CLUSTER

INSTRUCTION = one_of(
    "MatrixInstruction",
    ("wgmma",),
    "The tensor cores' instruction: wgmma multiplies 64 rows by a multiple of 16 columns from shared memory (Hopper).",
)
WARP_GROUPS = positive(
    "WarpGroups",
    (1, 2, 3),
    "Warp groups that multiply, 64 rows of the macro tile each; one more fetches.",
    default=2,
)
COLUMNS = positive(
    "InstructionColumns",
    (32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256),
    "Columns of the macro tile, and of each instruction.",
    default=256,
)
STAGES = natural(
    "Stages",
    (0, 2, 3, 4, 6),
    "Tiles of A and B in shared memory at once, 128 bytes of K each; 0: as many as fit. With few stages of small "
    "tiles, several work-groups share a multiprocessor where tiles are whole.",
)
ROWS_ALONG = one_of(
    "RowsAlong", ("N", "M"), "Which of D's dimensions the instruction's rows are; with M, few columns fit a small N."
)
CLUSTER_SHAPE = Parameter(
    "ClusterShape",
    (1, 1),
    ((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2), (2, 4), (1, 1, 0), (1, 1, 2), (1, 1, 4), (1, 1, 8)),
    "Work-groups that run side by side, along M, N and K, 8 at most. 2 or 4 along M, or along N, fetch the tile that "
    "all of them need once, a part each. Those along K compute a part of K each of one macro tile, and add up its sums "
    "through shared memory, each in a slice of the columns; 0: as many as fill the device.",
    accepts="list of 2 or 3 natural numbers",
)
STORE_PATH = one_of(
    "StorePath",
    ("TMA", "Direct"),
    "How D is written: TMA from shared memory, 16 bytes at least, so aligned sizes only, and in CudaWgmmaGemm 16-bit "
    "types only; Direct (CudaWgmmaGemm) and Pointer (TritonGemm) by every work-item from its registers, whatever the "
    "alignment.",
)
PROMOTE_EVERY = natural(
    "PromoteEvery",
    (0, 1, 2, 4),
    "Of float8 operands, after how many stages of 128 along K the tensor cores' sums, which have about 14 bits, are "
    "added to float32 sums; 0: at the end. 1 is as exact as cuBLAS is without fast accumulation, and doubles the "
    "registers of sums.",
)
USUAL_UNITS = 132
"""Multiprocessors of an H100 or H200 (SXM), assumed if no device is named."""
SPLIT = replace(
    GLOBAL_SPLIT,
    doc="Parts of K that each macro tile is computed in. Their sums go to the workspace, and the work-group with the "
    "first part adds them in order.",
    when=ActsAt.LAUNCH,
)
MAPPING = replace(
    GROUP_MAPPING,
    default=4,
    doc="Work-groups walk over the tiles of D in blocks of this many tile columns, row by row inside a block; with "
    "RowsAlong: M in blocks of so many tile rows, column by column. With 1 they lose step where columns, or rows, of "
    "tiles are long.",
)


def space_of(problem_type: ProblemType, target: Target | None) -> Space:
    """The space, with defaults that are legal for the type if any are; stream-K uses all multiprocessors,
    half of them, or as many as the largest clusters fill."""
    units = target.compute_units if target else USUAL_UNITS
    operand_type, dest = operand_type_of(problem_type), np.dtype(DATA_TYPES[dest_of(problem_type)].dtype)
    wide = operand_type is not None and dest.itemsize > 2
    short_sums = operand_type is not None and operand_type.short_sums
    in_largest_clusters = MOST_IN_A_CLUSTER * clusters_at_once(MOST_IN_A_CLUSTER, units)
    return Space(
        (
            language("CUDA"),
            INSTRUCTION,
            WARP_GROUPS,
            replace(COLUMNS, default=128) if short_sums else COLUMNS,
            STAGES,
            ROWS_ALONG,
            replace(STORE_PATH, default="Direct") if wide else STORE_PATH,
            replace(PROMOTE_EVERY, default=1) if short_sums else PROMOTE_EVERY,
            SPLIT,
            replace(STREAM_GRID, values=tuple(sorted({0, units // 2, in_largest_clusters, units}))),
            STREAM_FULL_TILES,
            MAPPING,
            CLUSTER_SHAPE,
        )
    )
