"""`Library.launch`: any operation on arrays by operand name, on the host or a GPU, and the calls that it refuses."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tunesmith
from described import EXAMPLES, STENCIL, edited, type_of
from gpu_fakes import WORKSPACE, Rig, at
from gpu_fakes import logic as gpu_logic
from library_fakes import DEVICES, ORIGIN, TARGET, close, library, logic, normal
from opencl_runner import opencl_device
from random_reference import OnGpu
from tunesmith.kernels import KERNELS
from tunesmith.kernels.random import OpenCLRandom
from tunesmith.library import DeviceAbsentError, LaunchRecord, Library
from tunesmith.library.logic_check_process import mistakes_in
from tunesmith.logic import Document, Logic, NamedSolution, Origin, SizeRow, write_logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.random import random_type
from tunesmith.records import Estimate, Solution, UserError

NN = gemm_type(transpose_b=False)
BATCHED = gemm_type(transpose_b=False, batched=True)


@pytest.fixture
def rig(monkeypatch):
    monkeypatch.setattr("tunesmith.devices.cuda.device.ordinal_of", lambda address: 0)
    return Rig(monkeypatch)


def columns(*shape):
    """A column-major array, as a GEMM's operands are; the batch is the last axis."""
    return np.asfortranarray(normal(*shape))


# --- on the fake device: a GEMM by its operands' names ----------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_sizes_come_from_shapes_and_an_output_is_made(device):
    a, b, c = columns(6, 5), columns(5, 7), columns(6, 7)
    launched_records: list[LaunchRecord] = []
    with library(logic(NN), device=device(TARGET), launched=launched_records.append) as lib:
        for what in (NN, NN.name, "GEMM"):
            found = lib.launch(what, A=a, B=b)
            close(found, a @ b)
        close(lib.launch(NN, A=a, B=b, C=c, alpha=2, beta=-0.5), 2 * (a @ b) - 0.5 * c)
        close(lib.launch(NN, {"A": a, "B": b, "C": c}, scalars={"beta": np.float32(3)}), a @ b + 3 * c)
    assert {record.problem.sizes for record in launched_records} == {(6, 7, 5)}
    assert launched_records[-1].problem.scalars["beta"] == 3.0


@pytest.mark.parametrize("device", DEVICES)
def test_an_output_that_is_given_is_filled_and_returned(device):
    a, b, out = columns(6, 5, 3), columns(5, 7, 3), columns(6, 7, 3)
    with library(logic(BATCHED), device=device(TARGET)) as lib:
        assert lib.launch(BATCHED, A=a, B=b, D=out) is out
    close(out, np.einsum("mkb,knb->mnb", a, b))


def test_what_select_says_is_launched():
    configs = [{"LoopUnroll": 4}, {"LoopUnroll": 8}]
    launched_records: list[LaunchRecord] = []
    with library(logic(NN, configs, {(8, 8, 8): 0, (64, 64, 64): 1}), launched=launched_records.append) as lib:
        for size in (8, 64, 40):
            lib.launch(NN, A=columns(size, size), B=columns(size, size))
            assert launched_records[-1].choice == lib.select(size, size, size)


def test_a_layout_is_chosen_and_bound_once(monkeypatch):
    a, b = columns(6, 5), columns(5, 7)
    with library(logic(NN)) as lib:
        lib.launch(NN, A=a, B=b)
        monkeypatch.setattr("tunesmith.library.launch._launcher.Launcher.ready", None)
        close(lib.launch(NN, A=a + 1, B=b), (a + 1) @ b)


class TestRefusals:
    """A call is refused with a clear message before anything is launched."""

    def refused(self, error, says, what=NN, **arguments):
        launched_records: list[LaunchRecord] = []
        with library(logic(NN), launched=launched_records.append) as lib, pytest.raises(error, match=says):
            lib.launch(what, **arguments)
        assert launched_records == []

    def test_names(self):
        a, b = columns(6, 5), columns(5, 7)
        self.refused(TypeError, "no operand 'E'; there are A, B, C, D", A=a, B=b, E=a)
        self.refused(TypeError, "B is missing", A=a, D=columns(6, 7))
        self.refused(TypeError, "C is missing", A=a, B=b, beta=2.0)
        self.refused(TypeError, "no scalar 'gamma'; there are alpha, beta", A=a, B=b, scalars={"gamma": 1})
        self.refused(TypeError, "no size 'L'; there are M, N, K", A=a, B=b, sizes={"L": 2})
        self.refused(ValueError, "name one problem type of Cij.*, not 'stencil5'", "stencil5", A=a, B=b)

    def test_shapes(self):
        a, b = columns(6, 5), columns(5, 7)
        self.refused(ValueError, r"no shape tells N .*A \[M, K\].*sizes=\{'N'", A=a)
        self.refused(ValueError, r"B has shape \(4, 7\);.* M=6, N=7, K=5 asks for \(5, 7\)", A=a, B=columns(4, 7))
        self.refused(ValueError, "A has shape", A=a, B=b, sizes={"M": 9})
        self.refused(ValueError, "M is 0; there is nothing", A=columns(0, 5), B=b)
        for wrong in (-4, 2.5, "4", True):
            self.refused(ValueError, "M is .*; give a whole number from 1 on", A=a, B=b, sizes={"M": wrong})

    def test_strides_and_addresses(self):
        a, b = columns(6, 5), columns(5, 7)
        self.refused(
            ValueError, r"A has strides \(20, 4\).*takes \(4, 24\): give a contiguous copy", A=normal(6, 5), B=b
        )
        self.refused(ValueError, "A has strides", A=columns(12, 5)[::2], B=b)
        odd = np.zeros(121, np.uint8)[1:].view(np.float32).reshape(6, 5, order="F")
        self.refused(ValueError, "A lies at an address", A=odd, B=b)
        backwards = columns(6, 5)[::-1]
        self.refused(ValueError, "A has strides", A=backwards, B=b)
        assert a.flags.f_contiguous

    def test_data_types(self):
        a, b = columns(6, 5), columns(5, 7)
        self.refused(TypeError, "A is float64; Cij.* takes float32", A=a.astype(float), B=b)
        self.refused(TypeError, "A is float32 in another byte order", A=a.astype(a.dtype.newbyteorder("S")), B=b)

    def test_outputs(self):
        a, b, out = columns(6, 5), columns(5, 7), columns(6, 7)
        out.flags.writeable = False
        self.refused(ValueError, "D must not be written", A=a, B=b, D=out)
        whole = normal(60)
        a, out = whole[:30].reshape(6, 5, order="F"), whole[10:52].reshape(6, 7, order="F")
        self.refused(ValueError, "A shares memory with D", A=a, B=b, D=out)
        self.refused(TypeError, "B is a masked array", A=columns(6, 5), B=np.ma.masked_less(b, 0.0))

    def test_devices(self):
        a, b = columns(6, 5), columns(5, 7)
        interface = {"shape": (5, 7), "typestr": "<f4", "data": (64, False), "version": 3}
        on_gpu = type("Array", (), {"__cuda_array_interface__": interface})()
        self.refused(ValueError, "B lies on a GPU, A on the host", A=a, B=on_gpu)
        self.refused(ValueError, "stream goes with memory of a GPU", A=a, B=b, stream=3)


# --- of several logics ------------------------------------------------------------------------------------------------


def test_a_logic_that_cannot_be_used_sinks_alone(tmp_path):
    write_logic(logic(NN).document, tmp_path / "nn.yaml")
    stranger = NamedSolution("S0", replace(logic(BATCHED).document.solutions[0].solution, kernel="StrangeGemm"))
    write_logic(replace(logic(BATCHED).document, solutions=(stranger,)), tmp_path / "strange.yaml")
    with pytest.warns(UserWarning, match=r"strange\.yaml.*StrangeGemm.*left out"):
        lib = tunesmith.load(tmp_path)
    a, b = columns(6, 5), columns(5, 7)
    close(lib.launch(NN, A=a, B=b), a @ b)
    with pytest.raises(ValueError, match=r"name one problem type.*left out: .*strange\.yaml.*StrangeGemm"):
        lib.launch(BATCHED, A=a, B=b)
    with pytest.raises(UserError, match=r"float64.*left out: .*StrangeGemm"):
        lib.matmul(a.astype(float), b.astype(float))


def test_a_logic_of_another_device_is_named_when_it_is_asked_for(tmp_path):
    write_logic(logic(NN).document, tmp_path / "nn.yaml")
    elsewhere = replace(logic(gemm_type("d")).document, origin=replace(ORIGIN, device="another device"))
    write_logic(elsewhere, tmp_path / "d.yaml")
    lib = tunesmith.load(tmp_path)
    a, b = columns(6, 5), columns(5, 7)
    close(lib.launch(NN, A=a, B=b), a @ b)
    for call in (
        lambda: lib.launch(gemm_type("d"), A=a, B=b),
        lambda: lib.matmul(a.astype(float), b.astype(float)),
        lambda: lib.select(8, 8, 8, problem_type=gemm_type("d").name),
    ):
        with pytest.raises(DeviceAbsentError, match=r"was made on another device .*the library works on fake CPU"):
            call()


# --- on a GPU that is not there ---------------------------------------------------------------------------------------


def test_torch_tensors_go_on_torchs_current_stream_in_their_memory(rig):
    lib = rig.library(gpu_logic(NN, {"Workspace": WORKSPACE}))
    a, b = (rig.on_gpu(rig.torch.from_numpy(normal(*shape)).mT) for shape in ((5, 6), (7, 5)))
    for rig.stream in (7, 8):
        found = lib.launch(NN, A=a, B=b)
        assert isinstance(found, rig.torch.Tensor)
        close(found.numpy(), a.numpy() @ b.numpy())
    assert [entry[1] for entry in rig.device.launches] == [7, 8]
    assert [entry for entry in rig.device.log if entry[0] == "wait"] == []
    with pytest.raises(ValueError, match="current stream"):
        lib.launch(NN, A=a, B=b, stream=3)
    with pytest.raises(ValueError, match="B lies on meta, A on cpu"):
        lib.launch(NN, A=a, B=b.to("meta"))
    with pytest.raises(TypeError, match="B is a ndarray; A is a tensor"):
        lib.launch(NN, A=a, B=b.numpy())
    lib.close()


def test_a_call_that_was_made_before_can_be_captured(rig):
    lib = rig.library(gpu_logic(NN, {"Workspace": WORKSPACE}))
    a, b = (rig.on_gpu(rig.torch.from_numpy(normal(*shape)).mT) for shape in ((5, 6), (7, 5)))
    rig.device.captured = {rig.stream}
    with pytest.raises(UserError, match="captured into a graph"):
        lib.launch(NN, A=a, B=b)
    rig.device.captured = set()
    lib.launch(NN, A=a, B=b)
    rig.device.captured = {rig.stream}
    close(lib.launch(NN, A=a, B=b).numpy(), a.numpy() @ b.numpy())
    first, captured = rig.device.launches
    assert captured[3] not in (0, first[3]), "the graph has a workspace of its own"
    assert (first[4], captured[4]) == (True, False)
    lib.close()


def test_other_libraries_arrays_go_on_the_stream_that_is_given(rig):
    lib = rig.library(gpu_logic(NN))
    a, b, out = columns(6, 5), columns(5, 7), np.zeros((6, 7), np.float32, order="F")
    lent = {name: OnGpu(x, strides=x.strides) for name, x in {"A": a, "B": b, "D": out}.items()}
    assert lib.launch(NN, **lent, stream=9) is lent["D"]
    close(out, a @ b)
    assert rig.device.launches[0][1] == 9
    with pytest.raises(ValueError, match="give D: arrays like A cannot be made here"):
        lib.launch(NN, A=lent["A"], B=lent["B"])
    with pytest.raises(ValueError, match="B lies on the host, A on a GPU"):
        lib.launch(NN, A=lent["A"], B=np.from_dlpack(b), D=lent["D"])


def test_an_address_that_a_solution_cannot_take_goes_to_one_that_can(rig):
    launched_records: list[LaunchRecord] = []
    lib = rig.library(gpu_logic(NN, {"Maps": True}, {}), launched=launched_records.append)
    whole, b = np.zeros(31, np.float32), columns(5, 7)
    for start in (0, 1):
        a = whole[start : start + 30].reshape(6, 5, order="F")
        out = np.zeros((6, 7), np.float32, order="F")
        lib.launch(NN, **{name: OnGpu(x, strides=x.strides) for name, x in {"A": a, "B": b, "D": out}.items()})
    aligned = [0, 1] if whole.ctypes.data % 16 == 0 else [1, 1]
    assert [int(record.choice.name[1]) for record in launched_records] == aligned
    assert at(whole.ctypes.data, 1, "float32")[0] == 0.0


# --- on PoCL: a kernel of the user's own, and random numbers ----------------------------------------------------------


def tuned(kind, kernel, sizes, **changes):
    """A logic in which a configuration won at these sizes on this machine's OpenCL device."""
    family, target = KERNELS[kernel], opencl_device().target
    origin = Origin.of(target, "its own", "0.1.0", "2026-11-22T12:00:00Z")
    solution = Solution(kind, kernel, family.space(kind).defaults | changes)
    row = SizeRow(sizes, (), 0, Estimate(1e-3, 1e-3, 1e-3, 7), 1.0)
    return Document(origin, kind, (NamedSolution("S0", solution),), (row,), 0)


def stencil(path=EXAMPLES / STENCIL, **changes):
    return tuned(type_of(path), "Custom", (64, 64), **changes)


def opened(document, **named):
    return Library([(Path("logic.yaml"), Logic(document))], device=opencl_device(), **named)


def five_points(x):
    padded = np.pad(x.astype(float), 1)
    around = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return 0.5 * x + 0.125 * around


@pytest.mark.opencl
def test_a_kernel_of_the_users_own_is_launched_by_its_name_on_numpys_arrays():
    launched_records: list[LaunchRecord] = []
    with opened(stencil(ITEM_X=2, STAGED=1), launched=launched_records.append) as lib:
        for shape in ((64, 64), (37, 91), (1, 1)):
            x, out = normal(*shape), np.full(shape, np.nan, np.float32)
            close(lib.launch("stencil5", input=x), five_points(x))
            assert lib.launch("Custom", input=x, output=out) is out
            close(out, five_points(x))
    assert launched_records[2].problem.sizes == (37, 91)
    assert launched_records[2].solution.configuration["ITEM_X"] == 2


@pytest.mark.opencl
def test_a_kernel_of_the_users_own_takes_torchs_tensors_and_dlpack():
    torch = pytest.importorskip("torch")
    x, out = torch.randn(20, 30), torch.zeros(20, 30)
    with opened(stencil()) as lib:
        found = lib.launch("stencil5", input=x)
        assert isinstance(found, torch.Tensor)
        close(found.numpy(), five_points(x.numpy()))
        assert lib.launch("stencil5", input=x, output=out) is out
        close(out.numpy(), five_points(x.numpy()))
        with pytest.raises(UserError, match="no gradient"):
            lib.launch("stencil5", input=torch.ones(3, 3, requires_grad=True))
        lent = type("Lent", (), {"__dlpack__": lambda self, **o: x.numpy().__dlpack__(**o)})()
        lent.__class__.__dlpack_device__ = lambda self: (1, 0)
        close(lib.launch("stencil5", input=lent), five_points(x.numpy()))


@pytest.mark.opencl
@pytest.mark.parametrize(
    ("operands", "error", "says"),
    [
        ({"input": np.zeros((4, 5))}, TypeError, "input is float64; stencil5 takes float32"),
        ({"input": np.zeros(5, np.float32)}, ValueError, "no shape tells Columns"),
        ({"input": np.zeros((4, 5, 6), np.float32)}, ValueError, r"asks for \(4, 5\)"),
        ({"input": np.zeros((4, 10), np.float32)[:, ::2]}, ValueError, "input has strides.*contiguous copy"),
        ({"output": np.zeros((4, 5), np.float32)}, TypeError, "input is missing: stencil5 reads it"),
        ({}, ValueError, r"no shape tells Rows and Columns .*input \[Rows, Columns\]"),
        ({"input": np.zeros((4, 5), np.float32), "inptu": np.zeros(3)}, TypeError, "no operand 'inptu'"),
        (
            {"input": np.zeros((4, 5), np.float32), "output": np.zeros((5, 4), np.float32)},
            ValueError,
            r"output has shape \(5, 4\); stencil5 of Rows=4, Columns=5",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_kernel_of_the_users_own_is_refused(operands, error, says):
    with opened(stencil()) as lib, pytest.raises(error, match=says):
        lib.launch("stencil5", operands)


@pytest.mark.opencl
def test_an_array_that_is_read_and_written_and_sizes_that_no_array_tells(copied):
    """`input` is read and written, and the caller has to give a size."""
    edited(copied, "Role: in}", "Role: inout}")
    edited(copied, "Shape: [Rows, Columns], Role: inout", "Shape: [Rows * 1, Columns], Role: inout")
    edited(copied, "Shape: [Rows, Columns], Role: out", "Shape: [Rows + 0, Columns], Role: out")
    x = normal(8, 9)
    before = x.copy()
    with opened(stencil(copied)) as lib:
        with pytest.raises(ValueError, match=r"no shape tells Rows .*input \[, Columns\]|sizes=\{'Rows'"):
            lib.launch("stencil5", input=x)
        found = lib.launch("stencil5", input=x, sizes={"Rows": 8})
        assert set(found) == {"input", "output"}
        assert found["input"] is x
        close(found["output"], five_points(before))
        with pytest.raises(ValueError, match="asks for"):
            lib.launch("stencil5", input=x, sizes={"Rows": 7})


@pytest.mark.opencl
def test_random_numbers_are_launched_by_their_logic():
    kind = random_type("philox4_32_10", "normal", "float")
    out = np.full(1000, np.nan, np.float32)
    with opened(tuned(kind, OpenCLRandom.name, (1000,))) as lib:
        lib.launch(kind.name, Out=out, seed=7, mean=3.0)
        made = lib.launch("Random", sizes={"N": 1000}, seed=7, mean=3.0)
    np.testing.assert_array_equal(made, out)
    assert abs(out.mean() - 3) < 0.2
    assert not np.isnan(out).any()


@pytest.mark.opencl
@pytest.mark.parametrize("broken", [False, True])
def test_the_written_logic_of_a_kernel_of_the_users_own_is_checked_by_launching(copied, tmp_path, broken):
    if broken:
        edited(copied.parent / "custom_stencil.cl", "(1.0f - centre) * 0.25f", "(1.0f - centre) * 0.5f")
    path = tmp_path / "stencil5.yaml"
    write_logic(stencil(copied), path)
    warned = list(mistakes_in(path))
    assert warned == (["stencil5.yaml: at 64x64 the library's launch of S0 gives a wrong result"] if broken else [])


@pytest.mark.opencl
@pytest.mark.parametrize("generator", ["philox4_32_10", "xorwow", "sobol32"])
def test_the_written_logic_of_a_generator_is_checked_by_launching(tmp_path, generator):
    """This also holds if the sequence depends on the launch shape that won."""
    kind = random_type(generator, "uniform", "float", dynamic=True)
    path = tmp_path / "random.yaml"
    write_logic(tuned(kind, OpenCLRandom.name, (5000, 2)[: len(kind.indices)], BlockSize=64, GridSize=2), path)
    assert list(mistakes_in(path)) == []


LAUNCHES = """
import sys, numpy as np, tunesmith, tunesmith.toolchains
from tunesmith.toolchains.opencl import OpenCLToolchain
compiled = []
whole = OpenCLToolchain.compile
OpenCLToolchain.compile = lambda self, *given: compiled.append(1) or whole(self, *given)
x = np.ones((20, 30), np.float32)
with tunesmith.load(sys.argv[1]) as library:
    assert library.launch("stencil5", input=x)[5, 5] == 1.0
print(len(compiled))
"""


@pytest.mark.opencl
@pytest.mark.slow
def test_the_second_process_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("TUNESMITH_CACHE", str(tmp_path / "cache"))
    write_logic(stencil(), tmp_path / "logic" / "stencil5.yaml")
    command = [sys.executable, "-c", LAUNCHES, str(tmp_path / "logic")]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert found == ["1\n", "0\n"]
