"""Reading files of tuned kernels as one sample: rows are filtered, and each product keeps one row."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np

from tunesmith.formats.winners.final_details import FinalDetails, read_details
from tunesmith.formats.winners.final_matrix import FinalMatrix, is_final, read_final
from tunesmith.formats.winners.iree_specs import read_spec
from tunesmith.formats.winners.tables import read_winners
from tunesmith.formats.winners.tuned_shape import DATA_TYPE_BYTES, DATA_TYPE_LETTERS, TunedShape
from tunesmith.models.intensity.fit.heuristic_file import LARGEST, LARGEST_COUNT, LEAST_RIDGE
from tunesmith.models.intensity.fit.losses import Floats
from tunesmith.models.intensity.fit.sample import TunedSample
from tunesmith.models.intensity.metrics import Product
from tunesmith.models.roofline.chips import Chip, chip_of
from tunesmith.records import Configuration, UserError


class Grouping(StrEnum):
    """The products that are held out together: those of equal M and N, of a family, or of a file. A final has no
    families, so `FAMILY` means the file too."""

    MN = "mn"
    FAMILY = "family"
    SOURCE = "source"


LEAST_PRODUCTS = 10
"""The fewest products of a sample."""
KERNEL, SOLUTION = "Kernel", "Solution"
"""Keys of a configuration from a final, beside the kernel's parameters: the kernel's name; if the final has no
configurations, only the solution's name."""


@dataclass(frozen=True)
class SourceTask:
    """The files to read, and the rows to keep: by column (`keep`), by least M, N and K, and by matrix instructions.

    `ridge` (FLOP per byte) and `units` describe the device if no data sheet does, or take the place of its figures.
    """

    sources: tuple[Path, ...]
    keep: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    least_size: int = 1
    matrix_only: bool = False
    groups: Grouping = Grouping.MN
    ridge: float | None = None
    units: int | None = None

    def __post_init__(self) -> None:
        """Raises UserError for a ridge and units that a heuristic's file cannot have."""
        if self.ridge is not None and not LEAST_RIDGE <= self.ridge <= LARGEST:
            what, remedy = f"cannot be {self.ridge:g}", f"give FLOP per byte, from {LEAST_RIDGE:g} to {LARGEST:g}"
            raise UserError("--ridge", what, remedy)
        if self.units is not None and not 1 <= self.units <= LARGEST_COUNT:
            what = f"cannot be {str(self.units)[:20]}"
            raise UserError("--units", what, f"give compute units, from 1 to {LARGEST_COUNT}")

    @property
    def selection(self) -> str:
        """The rows that are kept, in words."""
        words = [f"{name}={','.join(values)}" for name, values in self.keep.items()]
        words += [f"least size {self.least_size}"] if self.least_size > 1 else []
        words += ["matrix instructions only"] if self.matrix_only else []
        return "; ".join(words) or "all"


@dataclass(frozen=True)
class ReadSample:
    """A sample with its rows, one for each product (a matrix of times has no rows), their device and data types."""

    sample: TunedSample
    shapes: tuple[TunedShape, ...]
    rows_read: int
    device: str
    data_type: str
    operand_bytes: float
    result_bytes: float
    notes: tuple[str, ...] = ()


def keep_of(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """`["arch=gfx90a", "dtype=f16,bf16"]` as a mapping. Raises UserError for a word of another form."""
    kept = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not (name and equals):
            raise UserError(
                "--where", f"cannot be {word or 'empty'}", "write COLUMN=WORD, such as --where dtype=f16,bf16"
            )
        kept[name] = tuple(values.split(","))
    return kept


def read_shapes(task: SourceTask) -> tuple[tuple[TunedShape, ...], tuple[str, ...]]:
    """The rows of all sources that the task keeps, and notes on rows that were left out. Raises UserError for a file
    that cannot be read."""
    readings = [_of_file(path, task) for path in task.sources]
    kept = (shape for shapes, _ in readings for shape in shapes if min(shape.m, shape.n, shape.k) >= task.least_size)
    return tuple(kept), tuple(note for _, notes in readings for note in notes)


def read_sample(task: SourceTask) -> ReadSample:
    """The sample of a task: of its rows (`sample_of`), or the matrix of its finals.

    Raises UserError if some sources are finals and others are not.
    """
    finals = [path for path in task.sources if is_final(path)]
    if not finals:
        return sample_of(*read_shapes(task), task)
    if len(finals) < len(task.sources):
        other = next(path for path in task.sources if not is_final(path))
        raise UserError(str(other), "has no times, and other sources have", "fit tables of finals by themselves")
    return _of_finals(finals, task)


def sample_of(shapes: Sequence[TunedShape], notes: Sequence[str], task: SourceTask) -> ReadSample:
    """The sample of the best row of each product (`best_rows`).

    Raises UserError for too few products, and for rows of several devices.
    """
    names = ", ".join(map(str, task.sources))
    kept = best_rows(shapes)
    if len(kept) < LEAST_PRODUCTS:
        what = f"{len(kept)} products are left of {len(shapes)} rows, {LEAST_PRODUCTS} are needed"
        raise UserError(names, what, "give more files, or a wider --where and a smaller --least-size")
    device = _the_device(kept, names)
    types = sorted({shape.data_type for shape in kept})
    widths = {(_bytes(shape.data_type, shape), _bytes(shape.result_type, shape)) for shape in kept}
    ridge, units = _chip(task, device, types, names)
    sample = TunedSample(
        products=tuple(_product(shape) for shape in kept),
        groups=tuple(_group(shape, task.groups) for shape in kept),
        winners=tuple(shape.configuration for shape in kept),
        areas=np.array([float(shape.rows * shape.columns) for shape in kept]),
        ridge=ridge,
        units=units,
    )
    operand_bytes, result_bytes = min(widths)
    return ReadSample(sample, kept, len(shapes), device, ", ".join(types), operand_bytes, result_bytes, tuple(notes))


def _of_finals(paths: Sequence[Path], task: SourceTask) -> ReadSample:
    """The matrix of finals, with the solutions of all. A solution has no time on products that its table lacks."""
    names = ", ".join(map(str, paths))
    if task.keep or task.matrix_only:
        raise UserError("--where", "a final's table has no such columns", "leave out --where and --matrix-only")
    finals = [read_final(path) for path in paths]
    details = [read_details(path) for path in paths]
    types = {(final.data_type, final.result_type) for final in finals}
    if len(types) > 1:
        several = ", ".join(f"{operand} to {result}" for operand, result in sorted(types))
        raise UserError(names, f"tables of several data types: {several}", "fit each by itself")
    data_type, result_type = types.pop()
    device, ridge, units = _device_of_finals(details, data_type, task, names)
    operand_bytes, result_bytes = DATA_TYPE_BYTES[data_type], DATA_TYPE_BYTES[result_type]
    configs_of = [_candidates(final, found) for final, found in zip(finals, details, strict=True)]
    candidates = tuple(dict.fromkeys(config for configs in configs_of for config in configs))
    columns = {config: column for column, config in enumerate(candidates)}
    products: list[Product] = []
    sources: list[str] = []
    rows: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
    for path, final, configs in zip(paths, finals, configs_of, strict=True):
        for (m, n, k, batch), times in zip(final.sizes, final.seconds, strict=True):
            if min(m, n, k) < task.least_size:
                continue
            row = np.full(len(candidates), np.nan)
            row[[columns[config] for config in configs]] = times
            products.append(Product(m, n, k, batch, operand_bytes, result_bytes))
            sources.append(str(path))
            rows.append(row)
    if len(products) < LEAST_PRODUCTS:
        raise UserError(
            names, f"{len(products)} products, {LEAST_PRODUCTS} are needed", "give the tables of more sizes"
        )
    seconds = np.array(rows)
    by_sizes = task.groups is Grouping.MN
    sample = TunedSample(
        products=tuple(products),
        groups=tuple(f"{p.m} x {p.n}" if by_sizes else file for p, file in zip(products, sources, strict=True)),
        winners=tuple(candidates[int(column)] for column in np.nanargmin(seconds, axis=1)),
        areas=None,
        ridge=ridge,
        units=units,
        candidates=candidates,
        seconds=seconds,
    )
    return ReadSample(sample, (), len(products), device, data_type, operand_bytes, result_bytes)


def _candidates(final: FinalMatrix, details: FinalDetails | None) -> list[Configuration]:
    """The configuration of each of a final's solutions: its kernel and parameters, or only its name in the table."""
    solutions = details.solutions if details else {}
    return [
        Configuration({KERNEL: solutions[name].kernel}) | solutions[name].configuration
        if name in solutions
        else Configuration({SOLUTION: name})
        for name in final.solutions
    ]


def _device_of_finals(
    details: Sequence[FinalDetails | None], data_type: str, task: SourceTask, names: str
) -> tuple[str, float, int]:
    """The device's name, ridge in FLOP per byte, and compute units: those of the task, else of the device that the
    details name.

    Raises UserError for several devices, and if ridge or compute units are not known.
    """
    devices = {found.device for found in details if found and found.device}
    if len({(device.api, device.name, device.architecture) for device in devices}) > 1:
        several = ", ".join(sorted(device.name for device in devices))
        raise UserError(names, f"tables of several devices: {several}", "fit each by itself")
    device = next(iter(devices), None)
    units = task.units or (device.compute_units if device else 0)
    chip = chip_of(device.name, device.architecture) if device else None
    ridge = task.ridge or _published_ridge(chip, data_type) or 0.0
    if not (ridge and units):
        who = f"the chip of {device.name} is not known" if device else "a final's table does not name its chip"
        raise UserError("--ridge", who, "give --ridge (FLOP per byte) and --units")
    return device.name if device else "a device of one's own", ridge, units


def best_rows(shapes: Sequence[TunedShape]) -> tuple[TunedShape, ...]:
    """The fastest row of each product (type, transposes and sizes), in the order of the products' first rows.

    A row without a speed is used only if the product has no other.
    """
    best: dict[tuple[object, ...], TunedShape] = {}
    for shape in shapes:
        key: tuple[object, ...] = (
            shape.family,
            shape.data_type,
            shape.transposes,
            shape.batch,
            shape.m,
            shape.n,
            shape.k,
        )
        if shape.study_sizes:
            # Different convolutions may have equal products.
            key = (shape.source,)
        known = best.get(key)
        if known is None or _speed(shape) > _speed(known):
            best[key] = shape
    return tuple(best.values())


def _of_file(path: Path, task: SourceTask) -> tuple[tuple[TunedShape, ...], tuple[str, ...]]:
    if path.suffix == ".mlir":
        reading = read_spec(path)
        return reading.shapes, reading.notes
    return read_winners(path, task.keep, task.matrix_only), ()


def _speed(shape: TunedShape) -> float:
    return -math.inf if shape.speed is None else shape.speed


def _product(shape: TunedShape) -> Product:
    operand_bytes, result_bytes = _bytes(shape.data_type, shape), _bytes(shape.result_type, shape)
    return Product(shape.m, shape.n, shape.k, shape.batch, operand_bytes, result_bytes)


def _bytes(data_type: str, shape: TunedShape) -> float:
    if data_type not in DATA_TYPE_BYTES:
        raise UserError(shape.source, f"data type {data_type} is not known", f"use {', '.join(DATA_TYPE_BYTES)}")
    return DATA_TYPE_BYTES[data_type]


def _group(shape: TunedShape, grouping: Grouping) -> str:
    match grouping:
        case Grouping.FAMILY:
            return shape.family
        case Grouping.SOURCE:
            return shape.source.rpartition(":")[0]
        case Grouping.MN:
            return f"{shape.m} x {shape.n}"


def _the_device(shapes: Sequence[TunedShape], names: str) -> str:
    devices = sorted({shape.device for shape in shapes})
    if len(devices) > 1:
        what = f"rows of several devices: {', '.join(devices)}"
        raise UserError(names, what, f"keep one device, such as --where arch={devices[0]}")
    return devices[0]


def _chip(task: SourceTask, device: str, types: Sequence[str], names: str) -> tuple[float, int]:
    """Ridge and compute units: those of the task, else those of the device's chip for the rows' data types.

    Raises UserError if no data sheet has the chip or a type, and for types with different ridges.
    """
    chip = chip_of("", device)
    units = task.units or (chip.compute_units if chip else None)
    ridges = {task.ridge} if task.ridge else {_published_ridge(chip, data_type) for data_type in types}
    if None in ridges or units is None:
        owner = f"{device} for {', '.join(types)}" if chip else device
        what = f"the ridge and the compute units of {owner} are not known"
        raise UserError("--ridge", what, "give --ridge (FLOP per byte) and --units")
    if len(ridges) > 1:
        shown = ", ".join(f"{data_type} {_published_ridge(chip, data_type):.4g}" for data_type in types)
        remedy = f"keep one type, such as --where dtype={types[0]}, or give --ridge"
        raise UserError(names, f"rows of data types with several ridges (FLOP per byte): {shown}", remedy)
    (ridge,) = ridges
    assert ridge is not None
    return ridge, units


def _published_ridge(chip: Chip | None, data_type: str) -> float | None:
    roofline = chip.roofline(DATA_TYPE_LETTERS[data_type]) if chip else None
    return roofline.ridge if roofline else None


def study_intensities(shapes: Iterable[TunedShape]) -> Floats:
    """FLOP per element of each product; for a convolution, by the sizes that IREE's study gave it."""
    return np.array([Product(*_study_sizes(shape)).intensity for shape in shapes])


def works_per_group(shapes: Iterable[TunedShape]) -> Floats:
    """Elements of D that a work-group computes: as in IREE's study if the number of work-groups is known, else the
    tile's elements."""
    return np.array([_work_per_group(shape) for shape in shapes])


def _work_per_group(shape: TunedShape) -> float:
    if shape.work_groups is None:
        return float(shape.rows * shape.columns)
    m, n, _ = _study_sizes(shape)
    return m * n / shape.work_groups


def _study_sizes(shape: TunedShape) -> tuple[int, int, int]:
    return shape.study_sizes or (shape.m, shape.n, shape.k)
