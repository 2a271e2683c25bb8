"""No wrong program passes: every fault of the fake device is found, at every K, with its own reason, by verification on
the host and by the programs on the device."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

from bench_jobs import GPU, KERNEL, OPERATION, TYPE, problem
from hosted_device import judged
from tunesmith.bench.verification import run_inspection
from tunesmith.bench.verification.case import VerificationCase
from tunesmith.bench.verification.cases import Cases
from tunesmith.bench.verification.regions import Region, logical, padding_mask
from tunesmith.devices.fake import FAULTS, FakeDevice
from tunesmith.kernels.fake import FAULTS as KERNEL_FAULTS
from tunesmith.problems import Expected
from tunesmith.records import Launch, Operand, Plan, Write, Zero
from tunesmith.toolchains.fake import COMPILE_FAULTS, FakeToolchain

REASONS = {
    "wrong value": "wrong value",
    "skip the last K": "wrong value",
    "swap operands": "wrong value",
    "index off by one": "wrong value",
    "unwritten element": "unwritten element",
    "maximum with the old": "wrong value",
    "minimum with the old": "wrong value",
    "write past the end": "wrote outside the output",
    "write before the start": "wrote outside the output",
    "modify an input": "modified an input",
}


MARKS = {"host": [], "NumPy": [], "OpenCL": [pytest.mark.opencl], "CUDA": [pytest.mark.gpu]}
"""Where a run is verified: on the host, or by programs on the device."""


@pytest.fixture(params=[pytest.param(name, marks=marks) for name, marks in MARKS.items()])
def judge(request):
    return request.param


def covering(*lists):
    """The host verifies every combination of these values, and a device every third: each value, whose neighbours take
    turns. The rest are `thorough`, since the problem and what is expected are the same for all judges."""
    found = []
    for (name, marks), *chosen in product(MARKS.items(), *map(enumerate, lists)):
        turns, values = zip(*chosen, strict=True)
        rest = [pytest.mark.thorough] if name != "host" and sum(turns) % 3 else []
        found.append(pytest.param(name, *values, marks=[*marks, *rest]))
    return found


@pytest.fixture
def verify(judge):
    """A function that verifies a plan and returns the defect."""
    return lambda device, programs, plan, case: judged(judge, device, programs, plan, case).wrong


@pytest.fixture
def found(verify):
    """A function that verifies a fake program on a problem and returns the defect."""

    return lambda size, fault="none": verify(*fake_program(size, fault), Cases(0).get(size))


class Doing(FakeDevice):
    """Carries out a function on the operands' memory, and on the workspace if there is one, instead of a plan."""

    def __init__(self, act):
        super().__init__(GPU)
        self.act = act

    def prepare(self, plan, programs, operands, workspace):
        memory = operands | ({"workspace": workspace} if workspace else {})
        return SimpleNamespace(enqueue=lambda: self.act(memory))


def fake_program(size, fault):
    device, config = FakeDevice(GPU), KERNEL.space(TYPE).defaults | {"FakeFault": fault}
    (module,) = KERNEL.modules(config, TYPE)
    return device, [device.load(FakeToolchain().compile(module, GPU))], KERNEL.plan(config, size, GPU)


@pytest.mark.parametrize(
    ("judge", "fault", "k"),
    covering([fault for fault in REASONS if fault != "swap operands"], [1, 2, 7, 64, 1000, 4096]),
    indirect=["judge"],
)
def test_every_mutant_is_caught_at_every_k(found, fault, k):
    wrong = found(problem(33, 17, k), fault)
    assert wrong is not None
    assert wrong.reason == REASONS[fault]


@pytest.mark.parametrize("k", [2, 7, 64, 300])
def test_swapped_operands_are_caught(found, k):
    """Operands can only be swapped in square problems; 1 x 1 matrices commute."""
    wrong = found(problem(k, k, k), "swap operands")
    assert wrong is not None
    assert wrong.reason == "wrong value"


LAYOUTS = [*product((1, 2, 7, 64, 1000, 4096), ((), (40, 41, 42, 43))), (7, (40, 41, 42, 4099))]


@pytest.mark.parametrize(("judge", "layout", "beta"), covering(LAYOUTS, [0.0, 0.5]), indirect=["judge"])
def test_a_right_program_passes_whatever_the_sizes_and_strides(found, layout, beta):
    k, leading = layout
    for check in OPERATION.checks(problem(33, 17, k, beta, leading)):
        assert found(check) is None


def test_an_element_written_between_rows_is_seen(found):
    wrong = found(problem(33, 17, 8, leading=(40, 40, 40, 40)), "write between rows")
    assert wrong is not None
    assert wrong.reason == "wrote outside the output"
    assert "between its rows" in wrong.detail


@pytest.mark.parametrize("byte", range(4))
def test_a_single_byte_written_between_rows_is_seen(verify, byte):
    operand = Operand("D", "float32", (3, 2), (1, 4), "out")

    def act(operands):
        logical(operand, operands["D"].bytes.view(np.float32))[...] = 0
        operands["D"].bytes[12 + byte] ^= 1

    wrong = verify(Doing(act), [], Plan(()), VerificationCase((operand,), {}, {}))
    assert wrong is not None
    assert wrong.detail == "D: storage element 3, between its rows; 1 of these"


@pytest.mark.parametrize("name", ["X", "D"])
@pytest.mark.parametrize(
    ("offset", "where"),
    [(-4, "1 elements before the first"), (-12, "3 elements before the first"), (20, "1 elements behind the last"),
     (36, "5 elements behind the last")],
)  # fmt: skip
def test_a_write_outside_an_input_or_output_of_five_elements_is_told_by_its_distance(verify, name, offset, where):
    operands = (Operand("X", "float32", (5,), (1,), "in"), Operand("D", "float32", (5,), (1,), "out"))
    case = VerificationCase(operands, {"X": np.ones(5, np.float32)}, {})

    def act(operands):
        operands["D"].bytes[:20] = 0
        first = operands[name].start + offset
        operands[name].base[first : first + 4] = 1

    wrong = verify(Doing(act), [], Plan(()), case)
    assert wrong is not None
    assert (wrong.reason, wrong.detail) == ("wrote outside the output", f"{name}: {where}")


@pytest.mark.parametrize("name", ["X", "D", "workspace"])
@pytest.mark.parametrize("byte", [0, -1])
def test_the_outermost_bytes_around_each_memory_are_watched(verify, name, byte):
    operands = (Operand("X", "float32", (5,), (1,), "in"), Operand("D", "float32", (5,), (1,), "out"))
    case = VerificationCase(operands, {"X": np.ones(5, np.float32)}, {})

    def act(operands):
        operands["D"].bytes[:20] = 0
        region = Region.of(name, "float32", operands[name].size, 64)
        first = operands[name].start - region.start
        operands[name].base[first : first + region.length][byte] ^= 1

    wrong = verify(Doing(act), [], Plan((), workspace_bytes=24), case)
    assert wrong is not None
    assert (wrong.reason, wrong.detail.partition(":")[0]) == ("wrote outside the output", name)


@pytest.mark.parametrize(("offset", "where"), [(-3, "3 elements before the first"), (26, "3 elements behind the last")])
def test_a_write_outside_the_workspace_is_told_in_bytes(verify, offset, where):
    operand = Operand("D", "float32", (5,), (1,), "out")

    def act(operands):
        operands["D"].bytes[:20] = 0
        operands["workspace"].base[operands["workspace"].start + offset] ^= 1

    wrong = verify(Doing(act), [], Plan((), workspace_bytes=24), VerificationCase((operand,), {}, {}))
    assert wrong is not None
    assert wrong.detail == f"workspace: {where}"


@pytest.mark.parametrize("shape", [(1, 4), (4, 1), (1, 1)])
def test_an_output_with_an_axis_of_one_element_is_compared_and_an_empty_one_need_not_be(verify, shape):
    operand = Operand("D", "float32", shape, (1, shape[0]), "out")
    nothing = Operand("E", "float32", (0, 4), (1, 1), "out")
    expected = {"D": Expected((...,), np.ones(shape), np.ones(shape) / 4)}
    expected["E"] = Expected((...,), np.ones((0, 4)), np.ones((0, 4)))

    def writing(value):
        def act(operands):
            operands["D"].bytes.view(np.float32)[: operand.storage_elements] = value

        return Doing(act)

    case = VerificationCase((operand, nothing), {}, expected)
    assert verify(writing(1.25), [], Plan(()), case) is None, "the bound is reached"
    assert verify(writing(1.26), [], Plan(()), case).reason == "wrong value"


@pytest.mark.parametrize("name", ["A", "B", "C"])
def test_a_result_that_depends_on_what_lies_between_the_rows_of_an_input_is_caught(verify, name):
    """A kernel may not mask elements that it loads beyond a row by multiplying with zero, since they may be NaN."""
    size = problem(33, 17, 8, beta=0.5, leading=(40, 41, 42, 19))
    device, programs, plan = fake_program(size, "none")
    case = Cases(0).get(size)
    (operand,) = (operand for operand in case.operands if operand.name == name)
    gap = 4 * np.flatnonzero(padding_mask(operand))[0]

    class Reading(FakeDevice):
        def prepare(self, plan, programs, operands, workspace):
            prepared = super().prepare(plan, programs, operands, workspace)
            right = prepared.execute

            def execute():
                right()
                between = operands[name].bytes[gap : gap + 4].view(np.float32)
                operands["D"].bytes[:4].view(np.float32)[...] += 0 * between

            prepared.execute = execute
            return prepared

    assert verify(device, programs, plan, case) is None
    wrong = verify(Reading(GPU), programs, plan, case)
    assert wrong is not None
    assert (wrong.reason, "D[0, 0]" in wrong.detail) == ("wrong value", True)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16", "float32", "float64"])
def test_what_lies_between_the_rows_of_an_input_is_nan_in_every_type(dtype):
    import ml_dtypes

    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    operand = Operand("A", dtype, (3, 4), (1, 5), "in")
    content = (
        VerificationCase((operand,), {"A": np.ones(operand.storage_elements, kind)}, {}).content(operand).view(kind)
    )
    assert np.isnan(content.astype(float)).nonzero()[0].tolist() == [3, 4, 8, 9, 13, 14]


def test_the_detail_names_the_element_what_was_there_and_what_should_have_been(found):
    wrong = found(problem(33, 17, 8), "wrong value")
    assert wrong is not None
    assert "D[32, 0]" in wrong.detail
    assert "expected" in wrong.detail
    assert "1 of 561" in wrong.detail


def test_the_unwritten_element_is_found_outside_the_sampled_rows_too(verify):
    size = problem(33, 17, 8)
    whole = Cases(0).get(size)
    where = np.ix_([0, 3], [0, 2])
    sampled = {name: Expected(where, e.value[where], e.bound[where]) for name, e in whole.expected.items()}
    device, programs, plan = fake_program(size, "unwritten element")
    wrong = verify(device, programs, plan, VerificationCase(whole.operands, whole.inputs, sampled))
    assert wrong is not None
    assert wrong.reason == "unwritten element"
    assert "D[32, 16]" in wrong.detail


def test_a_wrong_sampled_element_is_named_by_its_place_in_the_whole_array(verify):
    operand = Operand("D", "float32", (4, 4), (1, 4), "out")
    expected = Expected(np.ix_([0, 3], [1, 2]), np.ones((2, 2)), np.full((2, 2), 0.1))
    wrong = verify(ZeroDevice(GPU), [], zeroed(operand), VerificationCase((operand,), {}, {"D": expected}))
    assert wrong is not None
    assert wrong.detail.startswith("D[0, 1] is 0, expected 1")


def zeroed(operand, first=0, last=None):
    """A plan that writes zero to the elements `first` to `last` - 1 of an operand."""
    size = np.dtype(operand.dtype).itemsize
    end = operand.storage_elements if last is None else last
    return Plan((Zero(operand.name, first * size, (end - first) * size),))


class ZeroDevice(FakeDevice):
    """Carries out the Zero and Write steps of a plan, which need no program."""

    def prepare(self, plan, programs, operands, workspace):
        assert not any(isinstance(step, Launch) for step in plan.steps)

        class Zeroing:
            def enqueue(self):
                for step in plan.steps:
                    is_zero = isinstance(step, Zero)
                    memory = operands[step.operand] if is_zero and step.operand else workspace
                    content = np.zeros(step.size, np.uint8) if is_zero else np.frombuffer(step.data, np.uint8)
                    memory.base[memory.start + step.offset :][: content.size] = content

        return Zeroing()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int32", "uint64"])
def test_an_unwritten_element_is_found_in_every_type(verify, dtype):
    operand = Operand("D", dtype, (300,), (1,), "out")
    expected = {"D": Expected((slice(0, 0),), np.zeros(0), np.zeros(0))}
    case = VerificationCase((operand,), {}, expected)
    assert verify(ZeroDevice(GPU), [], zeroed(operand), case) is None
    wrong = verify(ZeroDevice(GPU), [], zeroed(operand, last=299), case)
    assert wrong is not None
    assert (wrong.reason, "D[299]" in wrong.detail) == ("unwritten element", True)


def test_a_whole_number_that_looks_like_the_poison_counts_as_written(verify):
    """An 8-bit type has 256 values, so a right output may contain the poison's value."""

    class Copying(ZeroDevice):
        def prepare(self, plan, programs, operands, workspace):
            class Copy:
                def enqueue(self):
                    operands["D"].bytes[:256] = np.arange(256, dtype=np.uint8)

            return Copy()

    operand = Operand("D", "uint8", (256,), (1,), "out")
    expected = {"D": Expected((...,), np.arange(256.0), np.zeros(256))}
    assert verify(Copying(GPU), [], Plan(()), VerificationCase((operand,), {}, expected)) is None


@pytest.mark.parametrize(("dtype", "value"), [("int64", -(2**53) - 1), ("int64", 2**63 - 1), ("uint64", 2**64 - 1)])
def test_whole_numbers_that_float64_cannot_tell_apart_are_told_apart(verify, dtype, value):
    """Each value and its neighbour are the same float64."""

    class Writing(ZeroDevice):
        written = value

        def prepare(self, plan, programs, operands, workspace):
            content = np.full(4, self.written, dtype).view(np.uint8)
            return SimpleNamespace(enqueue=lambda: np.copyto(operands["D"].bytes, content))

    operand = Operand("D", dtype, (4,), (1,), "out")
    case = VerificationCase((operand,), {}, {"D": Expected((...,), np.full(4, value, dtype), np.zeros(4))})
    device = Writing(GPU)
    assert verify(device, [], Plan(()), case) is None
    device.written = value - 1 if value > 0 else value + 1
    assert float(device.written) == float(value)
    wrong = verify(device, [], Plan(()), case)
    assert wrong is not None
    assert wrong.detail == f"D[0] is {device.written}, expected {value}; 4 of 4 elements wrong"


def test_a_plan_that_writes_past_its_workspace_is_caught(verify):
    operand = Operand("D", "float32", (8,), (1,), "out")
    case = VerificationCase((operand,), {}, {})
    honest = Plan((*zeroed(operand).steps, Zero("", 0, 256)), workspace_bytes=256)
    scribbling = Plan((*zeroed(operand).steps, Zero("", 0, 260)), workspace_bytes=256)
    assert verify(ZeroDevice(GPU), [], honest, case) is None
    wrong = verify(ZeroDevice(GPU), [], scribbling, case)
    assert wrong is not None
    assert wrong.reason == "wrote outside the output"
    assert "workspace" in wrong.detail


def test_a_plan_that_does_not_leave_the_zeros_that_it_found_is_caught(verify):
    """The next execution would find the remains. Before the first execution, the workspace is full of garbage."""
    operand = Operand("D", "float32", (8,), (1,), "out")
    case = VerificationCase((operand,), {}, {})
    honest = Plan(zeroed(operand).steps, 256, zeroed=16)
    raising = Plan((*zeroed(operand).steps, Write(8, b"\1")), 256, zeroed=16)
    assert verify(ZeroDevice(GPU), [], honest, case) is None
    wrong = verify(ZeroDevice(GPU), [], raising, case)
    assert wrong is not None
    assert (wrong.reason, wrong.detail) == ("left no zeros", "byte 8 of the workspace is 1")


def test_nan_is_never_right(verify):
    operand = Operand("D", "float32", (4,), (1,), "out")
    nan = {"D": Expected((...,), np.full(4, np.nan), np.full(4, np.inf))}
    assert verify(ZeroDevice(GPU), [], zeroed(operand), VerificationCase((operand,), {}, nan)).reason == "wrong value"


def test_the_logical_view_follows_the_strides():
    operand = Operand("A", "float32", (2, 3), (1, 4), "in")
    assert logical(operand, np.arange(10.0)).tolist() == [[0, 4, 8], [1, 5, 9]]


def test_the_kernel_can_ask_for_every_fault_that_device_and_compiler_know():
    assert sorted(KERNEL_FAULTS) == sorted(["none", *FAULTS, *COMPILE_FAULTS])


@pytest.mark.parametrize(
    ("index", "where"),
    [(60, "1 elements before the first"), (56, "2 elements before the first"), (164, "1 elements behind the last"),
     (171, "2 elements behind the last")],
)  # fmt: skip
def test_a_write_outside_is_told_by_its_distance_from_the_output(index, where):
    """The output lies in bytes 64 to 163, of which each element has four."""
    defect = run_inspection._outside(Region("D", "<f4", 64, 100), 4, index)
    assert defect.detail == f"D: {where}"


def test_whatever_is_written_from_the_start_of_an_empty_output_lies_behind_it():
    for index, where in ((60, "1 elements before the first"), (64, "1 elements behind the last")):
        assert run_inspection._outside(Region("D", "<f4", 64, 0), 4, index).detail == f"D: {where}"
