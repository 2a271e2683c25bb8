"""CSV tables of tuning winners: Tensile's solutions, and convolutions that IREE's tuner tuned."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from tunesmith.problems import MOST_GENERATED_BYTES, bytes_of
from tunesmith.records import Configuration, UserError, Value

from .tuned_shape import TunedShape

CsvRow = Mapping[str, str]
_REMEDY = "give a table of Tensile's winners or of tuned convolutions"
_TENSILE = ("arch", "dtype", "dest", "ta", "tb", "m", "n", "k", "batch", "mt0", "mt1", "depthu", "gsu", "mi", "value")
_CONVOLUTION = ("conv", "rank", "in_shape", "filt_shape", "groups", "gemm_g", "gemm_m", "gemm_n", "gemm_k", "mma",
                "tile_m", "tile_n", "tile_k", "sg_m", "sg_n", "num_workgroups")  # fmt: skip
_LARGEST = 10**12
"""The largest size; a product of three such sizes is still a float."""
_CONVOLUTION_DEVICE = "gfx942"
"""The device of the convolutions in the tables of IREE's tuner: the MI300X."""


def read_winners(path: Path, keep: Mapping[str, tuple[str, ...]], matrix_only: bool = False) -> tuple[TunedShape, ...]:
    """The tuned shapes of a table, in its order; a gzip file is unpacked.

    `keep` maps a column to words: rows with another word in that column are left out. `matrix_only` leaves out
    solutions without matrix instructions. Raises UserError, with the line, for a wrong table or row, and for a column
    in `keep` that the table does not have.
    """
    reader = csv.DictReader(io.StringIO(_text(path), newline=""), restkey="", restval="", strict=True)
    try:
        names = tuple(reader.fieldnames or ())
        is_tensile = all(name in names for name in _TENSILE)
        if not is_tensile and not all(name in names for name in _CONVOLUTION):
            raise UserError(f"{path}:1", "the header is not that of a table of winners", _REMEDY)
        for name in keep:
            if name not in names:
                raise UserError(f"{path}:1", f"the table has no column {name}", f"it has {', '.join(names)}")
        return tuple(_shapes(path, reader, keep, is_tensile, matrix_only))
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num}", f"cannot be read as CSV ({error})", _REMEDY) from error


def _shapes(
    path: Path, reader: csv.DictReader[str], keep: Mapping[str, tuple[str, ...]], is_tensile: bool, matrix_only: bool
) -> Iterator[TunedShape]:
    for row in reader:
        if any(row[name] not in words for name, words in keep.items()):
            continue
        source = f"{path}:{reader.line_num}"
        if matrix_only and not row["mi" if is_tensile else "mma"]:
            continue
        if row.get(""):
            raise UserError(source, "has more cells than the header has names", "mend or drop the line")
        yield _tensile(row, source) if is_tensile else _convolution(row, source)


def _tensile(row: CsvRow, source: str) -> TunedShape:
    m, n, k, batch, tile_rows, tile_columns, depth, split = (
        _whole(row, name, source) for name in ("m", "n", "k", "batch", "mt0", "mt1", "depthu", "gsu")
    )
    configuration: dict[str, Value] = {"MacroTile": (tile_rows, tile_columns), "DepthU": depth, "GlobalSplitU": split}
    if row["mi"]:
        configuration["MatrixInstruction"] = tuple(_parts(row, "mi", source))
    return TunedShape(
        source, m, n, k, batch, row["arch"], row["dtype"], row["dest"], row["ta"] + row["tb"], tile_rows, tile_columns,
        Configuration(configuration), _speed(row, source), "Tensile",
    )  # fmt: skip


def _convolution(row: CsvRow, source: str) -> TunedShape:
    names = ("gemm_m", "gemm_n", "gemm_k", "gemm_g", "tile_m", "tile_n", "tile_k", "sg_m", "sg_n", "num_workgroups")
    m, n, k, groups, tile_rows, tile_columns, depth, down, across, work_groups = (
        _whole(row, name, source) for name in names
    )
    image, kernel = _parts(row, "in_shape", source), _parts(row, "filt_shape", source)
    rank = _whole(row, "rank", source)
    if len(image) != rank + 2 or len(kernel) != rank + 2:
        raise UserError(source, f"shapes do not have the {rank + 2} sizes of rank {rank}", "mend or drop the line")
    # The study takes the input's pixels for M and all channels for K, and ignores stride and groups.
    study = (math.prod(image[:-1]), kernel[0], math.prod(kernel[1:-1]) * image[-1])
    configuration = Configuration(
        {
            "MacroTile": (tile_rows, tile_columns),
            "DepthU": depth,
            "SubGroups": (down, across),
            "Instruction": row["mma"],
        }
    )
    data_type = next((word for name, word in _CONVOLUTION_TYPES.items() if name in row["conv"]), "")
    if not data_type:
        raise UserError(
            source, f"conv names no data type: {row['conv'][:60]}", f"name one of {', '.join(_CONVOLUTION_TYPES)}"
        )
    return TunedShape(
        source, m, n, k, groups, _CONVOLUTION_DEVICE, data_type, "f32", "", tile_rows, tile_columns, configuration,
        family=f"{rank}-D convolution", work_groups=work_groups, study_sizes=study,
    )  # fmt: skip


_CONVOLUTION_TYPES = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}


def _text(path: Path) -> str:
    raw = bytes_of(path, "CSV", MOST_GENERATED_BYTES, _REMEDY)
    if raw[:2] == b"\x1f\x8b":
        raw = _unpacked(raw, path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(str(path), f"no UTF-8 at byte {error.start}", "save it as UTF-8 text") from error


def _unpacked(raw: bytes, path: Path) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
            text = packed.read(MOST_GENERATED_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(str(path), f"cannot be unpacked ({error})", "fetch the file again") from error
    if len(text) > MOST_GENERATED_BYTES:
        raise UserError(str(path), f"unpacks to more than {MOST_GENERATED_BYTES} bytes", "split it into several files")
    return text


def _whole(row: CsvRow, name: str, source: str) -> int:
    return _checked(row[name], name, source)


def _checked(text: str, name: str, source: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 13 and 1 <= int(text) <= _LARGEST):
        raise UserError(source, f"{name} cannot be {text[:40] or 'empty'}", f"give a whole number from 1 to {_LARGEST}")
    return int(text)


def _parts(row: CsvRow, name: str, source: str) -> list[int]:
    """The whole numbers of a cell such as `16x16x4`."""
    return [_checked(part, name, source) for part in row[name].split("x")]


def _speed(row: CsvRow, source: str) -> float | None:
    """The speed in a row; None if the row's `metric` names another unit than speed."""
    if row.get("metric"):
        return None
    try:
        speed = float(row["value"])
    except ValueError:
        speed = math.nan
    if not (math.isfinite(speed) and speed >= 0):
        raise UserError(source, f"value cannot be {row['value'][:40] or 'empty'}", "give a speed")
    return speed
