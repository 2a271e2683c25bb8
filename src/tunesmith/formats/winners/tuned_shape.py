"""A row of a file of tuned kernels: a product's sizes, and the configuration that was fastest for it."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith.records import Configuration


@dataclass(frozen=True, slots=True)
class TunedShape:
    """A product and its tuned configuration.

    `source` is file and line. `rows` and `columns` are the size of D's macro tile, in elements. `transposes` has a
    letter for A and for B; it is empty if the file does not give them. `speed` compares rows about the same product
    (more is faster); None if the file has no speed. `study_sizes` are a convolution's M, N and K as IREE's study took
    them, and `work_groups` is the number of work-groups that the configuration launches. `batch` also counts a
    convolution's groups.
    """

    source: str
    m: int
    n: int
    k: int
    batch: int
    device: str
    data_type: str
    result_type: str
    transposes: str
    rows: int
    columns: int
    configuration: Configuration
    speed: float | None = None
    family: str = ""
    work_groups: int | None = None
    study_sizes: tuple[int, int, int] | None = None


DATA_TYPE_BYTES = {
    "f64": 8.0,
    "f32": 4.0,
    "tf32": 4.0,
    "i32": 4.0,
    "f16": 2.0,
    "bf16": 2.0,
    "i8": 1.0,
    "i8x4": 1.0,
    "f8": 1.0,
}
"""Bytes of an element by data type, under the names in files of winners."""

DATA_TYPE_LETTERS = {
    "f64": "d",
    "f32": "s",
    "tf32": "x",
    "i32": "i",
    "f16": "h",
    "bf16": "b",
    "i8": "i8",
    "i8x4": "i8",
    "f8": "f8",
}
"""The letter of each data type in data sheets' figures and in a GEMM's problem type (x is TF32).

The 8-bit type with another exponent, b8, is also named f8.
"""
