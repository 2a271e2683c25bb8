"""A small described kernel in Triton, to be edited by tests."""

from __future__ import annotations

from pathlib import Path

DESCRIPTION = """
Name: scaled
Source: {Triton: scaled.py}
Entry: scaled
Sizes: [Rows, Columns]
Parameters:
  BLOCK: {Values: [64, 128, 256], Default: 128}
  num_warps: {Values: [1, 2, 4, 8], Default: 2}
Arguments:
  - {Name: x, DataType: float32, Shape: [Rows, Columns], Role: in}
  - {Name: y, DataType: float32, Shape: [Rows, Columns], Role: out}
  - {Name: columns, DataType: int32, Value: Columns}
  - {Name: factor, DataType: float32, Value: 1.5}
Grid: {WorkGroups: ["ceil_div(Columns, BLOCK)", Rows]}
Reference: reference.py:scaled
Tolerance: 2
Flops: Rows * Columns
"""
KERNEL = """import triton
import triton.language as tl


@triton.jit
def times(values, factor):
    return values * factor


@triton.jit
def scaled(x, y, columns, factor, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offset = tl.program_id(1) * columns + column
    values = tl.load(x + offset, mask=column < columns)
    tl.store(y + offset, times(values, factor), mask=column < columns)
"""
REFERENCE = "def scaled(sizes, arrays):\n    return {'y': 1.5 * arrays['x']}\n"


def written(folder: Path) -> Path:
    """The description, after it and its files are written to the folder."""
    for name, text in (("scaled.yaml", DESCRIPTION), ("scaled.py", KERNEL), ("reference.py", REFERENCE)):
        (folder / name).write_text(text)
    return folder / "scaled.yaml"
