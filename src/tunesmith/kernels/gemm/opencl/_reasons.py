"""Why a configuration cannot run: the constants that reports count by."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The first part of a Rejection of the OpenCL GEMM kernels."""

    FORM = "form"
    WORK_GROUP = "work-group size"
    LOCAL_MEMORY = "local memory"
    LOCAL_SPLIT = "local split"
    THREAD_TILE = "vector width and thread tile"
    TILE_LOADS = "tile loads"
    COALESCED_LOADS = "coalesced loads"
    DEPTH = "depth"
    REGISTERS = "registers"
    UNROLLED_CODE = "unrolled code"
    DOUBLE_PRECISION = "double precision"
    SHIFTED_EDGE = "shifted edge"
    SPLIT = "global split"
    STREAM = "stream-K"
    GRID = "grid"
    INDEX_RANGE = "index range"
    DEVICE_MEMORY = "device memory"
    ALLOCATION = "maximum allocation"
