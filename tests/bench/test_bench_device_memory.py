"""Verification by programs on the device finds the same as verification on the host, and hardly costs the host time."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from test_bench_verify import REASONS, Doing, fake_program

from bench_jobs import GPU, OPERATION, TYPE, problem
from checks_on_host import checking_verifier
from hosted_device import hosted_verifier, judged
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.cases import Cases
from tunesmith.bench.verification.device_memory import needed_bytes
from tunesmith.bench.verification.device_programs import (
    FLAGS,
    SUMS,
)
from tunesmith.bench.verification.poison import itemsize, output_pattern
from tunesmith.bench.verification.regions import logical, padding_mask
from tunesmith.bench.verification.verify import Verifier
from tunesmith.devices.fake import FakeDevice
from tunesmith.problems import Expected
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Configuration, Operand, Plan, Problem

APIS = ["NumPy", pytest.param("OpenCL", marks=pytest.mark.opencl), pytest.param("CUDA", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("leading", [(), (40, 41, 42, 70)])
@pytest.mark.parametrize("fault", [*REASONS, "write between rows", "none"])
def test_device_and_host_find_the_same(fault, leading, api):
    size = problem(48, 48, 48, leading=leading and tuple(dimension + 48 for dimension in leading))
    verdicts = []
    for verifier in ("host", api):
        device, programs, plan = fake_program(size, fault)
        verdicts.append(judged(verifier, device, programs, plan, Cases(0).get(size)))
    assert verdicts[0].wrong == verdicts[1].wrong
    assert (verdicts[0].wrong is None) == (fault == "none")
    if fault == "none":
        assert 0 < verdicts[0].error == pytest.approx(verdicts[1].error, rel=1e-9)


@pytest.mark.parametrize("api", APIS)
def test_of_a_right_run_the_host_reads_a_few_words(api):
    """This holds after a wrong run too."""
    size = problem(512, 512, 16)
    hosted, verifier = hosted_verifier(api)
    case = Cases(0).get(size)
    verifier.hold(case)
    hosted.host, programs, plan = fake_program(size, "write before the start")
    assert verifier.judge(programs, plan, case).wrong is not None
    hosted.host, programs, plan = fake_program(size, "none")
    hosted.read_bytes = 0
    assert verifier.judge(programs, plan, case).wrong is None
    verifier.clear()
    d_bytes = 512 * 512 * 4
    assert hosted.read_bytes < d_bytes / 2


@pytest.mark.parametrize("api", APIS)
def test_of_a_right_run_on_an_operand_that_is_read_and_written_the_host_reads_a_few_words(api):
    """A right result may happen to be a poison, which is searched for only in what is written and not read."""
    operand = Operand("X", "float32", (2**18,), (1,), "inout")
    initial = np.random.default_rng(0).random(2**18).astype(np.float32)
    initial[7] = output_pattern("float32", 1).view(np.float32)[0] / 2
    expected = Expected((...,), initial.astype(np.float64) * 2, np.zeros(2**18))
    case = VerificationCase((operand,), {"X": initial}, {"X": expected})

    def double(operands):
        operands["X"].bytes.view(np.float32)[: 2**18] *= 2

    hosted, verifier = hosted_verifier(api)
    hosted.host = Doing(double)
    verifier.hold(case)
    hosted.read_bytes = 0
    assert verifier.judge([], Plan(()), case).wrong is None
    verifier.clear()
    assert hosted.read_bytes < 4 * 2**18 / 2


@pytest.mark.parametrize("api", APIS)
def test_what_another_wrote_into_what_is_kept_is_put_right_and_nobody_is_blamed_for_it(api):
    size = problem(33, 17, 8)
    hosted, verifier = hosted_verifier(api)
    case = Cases(0).get(size)
    hosted.host, programs, plan = fake_program(size, "none")
    verifier.hold(case)
    memory = next(iter(verifier._kept.values()))
    for name in ("A", "D value", "D bound", "D positions"):
        hosted.write(memory._buffers[name], np.full(8, 0x55, np.uint8), memory._lengths[name] // 16 * 8)
        assert verifier.judge(programs, plan, case).wrong is None, name
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
    initial = np.arange(300, dtype=np.float32)
    case = VerificationCase((operand,), {"X": initial}, {"X": Expected((...,), initial + 1.0, np.zeros(300))})

    def add_one(operands):
        operands["X"].bytes.view(np.float32)[:300] += 1

    assert judged(api, Doing(add_one), [], Plan(()), case).wrong is None
    wrong = judged(api, Doing(lambda operands: None), [], Plan(()), case).wrong
    assert wrong.reason == "wrong value"


DAMAGES = {
    "before D": lambda memory: write(memory["D"], -4, np.float32(1)),
    "behind F": lambda memory: write(memory["F"], 12, np.int32(1)),
    "between the rows of D": lambda memory: write(memory["D"], 12, np.float32(1)),
    "wrong in D": lambda memory: write(memory["D"], 0, np.float32(7)),
    "wrong in F": lambda memory: write(memory["F"], 8, np.int32(7)),
    "wrong in E": lambda memory: write(memory["E"], 0, np.float64(7)),
    "behind the workspace": lambda memory: write(memory["workspace"], 256, np.int32(7)),
}


def write(memory, offset, value):
    memory.base[memory.start + offset :][: value.nbytes] = np.atleast_1d(value).view(np.uint8)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("damage", ["none", "nothing is written to E", "nothing is written to F", *DAMAGES])
def test_of_several_outputs_and_a_workspace_each_is_watched(damage, api):
    """The relative error counts both outputs of reals, and not the integers between them."""
    operands = (
        Operand("D", "float32", (3, 2), (1, 4), "out"),
        Operand("F", "int32", (3,), (1,), "out"),
        Operand("E", "float64", (2,), (1,), "out"),
    )
    expected = {
        "D": Expected((...,), np.full((3, 2), 2.0), np.ones((3, 2))),
        "F": Expected((...,), np.full(3, 5, np.int32), np.zeros(3)),
        "E": Expected((...,), np.full(2, 4.0), np.ones(2)),
    }
    case = VerificationCase(operands, {}, expected)

    def act(memory):
        logical(operands[0], memory["D"].bytes.view(np.float32))[...] = 2.5
        if "to F" not in damage:
            memory["F"].bytes.view(np.int32)[:3] = 5
        if "to E" not in damage:
            memory["E"].bytes.view(np.float64)[:2] = 4.25
        DAMAGES.get(damage, lambda memory: None)(memory)

    host, device = (judged(judge, Doing(act), [], Plan((), workspace_bytes=256), case) for judge in ("host", api))
    assert host.wrong == device.wrong
    assert (host.wrong is None) == (damage == "none")
    if damage == "none":
        assert host.error == pytest.approx(np.sqrt((6 * 0.25 + 2 * 0.0625) / (6 * 4 + 2 * 16)), rel=1e-12)
        assert device.error == pytest.approx(host.error, rel=1e-12)
    else:
        assert damage.split()[-1] in host.wrong.detail


def updated(length=300):
    """A case with an input and an output that is also read, so that something of every kind is kept."""
    operands = (Operand("A", "float32", (length,), (1,), "in"), Operand("X", "float32", (length,), (1,), "inout"))
    ones = np.ones(length, np.float32)
    return VerificationCase(operands, {"A": ones, "X": ones}, {"X": Expected((...,), ones * 2.0, ones * 0.0)})


def test_a_kept_case_takes_the_memory_that_was_foretold_and_its_last_workspace():
    device, verifier = checking_verifier()
    case = updated()
    memory = verifier.hold(case)
    assert memory.size == needed_bytes(case, device.alignment)
    for workspace_bytes in (256, 1024, 0):
        device.host = Doing(lambda memory: None)
        verifier.judge([], Plan((), workspace_bytes=workspace_bytes), case)
        taken = [buffer.size for name, buffer in memory._buffers.items() if name not in (FLAGS, SUMS)]
        assert memory.size == sum(taken)
        assert ("workspace" in memory._buffers) == (workspace_bytes > 0)


@pytest.mark.parametrize(("missing", "kept"), [(0, [False, True, True]), (8, [False, False, True])])
def test_kept_cases_fill_at_most_a_quarter_of_the_device_and_the_longest_unused_goes_first(missing, kept):
    """The quarter has room for two cases, or for a word less."""
    cases = [updated() for _ in range(3)]
    size = needed_bytes(cases[0], FakeDevice(GPU).alignment)
    _, verifier = checking_verifier(replace(GPU, global_memory_bytes=4 * (2 * size - missing)))
    for case in (cases[1], cases[0], cases[1], cases[2]):
        verifier.hold(case)
    assert [bool(verifier.inputs(case)) for case in cases] == kept


def test_a_case_beyond_a_quarter_of_the_device_is_kept_alone():
    cases = [updated() for _ in range(2)]
    size = needed_bytes(cases[0], FakeDevice(GPU).alignment)
    _, verifier = checking_verifier(replace(GPU, global_memory_bytes=2 * size))
    for case in cases:
        verifier.hold(case)
    assert [bool(verifier.inputs(case)) for case in cases] == [False, True]


def test_the_fake_device_is_verified_on_the_host():
    verifier = Verifier(FakeDevice(GPU))
    size = Problem(TYPE, (8, 8, 8), (), Configuration({"alpha": 1.0, "beta": 0.0}))
    case = Cases(0).get(size)
    verifier.hold(case)
    assert verifier.inputs(case) == {}
