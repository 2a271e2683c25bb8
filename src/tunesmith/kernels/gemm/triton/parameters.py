"""The parameters of the Triton GEMM kernels. Names and meanings are Tensile's for the parameters that it has."""

from __future__ import annotations

from dataclasses import replace

from tunesmith.kernels.gemm.parameters import (
    DEPTH_U,
    GLOBAL_SPLIT,
    GROUP_MAPPING,
    STREAM_FULL_TILES,
    STREAM_GRID,
    language,
    one_of,
    pair,
    positive,
    switch,
)
from tunesmith.spaces import ActsAt

STAGES = positive(
    "NumStages",
    (2, 3, 4, 5),
    "Tiles of A and B that are in shared memory or on their way there at once.",
    default=3,
)
PRECISION = one_of(
    "InputPrecision",
    ("tf32x3", "ieee"),
    "How float32 products are made: tf32x3 by tensor cores, three products of halves of the operands, about as exact "
    "as float32; ieee by plain multiply-adds. tf32 makes one product, of 11 bits of each operand, which is no float32 "
    "GEMM: some families have it for types that permit it (F32XdlMathOp: x).",
)

DEFAULT_DEPTH = 64
"""DepthU if the configuration gives 0."""

DATA_PARALLEL, PERSISTENT, SPLIT_K, FILL_K, STREAM_K = "DataParallel", "Persistent", "SplitK", "FillK", "StreamK"

SCHEDULE = one_of(
    "Schedule",
    (DATA_PARALLEL, PERSISTENT, SPLIT_K, FILL_K, STREAM_K),
    "How work-groups share the macro tiles: DataParallel, one for each tile; Persistent, as many as run at once, to "
    "which tiles are dealt in turn; SplitK, GlobalSplitU for each tile, whose sums a second launch adds; FillK, the "
    "same with as many for each tile as the device has compute units for; StreamK, StreamKGrid of them, of which the "
    "last one on a tile adds the others' sums.",
)
MACRO_TILE = pair(
    "MacroTile",
    ((128, 128), (128, 256), (256, 128), (128, 64), (64, 128), (64, 256), (256, 64), (64, 64), (128, 32), (32, 128),
     (128, 16), (16, 128), (64, 16), (16, 64), (32, 32), (16, 16)),
    "Elements of D that a work-group computes at once, along M and along N: powers of two from 16 to 256.",
)  # fmt: skip
WARPS = positive(
    "NumWarps",
    (8, 4, 2, 1),
    "Warps of a work-group (on AMD: wavefronts); with WarpSpecialize, those of each group that multiplies.",
)
EPILOGUE_SUBTILE = one_of(
    "EpilogueSubtile",
    (1, 2, 4),
    "Parts in which a tile of sums is converted and stored, one after the other: more parts need less shared memory.",
)
SWAP_OPERANDS = switch(
    "SwapOperands",
    True,
    "True: tl.dot makes D transposed, as it lies in memory: its rows are N, its columns M. False: its rows are M, of "
    "which the tensor cores take 64 at once, while 16 columns are enough for a small N.",
)
LOAD_PATH = one_of(
    "LoadPath",
    ("TMA", "Pointer"),
    "How operands come into shared memory: by the copy engine, which wants strides that are multiples of 16 bytes, or "
    "by the work-items' own loads, which take any.",
)
STORE_PATH = one_of(
    "StorePath",
    ("Pointer", "TMA"),
    "How D leaves: by the work-items' own stores, or by the copy engine, which wants strides and an M that are "
    "multiples of 16 bytes.",
)
READ_WIDTH = one_of(
    "GlobalReadVectorWidth",
    (1, 2, 4, 8, 16),
    "Of loads by the work-items, how many elements of A or B one may bring. Leading dimensions, strides of a batch and "
    "the contiguous sizes must be multiples of it. At more than 1, operands lie at multiples of 16 bytes.",
)
STORE_WIDTH = one_of("StoreVectorWidth", (1, 2, 4, 8, 16), "What GlobalReadVectorWidth is for A and B, for C and D.")
SPECIALIZE = switch(
    "WarpSpecialize",
    False,
    "More warps fetch while two groups of NumWarps multiply (newer than Hopper, where Triton compiles it).",
)
FLATTEN = switch(
    "FlattenTiles",
    False,
    "Persistent: the loops over tiles and along K become one, so that the next tile is fetched while the last one is "
    "stored.",
)
SPLIT = replace(GLOBAL_SPLIT, values=(1, 2, 3, 4, 6, 8, 12, 16, 32), when=ActsAt.LAUNCH)
DEPTH = replace(
    DEPTH_U,
    values=(0, 16, 32, 64, 128, 256),
    doc=f"Steps along K between two trips to memory, a power of two from 16 to 256. 0 stands for {DEFAULT_DEPTH}.",
)
WARP_STAGES = replace(STAGES, values=(3, 2, 4, 5, 6, 7, 8))
DOT_PRECISION = replace(PRECISION, values=(*PRECISION.values, "tf32"))

DENSE = (
    language("Triton"),
    SCHEDULE,
    MACRO_TILE,
    DEPTH,
    WARPS,
    WARP_STAGES,
    GROUP_MAPPING,
    EPILOGUE_SUBTILE,
    SWAP_OPERANDS,
    LOAD_PATH,
    STORE_PATH,
    READ_WIDTH,
    STORE_WIDTH,
    SPECIALIZE,
    FLATTEN,
    DOT_PRECISION,
    SPLIT,
    STREAM_GRID,
    STREAM_FULL_TILES,
)

GEMV_ALONG = one_of(
    "GemvAlong",
    ("M", "N"),
    "For a product with a vector: M where D is one column (N = 1) and A the matrix, N where D is one row (M = 1) and B "
    "the matrix.",
)
GEMV_TILE = pair(
    "GemvTile",
    ((16, 256), (8, 512), (4, 1024), (32, 128), (64, 64), (128, 32), (256, 16), (1, 2048), (8, 256), (4, 512)),
    "Elements of D that a work-group computes, and steps along K that it takes at once: powers of two.",
)
GEMV = (language("Triton"), GEMV_ALONG, GEMV_TILE, WARPS, WARP_STAGES, READ_WIDTH, SPLIT)
