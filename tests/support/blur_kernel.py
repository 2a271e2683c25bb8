"""A blur in two launches, with what lies between them in scratch memory: a described kernel for tests."""

from __future__ import annotations

from pathlib import Path

SOURCE = """
__kernel void rows(__global const float *input, __global float *between, int columns, int count)
{
    const int i = get_global_id(0), column = i % columns;
    if (i < count)
        between[i] = (column ? input[i - 1] : 0) + input[i] + (column + 1 < columns ? input[i + 1] : 0);
}

__kernel void columns(__global const float *between, __global float *output, int columns, int count)
{
    const int i = get_global_id(0);
    if (i < count)
        output[i] = (i >= columns ? between[i - columns] : 0) + between[i]
                  + (i + columns < count ? between[i + columns] : 0);
}
"""

DESCRIPTION = """
Name: blur
Source: blur.cl
Sizes: [Rows, Columns]
Parameters:
  GROUP: {Values: [32, 64]}
Arguments:
  - {Name: input, DataType: float32, Shape: [Rows, Columns], Role: in}
  - {Name: between, DataType: float32, Shape: [Rows, Columns + GROUP], Role: scratch}
  - {Name: output, DataType: float32, Shape: [Rows, Columns], Role: out}
  - {Name: columns, DataType: int32, Value: Columns}
  - {Name: count, DataType: int32, Value: Rows * Columns}
Launches:
  - Entry: rows
    Arguments: [input, between, columns, count]
    WorkGroup: [GROUP]
    Grid: {WorkItems: [Rows * Columns]}
  - Entry: columns
    Arguments: [between, output, columns, count]
    WorkGroup: [2 * GROUP]
    Grid: {WorkItems: [Rows * Columns]}
Reference: blur.py:blur
Tolerance: 18
Flops: 4 * Rows * Columns
"""

REFERENCE = """
import numpy as np

def blur(sizes, arrays):
    return {"output": (blurred(arrays["input"]), blurred(np.abs(arrays["input"])))}

def blurred(image):
    padded = np.pad(image, 1)
    rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    return rows[:-2] + rows[1:-1] + rows[2:]
"""


def write(folder: Path) -> Path:
    """The path of the description, written with its files into a folder."""
    (folder / "blur.cl").write_text(SOURCE)
    (folder / "blur.py").write_text(REFERENCE)
    (folder / "blur.yaml").write_text(DESCRIPTION)
    return folder / "blur.yaml"
