"""The numbers of each problem of a file: sizes of its product, intensity against the ridge, waves, published
buckets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunesmith.devices import choose
from tunesmith.models.intensity.metrics import REFERENCE_TILE
from tunesmith.models.intensity.published import Bucket, intensity_bucket, trip_count_bucket
from tunesmith.models.roofline.chips import CHIPS, Chip, chip_named, chip_of
from tunesmith.models.roofline.figures import Roofline
from tunesmith.models.roofline.measured import MeasuredRoofline, read_rooflines
from tunesmith.records import Target, UserError

from .listed import ListedProduct, letter_of, products_of


@dataclass(frozen=True, slots=True)
class CharacterizeTask:
    """A tuning file or list, the data type of a list that names none, and a device here or a chip with published
    figures. `rooflines` is a file that `tunesmith calibrate roofline` wrote."""

    path: Path
    data_type: str = "s"
    device: str | None = None
    chip: str | None = None
    rooflines: Path | None = None


@dataclass(frozen=True, slots=True)
class CharacterizedProblem:
    """A problem's numbers. `ridges` is the product's intensity in multiples of the device's ridge; `waves` are macro
    tiles of `REFERENCE_TILE` over the compute units. None if the ridge or the compute units are not known."""

    listed: ListedProduct
    ridges: float | None
    waves: float | None
    by_trip_count: Bucket
    by_intensity: Bucket


@dataclass(frozen=True)
class Characterization:
    """All problems of a file. `device` is a name, empty without a device. `rooflines` has the known rooflines by data
    type; `remarks` are sentences on the origin of the numbers."""

    path: Path
    device: str
    compute_units: int | None
    rooflines: Mapping[str, Roofline]
    problems: Sequence[CharacterizedProblem]
    remarks: tuple[str, ...]

    def census(self) -> dict[str, dict[Bucket, int]]:
        """For each rule, the number of problems that it puts into each bucket."""
        counts = {rule: dict.fromkeys(Bucket, 0) for rule in ("trip count", "intensity")}
        for problem in self.problems:
            counts["trip count"][problem.by_trip_count] += 1
            counts["intensity"][problem.by_intensity] += 1
        return counts


def characterize(task: CharacterizeTask) -> Characterization:
    """The numbers of all problems. Raises UserError for a file, device, chip or data type that makes no sense."""
    if task.chip is not None and (task.device is not None or task.rooflines is not None):
        other = "--device" if task.device is not None else "--roofline"
        raise UserError("--chip", f"goes with no {other}: it means published figures", "give one of the two")
    listed = products_of(task.path, letter_of(task.data_type))
    remarks: list[str] = []
    chip = _chip(task.chip)
    target = None if chip else _target(task.device, remarks)
    measured = _measured_on(target, task.rooflines) if task.rooflines else ()
    letters = dict.fromkeys(row.data_type for row in listed)
    candidates = {letter: _roofline(letter, chip, target, measured) for letter in letters}
    rooflines = {letter: roofline for letter, roofline in candidates.items() if roofline}
    units = chip.compute_units if chip else target.compute_units if target else None
    remarks += _roofline_remarks(letters, rooflines)
    remarks += [_waves_remark(units)]
    return Characterization(
        task.path,
        chip.name if chip else target.name if target else measured[0].device if measured else "",
        units,
        rooflines,
        [_characterized(row, rooflines.get(row.data_type), units) for row in listed],
        tuple(remarks),
    )


def _characterized(listed: ListedProduct, roofline: Roofline | None, units: int | None) -> CharacterizedProblem:
    product, ridge = listed.product, roofline.ridge if roofline else None
    return CharacterizedProblem(
        listed,
        product.of_ridge(ridge) if ridge else None,
        product.waves(*REFERENCE_TILE, units) if units else None,
        trip_count_bucket(product),
        intensity_bucket(product, ridge),
    )


def _chip(name: str | None) -> Chip | None:
    chip = chip_named(name) if name is not None else None
    if name is not None and chip is None:
        known = ", ".join(chip.name for chip in CHIPS)
        raise UserError("--chip", f"{name!r} is no chip, or several, of those with published figures", f"give {known}")
    return chip


def _target(selector: str | None, remarks: list[str]) -> Target | None:
    """The device, or None with a remark if no device was asked for and there is none."""
    try:
        return choose(selector)
    except UserError:
        if selector is not None:
            raise
    remarks.append("there is no device here: --chip names one with published figures")
    return None


def _measured_on(target: Target | None, path: Path) -> list[MeasuredRoofline]:
    """The rooflines of a file for a device (`Target.is_called`); without a device here, those of the file's only
    device.

    Raises UserError if there are none, or if the file has several devices to choose from.
    """
    entries = read_rooflines(path)
    devices = list(dict.fromkeys((entry.api, entry.device, entry.architecture) for entry in entries))
    names = ", ".join(name for _, name, _ in devices) or "nothing"
    if target is None and len(devices) != 1:
        what = f"there is no device here, and what it has was measured on {names}"
        raise UserError(str(path), what, "give a file of one device")
    of_target = [
        entry for entry in entries if target is None or target.is_called(entry.api, entry.device, entry.architecture)
    ]
    if target and not of_target:
        what = f"nothing in it was measured on {target.name}, but on {names}"
        raise UserError(str(path), what, "give the device that it was measured on, or calibrate again")
    return of_target


def _roofline(
    letter: str, chip: Chip | None, target: Target | None, measured: Sequence[MeasuredRoofline]
) -> Roofline | None:
    """The measured roofline of a data type, else the published one, else None."""
    if entry := next((entry for entry in measured if entry.data_type == letter), None):
        return entry.roofline
    published = chip or (chip_of(target.name, target.architecture) if target else None)
    return published.roofline(letter) if published else None


def _roofline_remarks(letters: Mapping[str, None], rooflines: Mapping[str, Roofline]) -> Iterator[str]:
    for letter in letters:
        if roofline := rooflines.get(letter):
            yield (
                f"ridge for {letter}: {roofline.ridge:.4g} FLOP/byte, {roofline.provenance}"
                f" ({roofline.peak}, {roofline.bytes_per_second / 1e9:.4g} GB/s;"
                f" {roofline.source})"
            )
        else:
            yield (
                f"ridge for {letter}: unknown; the intensity rule takes its cut-offs for no chip"
                " (`tunesmith calibrate roofline` measures it)"
            )


def _waves_remark(units: int | None) -> str:
    tile = "x".join(map(str, REFERENCE_TILE))
    return f"waves are of {tile} tiles on {units} compute units" if units else "waves are unknown without a device"
