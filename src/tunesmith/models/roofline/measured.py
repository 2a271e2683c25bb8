"""Reads and writes measured rooflines as a short YAML file that a person can read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from tunesmith.problems import Node, read_yaml, shortened
from tunesmith.records import UserError

from .figures import Provenance, Roofline

FORMAT = 1
"""The number under `tunesmith-roofline`, raised when one of two versions could not read what the other wrote."""

MOST = 1e12
"""A limit for rates in the file, in 10^9 per second; no device reaches it."""

_KEY = "tunesmith-roofline"
_DEVICE = ("api", "name", "architecture", "driver")
_FACTS = ("device", "data-type", "gflops-per-second", "peak-of", "gigabytes-per-second", "bandwidth-of", "made")
_REMEDY = "give a file that `tunesmith calibrate roofline` wrote"
_HEAD = f"""\
# Peak and bandwidth of devices, for `tunesmith characterize --roofline` (docs/intensity.md).
# The ridge is the one over the other, in FLOP per byte.
{_KEY}: {FORMAT}
rooflines:
"""


@dataclass(frozen=True, slots=True)
class MeasuredRoofline:
    """The measured rates of a device for a data type (a GEMM's letter; x is TF32). `peak_of` and `bandwidth_of`
    describe the programs that reached the two rates; `made` is the date."""

    api: str
    device: str
    architecture: str
    driver: str
    data_type: str
    flops_per_second: float
    peak_of: str
    bytes_per_second: float
    bandwidth_of: str
    made: str

    @property
    def roofline(self) -> Roofline:
        source = f"{self.made}, peak of {self.peak_of}, bandwidth of {self.bandwidth_of}"
        rates = self.flops_per_second, self.bytes_per_second
        return Roofline(self.device, self.data_type, *rates, Provenance.MEASURED, source)


def dump_rooflines(rooflines: Iterable[MeasuredRoofline]) -> str:
    """The text of a file. `read_rooflines` gives the same figures back, to six digits."""
    return _HEAD + "".join(map(_entry, rooflines))


def merged_rooflines(older: Iterable[MeasuredRoofline], newer: Iterable[MeasuredRoofline]) -> list[MeasuredRoofline]:
    """All rooflines; a newer one replaces the older one of its device and data type."""
    return list({_subject(measured): measured for measured in (*older, *newer)}.values())


def read_rooflines(path: Path) -> tuple[MeasuredRoofline, ...]:
    """The rooflines in a file. Raises UserError, with the line, for a mistake in the file."""
    fields = read_yaml(path).fields("a file of rooflines", (_KEY, "rooflines"))
    version = fields[_KEY]
    if version.content != FORMAT:
        what = f"format {shortened(version.content)}, this tunesmith reads {FORMAT}"
        raise UserError(version.location, what, "calibrate again into another file")
    by_subject: dict[tuple[str, ...], MeasuredRoofline] = {}
    for node in fields["rooflines"].sequence("rooflines"):
        measured = _measured(node)
        if _subject(measured) in by_subject:
            what = f"a second roofline of {measured.device} for {measured.data_type}"
            raise node.wrong(what, "keep one of the two")
        by_subject[_subject(measured)] = measured
    return tuple(by_subject.values())


def _subject(measured: MeasuredRoofline) -> tuple[str, ...]:
    return measured.api, measured.device, measured.architecture, measured.data_type


def _entry(measured: MeasuredRoofline) -> str:
    device = measured.api, measured.device, measured.architecture, measured.driver
    facts = {
        "device": dict(zip(_DEVICE, device, strict=True)),
        "data-type": measured.data_type,
        "gflops-per-second": _digits(measured.flops_per_second),
        "peak-of": measured.peak_of,
        "gigabytes-per-second": _digits(measured.bytes_per_second),
        "bandwidth-of": measured.bandwidth_of,
        "made": measured.made,
    }
    text = yaml.safe_dump(facts, sort_keys=False, width=10_000, allow_unicode=True)
    return "".join(f"{'- ' if number == 0 else '  '}{line}\n" for number, line in enumerate(text.splitlines()))


def _digits(per_second: float) -> float:
    return float(f"{per_second / 1e9:.6g}")


def _measured(node: Node) -> MeasuredRoofline:
    fields = node.fields("a roofline", _FACTS)
    device = fields["device"].fields("the device of a roofline", _DEVICE)
    api, name, architecture, driver = (device[key].word(key) for key in _DEVICE)
    words = {key: fields[key].word(key) for key in ("data-type", "peak-of", "bandwidth-of", "made")}
    return MeasuredRoofline(
        api,
        name,
        architecture,
        driver,
        words["data-type"],
        _rate(fields["gflops-per-second"], "gflops-per-second"),
        words["peak-of"],
        _rate(fields["gigabytes-per-second"], "gigabytes-per-second"),
        words["bandwidth-of"],
        words["made"],
    )


def _rate(node: Node, key: str) -> float:
    """The rate in the node, which is in 10^9 per second, as a number per second."""
    value = node.content
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < MOST:
        raise node.wrong(f"{key} is {shortened(value)}", f"give a positive number, or {_REMEDY}")
    return value * 1e9
