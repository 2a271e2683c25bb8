"""Which outputs and devices the programs for verification support, and how memory is laid out for them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_jobs import GPU
from cuda_runner import H200, toolchain
from tunesmith.bench.verification import device_programs
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.device_memory import supports
from tunesmith.bench.verification.device_programs import ENTRIES, VerificationPrograms, module, nested_strides
from tunesmith.bench.verification.regions import Region, padding_mask
from tunesmith.devices.fake import FakeDevice
from tunesmith.problems import Expected
from tunesmith.records import Operand
from tunesmith.toolchains import CompileError


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.permutations(range(3)),
    st.lists(st.integers(0, 3), min_size=3, max_size=3),
)
def test_a_storage_elements_number_says_whether_it_is_the_arrays(shape, order, gaps):
    """The device's divisions by falling strides agree with the host's mask."""
    strides, step = [0] * len(shape), 1
    for axis in [axis for axis in order if axis < len(shape)]:
        strides[axis] = step
        step = step * shape[axis] + gaps[axis]
    operand = Operand("D", "float32", tuple(shape), tuple(strides), "out")
    steps = nested_strides(operand)
    if steps is None:
        return
    inside = np.array([_belongs(index, steps) for index in range(operand.storage_elements)])
    padding = padding_mask(operand)
    if padding is not None:
        assert np.array_equal(inside, ~padding)


def _belongs(location, steps):
    for stride, extent in steps:
        if location // stride >= extent:
            return False
        location %= stride
    return location == 0


@pytest.mark.parametrize(
    ("operand", "is_supported"),
    [
        (Operand("D", "float16", (4,), (1,), "out"), True),
        (Operand("D", "int8", (4,), (1,), "out"), True),
        (Operand("D", "float8_e5m2", (4,), (1,), "out"), True),
        (Operand("D", "float8_e4m3fn", (4,), (1,), "out"), False),
        (Operand("without a reference", "float8_e4m3fn", (4,), (1,), "out"), True),
        (Operand("D", "float32", (2, 2), (4, 1), "out"), True),
        (Operand("D", "float32", (2, 2), (4, 1), "inout"), False),
        (Operand("D", "float32", (2, 2), (2, 1), "inout"), True),
        (Operand("D", "float32", (2, 2, 2), (12, 4, 1), "out"), True),
        (Operand("D", "float32", (2, 2, 2, 2), (24, 12, 4, 1), "out"), False),
    ],
)
def test_what_the_programs_cannot_read_is_left_to_the_host(operand, is_supported):
    """A single output that they cannot read is enough, among others that they can."""
    other = Operand("E", "float32", (4,), (1,), "out")
    expected = {name: Expected((...,), np.ones(4), np.ones(4)) for name in "DE"}
    for operands in ((operand,), (operand, other), (other, operand)):
        assert supports(VerificationCase(operands, {}, expected)) == is_supported


@pytest.mark.parametrize(
    ("shape", "strides", "steps"),
    [
        ((3, 2), (1, 3), ((3, 2), (1, 3), (1, 1))),
        ((3, 2), (1, 2), None),
        ((2, 3), (5, 2), ((5, 2), (2, 3), (1, 1))),
        ((2, 3), (4, 2), None),
        ((2, 2, 2), (9, 4, 2), ((9, 2), (4, 2), (2, 2))),
        ((2, 2, 2), (6, 4, 1), ((6, 2), (4, 2), (1, 2))),
        ((2, 2, 2), (5, 4, 1), None),
        ((1, 2, 1, 2, 1, 2), (0, 9, 5, 4, 9, 1), ((9, 2), (4, 2), (1, 2))),
        ((2, 2, 2, 2), (9, 4, 2, 1), None),
        ((2, 2, 2, 2), (8, 4, 2, 1), ((1, 1), (1, 1), (1, 1))),
        ((4,), (1,), ((1, 4), (1, 1), (1, 1))),
    ],
)
def test_strides_are_nested_if_each_is_longer_than_all_that_lies_below_it(shape, strides, steps):
    """Axes of one element do not count. Without padding there is nothing to tell apart."""
    assert nested_strides(Operand("D", "float32", shape, strides, "out")) == steps


def test_an_operand_with_more_axes_than_strides_is_refused():
    with pytest.raises(ValueError, match="longer"):
        nested_strides(Operand("D", "float32", (3, 2), (1,), "out"))


@pytest.mark.parametrize(
    ("changes", "groups"),
    [
        ({}, 8 * 8),
        ({"compute_units": 132}, 8 * 132),
        ({"kind": "CPU"}, 8 * 8),
        ({"kind": "CPU", "compute_units": 132}, 255),
        ({"double_precision": False}, None),
        ({"api": "unheard of"}, None),
    ],
)
@pytest.mark.parametrize("missing", ["", "no compiler here"])
def test_the_programs_fill_a_device_that_can_run_them(changes, groups, missing, monkeypatch):
    toolchain = SimpleNamespace(unavailable=lambda: missing, compile=lambda module, target: None)
    monkeypatch.setattr(device_programs, "LANGUAGES", {"fake": "CUDA"})
    monkeypatch.setattr(device_programs, "TOOLCHAINS", {"CUDA": toolchain})
    programs = VerificationPrograms.on(FakeDevice(replace(GPU, **changes)))
    assert (programs and programs.groups) == (None if missing else groups)


def test_programs_that_do_not_compile_leave_verification_to_the_host(monkeypatch):
    def fails(module, target):
        raise CompileError("compiler", "no such pragma")

    monkeypatch.setattr(device_programs, "LANGUAGES", {"fake": "CUDA"})
    monkeypatch.setattr(device_programs, "TOOLCHAINS", {"CUDA": SimpleNamespace(unavailable=lambda: "", compile=fails)})
    assert VerificationPrograms.on(FakeDevice(GPU)) is None


def test_the_programs_compile_for_cuda():
    binary = toolchain("CUDA").compile(module("CUDA"), H200)
    assert tuple(fact.entry for fact in binary.facts) == ENTRIES
    assert all(fact.spill_bytes == 0 for fact in binary.facts)


@pytest.mark.parametrize(
    ("size", "alignment", "start", "length"),
    [
        (0, 64, 512 * 1024, 1024 * 1024),
        (13, 256, 512 * 1024, 1024 * 1024 + 16),
        (16, 4, 512 * 1024, 1024 * 1024 + 16),
        (600_001, 4, 600_008, 3 * 600_000 + 16 + 8),
        (600_000, 96, 600_000, 3 * 600_000),
        (600_001, 96, 600_096, 2 * 600_096 + 600_008),
        (5_000_000, 64, 1024 * 1024, 2 * 1024 * 1024 + 5_000_000),
    ],
)
def test_memory_is_guarded_by_as_much_as_it_has_from_half_a_mebibyte_to_one(size, alignment, start, length):
    """Storage is aligned as the device asks, and to words at least. The whole is a number of words."""
    region = Region.of("D", "float32", size, alignment)
    assert (region.start, region.length) == (start, length)
