"""A small space with Tensile's names, for tests that read tuning files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tunesmith.protocol import TuningFile, read_tuning_file
from tunesmith.records import UserError
from tunesmith.spaces import Parameter, Space

SPACE = Space(
    (
        Parameter("KernelLanguage", "OpenCL", ("OpenCL", "CUDA"), "Language."),
        Parameter("WorkGroup", (16, 16, 1), ((16, 16, 1),), "Work-items.", accepts="list of 3 positive integers"),
        Parameter("ThreadTile", (4, 4), ((4, 4),), "Elements.", accepts="list of 2 positive integers"),
        Parameter("DepthU", 16, (8, 16), "Depth.", accepts="natural number"),
        Parameter("LoopUnroll", 8, (8, 16), "Unrolling.", accepts="positive integer"),
        Parameter("VectorWidth", 1, (1, 2, 4), "Width."),
        Parameter("NumLoadsCoalescedA", 1, (1, 2, 4, 8), "Loads of A."),
        Parameter("NumLoadsCoalescedB", 1, (1, 2, 4, 8), "Loads of B."),
        Parameter("PrefetchGlobalRead", False, (False, True), "Prefetch.", accepts="truth value"),
        Parameter("EdgeType", "Branch", ("Branch", "ShiftPtr"), "Edges."),
        Parameter("WorkGroupMapping", 1, (1, 2, 4, 8), "Order.", accepts="natural number"),
        Parameter("GlobalSplitU", 1, (1, 2, 4), "Split.", accepts="positive integer"),
    )
)
DERIVED = frozenset({"MacroTile", "DepthU", "WorkGroupSize"})


def read(path: Path, **options: Any) -> TuningFile:
    return read_tuning_file(path, lambda _: SPACE, lambda _: DERIVED, **options)


def complaint(write: Callable[..., TuningFile], text: str, *args: Any, **options: Any) -> UserError:
    """The error that reading this raises."""
    with pytest.raises(UserError) as caught:
        write(text, *args, **options)
    return caught.value


def line_of(error: UserError) -> int:
    return int(error.location.rpartition(":")[2])
