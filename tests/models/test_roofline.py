"""Rooflines: published chips by a device's name, and the file of measured rooflines."""

from __future__ import annotations

import math
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.models.roofline.chips import CHIPS, USUAL, chip_named, chip_of
from tunesmith.models.roofline.figures import Provenance
from tunesmith.models.roofline.measured import (
    MeasuredRoofline,
    dump_rooflines,
    merged_rooflines,
    read_rooflines,
)
from tunesmith.records import UserError

MEASURED = MeasuredRoofline(
    "OpenCL", "a CPU: 2 cores", "x86-64", "7.1", "s", 187.25e9, "GEMM 2048", 21.5e9, "a copy of 1 GiB", "2026-11-22"
)

RIDGES = {"MI300X": 246.7, "H100 SXM": 295.2, "H200 SXM": 206.1, "A100 SXM 80 GB": 153.0}
"""FLOP/byte of bfloat16, by hand from the same sheets: 1307.4 / 5.3, 989.4 / 3.352, 989.4 / 4.8, 312 / 2.039."""


@pytest.mark.parametrize(
    ("device", "chip"),
    [
        ("NVIDIA H200", "H200 SXM"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80 GB"),
        ("NVIDIA A100-PCIE-40GB", "A100 PCIe 40 GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA L40S", "L40S"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI250X/MI250", "MI250X, one of two dies"),
        ("mi300x", "MI300X"),
        ("h100 sxm", "H100 SXM"),
    ],
)
def test_a_chip_is_found_by_the_name_that_its_driver_gives_it(device, chip):
    named = chip_named(device)
    assert named is not None
    assert named.name == chip


@pytest.mark.parametrize(
    "device",
    [
        *("", " ", "H100", "a CPU", "NVIDIA A100", "NVIDIA GH200 480GB", "NVIDIA H200 NVL", "NVIDIA GB200"),
        *("NVIDIA GeForce RTX 3090 Ti", "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU"),
    ],
)
def test_another_model_or_an_ambiguous_name_is_no_chip(device):
    assert chip_named(device) is None


def test_amds_architectures_stand_for_their_usual_chip_and_the_source_says_so():
    usual = chip_of("gfx942:sramecc+:xnack-", "gfx942:sramecc+:xnack-")
    assert usual is not None
    assert usual.name == "MI300X"
    assert usual.source.endswith("MI300X is taken for gfx942")
    assert chip_of("NVIDIA something", "sm_90") is None
    assert chip_of("pthread-haswell", "x86-64") is None
    for architecture, name in USUAL.items():
        assert {chip.architecture for chip in CHIPS if chip.name == name} == {architecture}


@pytest.mark.parametrize("name", RIDGES)
def test_the_ridge_is_peak_over_bandwidth(name):
    chip = chip_named(name)
    assert chip is not None
    roofline = chip.roofline("b")
    assert roofline is not None
    assert roofline.ridge == pytest.approx(RIDGES[name], abs=0.05)
    assert roofline.provenance is Provenance.PUBLISHED
    assert roofline.attainable(roofline.ridge) == pytest.approx(roofline.flops_per_second)
    assert roofline.attainable(roofline.ridge / 10) == pytest.approx(roofline.flops_per_second / 10)
    assert roofline.attainable(roofline.ridge * 10) == roofline.flops_per_second


def test_each_chip_names_its_source_and_none_is_slower_for_smaller_types():
    assert len({chip.name for chip in CHIPS}) == len(CHIPS)
    for chip in CHIPS:
        assert chip.source
        rooflines = [chip.roofline(letter) for letter in ("i8", "h", "x", "s", "d")]
        peaks = [roofline.flops_per_second for roofline in rooflines if roofline]
        assert peaks == sorted(peaks, reverse=True), chip.name
        assert chip.roofline("i") is None
        assert chip_named(chip.name) == chip


def test_a_file_of_rooflines_reads_back_and_a_newer_one_replaces_the_older(tmp_path):
    path = tmp_path / "rooflines.yaml"
    double = replace(MEASURED, data_type="d", flops_per_second=93e9)
    path.write_text(dump_rooflines([MEASURED, double]), encoding="utf-8")
    assert read_rooflines(path) == (MEASURED, double)
    newer = replace(MEASURED, flops_per_second=200e9, driver="7.2")
    assert merged_rooflines([MEASURED, double], [newer]) == [newer, double]
    assert MEASURED.roofline.ridge == pytest.approx(187.25 / 21.5)


@pytest.mark.parametrize(
    ("change", "line", "what"),
    [
        (("tunesmith-roofline: 1", "tunesmith-roofline: 2"), 3, "format 2"),
        (("gflops-per-second: 187.25", "gflops-per-second: 0"), 11, "gflops-per-second is 0"),
        (("gflops-per-second: 187.25", "gflops-per-second: .nan"), 11, "gflops-per-second is nan"),
        (("gigabytes-per-second: 21.5", "gigabytes-per-second: fast"), 13, "gigabytes-per-second is fast"),
        (("data-type: s", "data-typ: s"), 10, "has no data-typ"),
        (("name: 'a CPU: 2 cores'", "name: []"), 7, "name is a list"),
        (("rooflines:", "rooflines: 3"), 5, "not valid YAML"),
    ],
)
def test_a_mistake_in_the_file_is_reported_with_its_line(tmp_path, change, line, what):
    path, text = tmp_path / "rooflines.yaml", dump_rooflines([MEASURED])
    assert change[0] in text
    path.write_text(text.replace(*change), encoding="utf-8")
    with pytest.raises(UserError) as caught:
        read_rooflines(path)
    assert any(what in error.what for error in caught.value.errors), caught.value
    assert any(error.location == f"{path}:{line}" for error in caught.value.errors), caught.value


@given(st.integers(0, 500), st.integers(0, 12), st.text("0123456789:-.e[]{}&*'# \n", max_size=6))
def test_a_mutated_file_is_read_or_gets_our_error(begin, removed, inserted):
    text = dump_rooflines([MEASURED])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rooflines.yaml"
        path.write_text(text[:begin] + inserted + text[begin + removed :], encoding="utf-8")
        with suppress(UserError):
            assert all(0 < measured.roofline.ridge < math.inf for measured in read_rooflines(path))


def test_two_rooflines_of_one_device_and_type_are_a_mistake(tmp_path):
    path = tmp_path / "rooflines.yaml"
    path.write_text(dump_rooflines([MEASURED, MEASURED]), encoding="utf-8")
    with pytest.raises(UserError, match="a second roofline of a CPU: 2 cores for s"):
        read_rooflines(path)
