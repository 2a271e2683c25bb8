"""Verification by programs on the device finds the same as verification on the host, and hardly costs the host time."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_bench_verify import REASONS, fake_program

from bench_jobs import GPU, OPERATION, TYPE, problem
from cuda_runner import H200, toolchain
from hosted_device import hosted_verifier, judged
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.cases import Cases
from tunesmith.bench.verification.device_memory import supports
from tunesmith.bench.verification.device_programs import ENTRIES, module, nested_strides
from tunesmith.bench.verification.poison import itemsize
from tunesmith.bench.verification.regions import padding_mask
from tunesmith.bench.verification.verify import Verifier
from tunesmith.devices.fake import FakeDevice
from tunesmith.problems import Expected
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Operand, Plan, Problem

APIS = [pytest.param("OpenCL", marks=pytest.mark.opencl), pytest.param("CUDA", marks=pytest.mark.gpu)]


class Doing(FakeDevice):
    """Carries out a function on the operands' memory instead of a plan."""

    def __init__(self, act):
        super().__init__(GPU)
        self.act = act

    def prepare(self, plan, programs, operands, workspace):
        return SimpleNamespace(enqueue=lambda: self.act(operands))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("leading", [(), (40, 41, 42, 70)])
@pytest.mark.parametrize("fault", [*REASONS, "write between rows", "none"])
def test_device_and_host_find_the_same(fault, leading, api):
    size = problem(48, 48, 48, leading=leading and tuple(dimension + 48 for dimension in leading))
    verdicts = []
    for verifier in ("host", api):
        device, program, plan = fake_program(size, fault)
        verdicts.append(judged(verifier, device, [program], plan, Cases(0).get(size)))
    assert verdicts[0].wrong == verdicts[1].wrong
    assert (verdicts[0].wrong is None) == (fault == "none")
    if fault == "none":
        assert 0 < verdicts[0].error == pytest.approx(verdicts[1].error, rel=1e-9)


@pytest.mark.parametrize("api", APIS)
def test_of_a_right_run_the_host_reads_a_few_words(api):
    size = problem(512, 512, 16)
    hosted, verifier = hosted_verifier(api)
    case = Cases(0).get(size)
    hosted.host, program, plan = fake_program(size, "none")
    verifier.hold(case)
    hosted.read_bytes = 0
    assert verifier.judge([program], plan, case).wrong is None
    verifier.clear()
    d_bytes = 512 * 512 * 4
    assert hosted.read_bytes < d_bytes / 2


@pytest.mark.parametrize("api", APIS)
def test_what_another_wrote_into_what_is_kept_is_put_right_and_nobody_is_blamed_for_it(api):
    size = problem(33, 17, 8)
    hosted, verifier = hosted_verifier(api)
    case = Cases(0).get(size)
    hosted.host, program, plan = fake_program(size, "none")
    verifier.hold(case)
    memory = next(iter(verifier._kept.values()))
    for name in ("A", "D value", "D bound", "D positions"):
        hosted.write(memory._buffers[name], np.full(8, 0x55, np.uint8), memory._lengths[name] // 16 * 8)
        assert verifier.judge([program], plan, case).wrong is None, name
    verifier.clear()


@pytest.mark.parametrize("api", APIS)
def test_a_program_that_writes_into_the_kept_reference_is_found_out(api):
    """The program does not count as right: what is kept is checked again after its runs."""
    operand = Operand("D", "float32", (300,), (1,), "out")
    case = VerificationCase((operand,), {}, {"D": Expected((...,), np.ones(300), np.zeros(300))})
    hosted, verifier = hosted_verifier(api)

    def act(operands):
        operands["D"].bytes.view(np.float32)[:300] = 2.0
        memory = next(iter(verifier._kept.values()))
        hosted.write(memory._buffers["D value"], np.full(300, 2.0).view(np.uint8))

    hosted.host = Doing(act)
    verifier.hold(case)
    wrong = verifier.judge([], Plan(()), case).wrong
    verifier.clear()
    assert wrong.reason == "wrote outside the output"
    assert "D value" in wrong.detail


FLOATS = ["float16", "bfloat16", "float32", "float64"]
WHOLE = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def every_kind_of(dtype, count=2000):
    """Random bit patterns, hence all magnitudes, with both zeros; finite."""
    bits = np.random.default_rng(9).integers(0, 256, count * itemsize(dtype), dtype=np.uint8)
    numbers = bits.view(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype).copy()
    numbers[:2] = [0.0, -0.0] if dtype in FLOATS else [0, 1]
    with np.errstate(invalid="ignore"):
        wide = numbers.astype(np.float64)
    numbers[~np.isfinite(wide)] = 1
    return numbers


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("dtype", FLOATS + WHOLE)
def test_numbers_of_every_type_are_read_as_the_host_reads_them(dtype, api):
    """The bound is zero, so the device must read exactly. It finds a number that differs in its last bit."""
    numbers = every_kind_of(dtype)
    operand = Operand("D", dtype, (numbers.size,), (1,), "out")
    expected = numbers.astype(np.float64)
    case = VerificationCase((operand,), {}, {"D": Expected((...,), expected, np.zeros(expected.shape))})

    def writing(written):
        return Doing(lambda operands: np.copyto(operands["D"].bytes, written.view(np.uint8)))

    right = judged(api, writing(numbers), [], Plan(()), case)
    assert right.wrong is None
    assert right.error in (0.0, None)
    off = numbers.copy()
    off.view(f"u{itemsize(dtype)}")[777] ^= 1
    if float(off[777]) != float(numbers[777]):
        wrong = judged(api, writing(off), [], Plan(()), case).wrong
        assert (wrong.reason, "D[777]" in wrong.detail) == ("wrong value", True)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_never_right(value, dtype, api):
    numbers = np.ones(64, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    numbers[63] = value
    operand = Operand("D", dtype, (64,), (1,), "out")
    case = VerificationCase((operand,), {}, {"D": Expected((...,), np.ones(64), np.full(64, 1e9))})
    device = Doing(lambda operands: np.copyto(operands["D"].bytes, numbers.view(np.uint8)))
    assert judged(api, device, [], Plan(()), case).wrong.reason == "wrong value"


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("interleaved", [False, True])
def test_the_elements_between_rows_are_told_from_the_arrays_own(interleaved, api):
    """Each storage element of a small padded batch in turn: the device agrees with the host whether it was written."""
    kind = gemm_type("s", batched=True, interleaved=interleaved)
    size = Problem(kind, (3, 2, 2, 1), (5, 4, 4, 4), Configuration({"alpha": 1.0, "beta": 0.0}))
    (operand,) = (operand for operand in OPERATION.operands(size) if operand.name == "D")
    case = VerificationCase((operand,), {}, {})
    padding = padding_mask(operand)
    assert padding.any()

    def device(mistaken):
        """Writes the array's elements and no others, except that it does the opposite at one element."""

        def act(operands):
            words = operands["D"].bytes.view(np.uint32)
            words[~padding & (np.arange(len(padding)) != mistaken)] = 0
            if padding[mistaken]:
                words[mistaken] = 0

        return Doing(act)

    for mistaken in range(operand.storage_elements):
        defects = [judged(verifier, device(mistaken), [], Plan(()), case).wrong for verifier in ("host", api)]
        assert defects[0] == defects[1] is not None


@pytest.mark.parametrize("api", APIS)
def test_an_operand_that_is_read_and_written_begins_every_run_as_it_was(api):
    operand = Operand("X", "float32", (300,), (1,), "inout")
    given = np.arange(300, dtype=np.float32)
    case = VerificationCase((operand,), {"X": given}, {"X": Expected((...,), given + 1.0, np.zeros(300))})

    def add_one(operands):
        operands["X"].bytes.view(np.float32)[:300] += 1

    assert judged(api, Doing(add_one), [], Plan(()), case).wrong is None
    wrong = judged(api, Doing(lambda operands: None), [], Plan(()), case).wrong
    assert wrong.reason == "wrong value"


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


def test_what_the_programs_cannot_read_is_left_to_the_host():
    def case(*operands):
        return VerificationCase(operands, {}, {"D": Expected((...,), np.ones(4), np.ones(4))})

    assert supports(case(Operand("D", "float16", (4,), (1,), "out")))
    assert not supports(case(Operand("D", "float8_e4m3fn", (4,), (1,), "out")))
    assert not supports(case(Operand("D", "float32", (2, 2), (4, 1), "inout")))
    assert not supports(case(Operand("D", "float32", (2, 2, 2, 2), (24, 12, 4, 1), "out")))


def test_the_fake_device_is_verified_on_the_host():
    verifier = Verifier(FakeDevice(GPU))
    size = Problem(TYPE, (8, 8, 8), (), Configuration({"alpha": 1.0, "beta": 0.0}))
    case = Cases(0).get(size)
    verifier.hold(case)
    assert verifier.inputs(case) == {}


def test_the_programs_compile_for_cuda():
    binary = toolchain("CUDA").compile(module("CUDA"), H200)
    assert tuple(fact.entry for fact in binary.facts) == ENTRIES
    assert all(fact.spill_bytes == 0 for fact in binary.facts)
