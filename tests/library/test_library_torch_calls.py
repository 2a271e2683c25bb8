"""`matmul` of torch tensors on a simulated GPU: types, epilogues, streams, graphs, and refused calls."""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpu_fakes import WORKSPACE, HostGpu, Rig, at, close, every_type, expected, logic, numbers, product
from library_fakes import TARGET
from tunesmith.library import Library
from tunesmith.logic import Logic
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import ZEROED_HEAD, UserError

NN, TN = gemm_type(transpose_b=False), gemm_type(transpose_a=True, transpose_b=False)


@pytest.fixture
def rig(monkeypatch):
    return Rig(monkeypatch)


# --- what is computed -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_each_data_type_goes_to_its_own_logic(rig, dtype):
    letter = {"float16": "h", "bfloat16": "b", "float64": "d"}[dtype]
    lib = rig.library(*every_type("s"), *every_type(letter))
    a, b = rig.normal(6, 5, dtype=dtype), rig.normal(5, 7, dtype=dtype)
    found = lib.matmul(a, b)
    assert str(found.dtype) == f"torch.{dtype}"
    close(found, product(a, b), 2e-2)
    assert {problem.type.fields["DataType"] for problem in rig.device.problems} == {letter}


def test_a_wider_result_is_asked_for_by_its_type_or_by_out(rig):
    lib = rig.library(*every_type("b"), *every_type("b", dest="s"))
    a, b = rig.normal(6, 5, dtype="bfloat16"), rig.normal(5, 7, dtype="bfloat16")
    for asked in (rig.torch.float32, np.float32, "float32"):
        close(lib.matmul(a, b, out_dtype=asked), product(a, b))
    close(lib.matmul(a, b, out=rig.on_gpu(rig.torch.empty(6, 7))), product(a, b))
    with pytest.raises(TypeError, match="bfloat16 or float32"):
        lib.matmul(a, b, out_dtype="float16")


@pytest.mark.parametrize(("known", "asked"), [("TN", ("TN", 7, 1)), ("NN", ("NN", 1, 7)), ("", ("TN", 7, 1))])
def test_a_vector_is_read_as_the_logic_knows_it_else_in_rows(rig, known, asked):
    """x w' for one token: the result is contiguous as a row and as a column, so two matches fit."""
    types = {
        letters: gemm_type(transpose_a=letters[0] == "T", transpose_b=letters[1] == "T") for letters in ("NN", "TN")
    }
    sizes = {"TN": (7, 1, 5), "NN": (1, 7, 5)}  # M and N are 7 and 1, or 1 and 7
    lib = rig.library(*(logic(kind, sizes=sizes[at] if at == known else ()) for at, kind in types.items()))
    a, b = rig.normal(1, 5), rig.normal(7, 5).t()
    close(lib.matmul(a, b), product(a, b))
    (problem,) = rig.device.problems
    assert problem.type == types[asked[0]]
    assert problem.sizes[:2] == asked[1:]


def test_a_vector_is_read_in_rows_even_if_another_reading_was_measured_nearer(rig):
    """The vendor's library is called as the arrays lie, so what was measured of it must be of that call."""
    rows, columns = (gemm_type(transpose_a=turned, transpose_b=False) for turned in (True, False))
    lib = rig.library(logic(rows, sizes=(900, 1, 5)), logic(columns, sizes=(1, 8, 5)))
    a, b = rig.normal(1, 5), rig.normal(7, 5).t()
    close(lib.matmul(a, b), product(a, b))
    (problem,) = rig.device.problems
    assert (problem.type, problem.sizes[:2]) == (rows, (7, 1))


def test_a_logic_without_measurements_reads_no_vector_that_another_logic_has_measured(rig):
    columns, rows = (gemm_type(transpose_a=turned, transpose_b=False) for turned in (False, True))
    unmeasured = Logic(replace(logic(rows).document, rows=()))
    lib = rig.library(unmeasured, logic(columns, sizes=(1, 7, 5)))
    a, b = rig.normal(1, 5), rig.normal(7, 5).t()
    close(lib.matmul(a, b), product(a, b))
    (problem,) = rig.device.problems
    assert (problem.type, problem.sizes[:2]) == (columns, (1, 7))


def test_integers_make_wider_integers(rig):
    lib = rig.library(*every_type("i8"))
    a, b = (rig.on_gpu(rig.torch.arange(-12, 12, dtype=rig.torch.int8).view(shape)) for shape in ((4, 6), (6, 4)))
    found = lib.matmul(a, b, alpha=3)
    assert found.dtype == rig.torch.int32
    assert (numbers(found) == 3 * product(a, b)).all()
    with pytest.raises(ValueError, match=r"alpha is 0\.5"):
        lib.matmul(a, b, alpha=0.5)


def test_tf32_is_used_where_torch_may_use_it(rig, monkeypatch):
    lib = rig.library(*every_type(), *every_type(tf32=True))
    a, b = rig.normal(6, 5), rig.normal(5, 7)
    for precision in ("highest", "high"):
        monkeypatch.setattr(rig.torch, "get_float32_matmul_precision", lambda warned=precision: warned)
        lib.matmul(a, b)
    assert ["F32XdlMathOp" in problem.type.fields for problem in rig.device.problems] == [False, True]


EPILOGUES = [{"bias": True}, {"activation": "silu"}, {"bias": True, "activation": "relu"}]


@pytest.mark.parametrize("more", EPILOGUES, ids=str)
@pytest.mark.parametrize("fused", [True, False])
def test_an_epilogue_is_in_the_kernel_where_it_was_tuned_and_else_follows_it(rig, more, fused):
    """Bias along the features, activation, then the residual. One warning if they are computed after the product."""
    lib = rig.library(*every_type(), *(every_type(**more) if fused else ()))
    a, b, c, bias = rig.normal(6, 5), rig.normal(5, 7), rig.normal(6, 7), rig.normal(7)
    options = {**more, **({"bias": bias} if "bias" in more else {})}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(2):
            close(lib.matmul(a, b, residual=c, **options), expected(a, b, c=c, **options))
            assert c is not None
    assert len(warned) == (0 if fused else 1)
    if not fused:
        assert "tune that type" in str(warned[0].message)
        assert warned[0].filename == __file__
    assert {("UseBias" in p.type.fields, p.type.fields.get("Activation", "none")) for p in rig.device.problems} == (
        {("bias" in more, more.get("activation", "none"))} if fused else {(False, "none")}
    )


def test_a_bias_runs_along_the_features_also_of_a_column_major_out(rig):
    lib = rig.library(*every_type(), *every_type(bias=True))
    a, b, bias = rig.normal(7, 5), rig.normal(5, 7), rig.normal(14)[::2]
    out = rig.on_gpu(rig.torch.zeros(7, 7)).mT
    close(lib.matmul(a, b, out, bias=bias), expected(a, b, bias))


def test_scales_lie_on_the_device_or_are_numbers(rig):
    lib = rig.library(*every_type("f8"), *every_type("f8", scaled=True))
    a, b = (rig.on_gpu(rig.normal(*shape).float().to(rig.torch.float8_e4m3fn)) for shape in ((6, 5), (5, 7)))
    two, half = (rig.on_gpu(rig.torch.tensor(value)) for value in (2.0, 0.5))
    wide = product(a.float(), b.float())
    for scale_a, scale_b, scale in ((two, two, 4), (two, None, 2), (2.0, None, 2), (half, 3.0, 1.5)):
        close(lib.matmul(a, b, scale_a=scale_a, scale_b=scale_b), scale * wide, 1e-2)
    assert [problem.type.fields.get("ScaleAB", False) for problem in rig.device.problems] == [True, True, False, True]
    with pytest.raises(TypeError, match="float8"):
        lib.matmul(rig.normal(3, 3), rig.normal(3, 3), scale_a=two)
    with pytest.raises(ValueError, match="one float32"):
        lib.matmul(a, b, scale_a=rig.normal(3))
    lib.close()
    rig.device.close()  # which finds memory that was not given back, as that of the 1.0 for a missing scale


def test_scales_follow_the_product_where_no_type_has_them(rig):
    lib = rig.library(*every_type("f8"))
    a, b = (rig.on_gpu(rig.normal(*shape).float().to(rig.torch.float8_e4m3fn)) for shape in ((6, 5), (5, 7)))
    scale = rig.on_gpu(rig.torch.tensor([2.0]))
    with pytest.warns(UserWarning, match="after the product comes scales and bias and relu,"):
        found = lib.matmul(a, b, scale_a=scale, scale_b=scale, bias=rig.normal(7, dtype="bfloat16"), activation="relu")
    wide = expected(a.float(), b.float(), rig.normal(7, dtype="bfloat16"), "relu", scale=4)
    close(found, wide, 3e-2)


# --- streams, caches, graphs ------------------------------------------------------------------------------------------


def test_work_goes_on_the_current_stream_and_streams_share_no_workspace(rig):
    lib = rig.library(logic(NN, {"Workspace": WORKSPACE}))
    a, b = rig.normal(6, 5), rig.normal(5, 7)
    for rig.stream in (7, 8, 7):
        lib.matmul(a, b)
    first, second, third = rig.device.launches
    assert [entry[1] for entry in (first, second, third)] == [7, 8, 7]
    assert first[3] == third[3] != second[3]
    assert rig.device.log.count(("allocate", ZEROED_HEAD + WORKSPACE)) == 2
    lib.close()


def test_zeros_are_the_same_for_all_that_leave_them_and_nobody_elses(rig):
    """A plan that needs zeros at the beginning of a workspace finds them, whichever plan ran before."""
    lib = rig.library(logic(NN, {"Workspace": 2 * ZEROED_HEAD, "Zeroed": 64}), logic(TN, {"Workspace": WORKSPACE}))
    a, b = rig.normal(6, 5), rig.normal(5, 7)
    for x, y in ((a, b), (b.t(), a.t()), (a, b)):
        lib.matmul(x, y)
    zeroed, other, again = rig.device.launches
    assert zeroed[3:] == again[3:] == (other[3] - ZEROED_HEAD, True)
    assert not at(zeroed[3], ZEROED_HEAD, "uint8").any()
    lib.close()


def test_zeros_that_are_more_than_all_share_are_made_each_time(rig):
    lib = rig.library(logic(NN, {"Workspace": 3 * ZEROED_HEAD, "Zeroed": 2 * ZEROED_HEAD}))
    lib.matmul(rig.normal(6, 5), rig.normal(5, 7))
    (launch,) = rig.device.launches
    assert launch[4] is False
    lib.close()


def test_nothing_is_decided_or_compiled_twice(rig, monkeypatch):
    lib = rig.library(*every_type())
    tensors = rig.normal(6, 5), rig.normal(5, 7)
    lib.matmul(*tensors)
    monkeypatch.setattr("tunesmith.library.gemm._approach.best_match", None)
    monkeypatch.setattr("tunesmith.library.launch._launcher.Launcher.ready", None)
    for _ in range(2):
        a, b = (tensor.clone() for tensor in tensors)
        close(lib.matmul(rig.on_gpu(a), rig.on_gpu(b)), product(a, b))
    assert len([entry for entry in rig.device.log if entry[0] == "load"]) == 1


def test_every_result_has_memory_of_its_own(rig):
    """This includes shapes with extents of 1, whose strides are arbitrary."""
    lib = rig.library(*every_type())
    for shape in ((6, 7), (1, 7), (6, 1), (3, 6, 7), (3, 1, 1)):
        a, b = rig.normal(*shape[:-1], 5), rig.normal(*shape[:-2], 5, shape[-1])
        results = [lib.matmul(a, b) for _ in range(3)]
        assert len({result.data_ptr() for result in results}) == 3
        assert {result.stride() for result in results} == {rig.torch.empty(shape).stride()}
        for result in results:
            close(result, product(a, b))


def test_a_call_that_is_ready_can_be_captured_and_its_workspace_is_the_graphs(rig):
    """A replay may run beside other work of the stream, so it must not use the stream's workspace."""
    lib = rig.library(logic(NN, {"Workspace": WORKSPACE}))
    a, b = rig.normal(6, 5), rig.normal(5, 7)
    lib.matmul(a, b)
    rig.captures, rig.stream = True, 9
    close(lib.matmul(a, b), product(a, b))
    first, captured = rig.device.launches
    assert captured[1] == 9
    assert captured[3] not in (0, first[3])
    assert (first[4], captured[4]) == (True, False), "nobody has zeroed the graph's"
    assert rig.device.log.count(("allocate", ZEROED_HEAD + WORKSPACE)) == 1


def test_a_call_that_is_not_ready_is_refused_in_a_capture(rig):
    lib = rig.library(*every_type())
    rig.captures = True
    with pytest.raises(UserError, match=r"captured into a graph.*once before the capture"):
        lib.matmul(rig.normal(6, 5), rig.normal(5, 7))
    assert rig.device.log == []
    rig.captures = False
    lib.matmul(rig.normal(6, 5), rig.normal(5, 7))


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make_arguments", "error", "says"),
    [
        (lambda rig: {"b": rig.torch.zeros(5, 7, device="meta")}, ValueError, "b lies on meta, a on cpu"),
        (lambda rig: {"b": np.zeros((5, 7), np.float32)}, TypeError, "b is a ndarray"),
        (lambda rig: {"b": rig.torch.zeros(5, 7).to_sparse()}, TypeError, "layout torch.sparse"),
        (lambda rig: {"b": rig.normal(4, 7)}, ValueError, "5 columns and b has 4 rows"),
        (lambda rig: {"b": rig.normal(5, 7, dtype="float64")}, TypeError, "b is float64"),
        (lambda rig: {"out": rig.normal(7, 6)}, ValueError, "out has shape"),
        (lambda rig: {"c": rig.normal(7, 6)}, ValueError, "c has shape"),
        (lambda rig: {"c": rig.normal(7, 6), "beta": 1.0}, ValueError, "c has shape"),
        (lambda rig: {"bias": rig.normal(6)}, ValueError, r"bias has shape \(6,\).*\(7,\)"),
        (lambda rig: {"beta": 1.0}, ValueError, "c must be given"),
        (lambda rig: {"residual": rig.normal(6, 7), "beta": 1.0}, ValueError, "one or the other"),
        (lambda rig: {"activation": "tanh"}, ValueError, "tanh.*relu, gelu, silu"),
        (lambda rig: {"stream": 5}, ValueError, "torch.cuda.stream"),
        (lambda rig: {"b": rig.normal(5, 7).requires_grad_()}, UserError, "no gradient"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_said(rig, make_arguments, error, says):
    lib = rig.library(*every_type())
    with pytest.raises(error, match=says):
        lib.matmul(**{"a": rig.normal(6, 5), "b": rig.normal(5, 7)} | make_arguments(rig))
    assert rig.device.launches == []


def test_a_gradient_is_not_asked_for_where_autograd_is_off(rig):
    lib = rig.library(*every_type())
    with rig.torch.no_grad():
        close(
            lib.matmul(rig.normal(6, 5).requires_grad_(), rig.normal(5, 7)), product(rig.normal(6, 5), rig.normal(5, 7))
        )


def test_a_data_type_without_a_logic_is_named_with_those_that_there_are(rig):
    with pytest.raises(UserError, match=r"bfloat16.*Cij_Aik_Bkj_SB"):
        rig.library(NN).matmul(rig.normal(6, 5, dtype="bfloat16"), rig.normal(5, 7, dtype="bfloat16"))


def test_tensors_on_another_gpu_than_the_librarys_are_refused(rig):
    rig.device = HostGpu(1)
    with pytest.raises(UserError, match=r"tensors lie on CUDA:0, the library works on CUDA:1.*device='CUDA:0'"):
        rig.library(NN).matmul(rig.normal(6, 5), rig.normal(5, 7))


class TestOpening:
    """If no device is named, the tensors' device is opened once, provided a logic was made on a GPU of its name."""

    def library(self, monkeypatch, *names):
        opened: dict[str, HostGpu] = {}

        def open_device(selector):
            assert selector not in opened
            made = opened[selector] = HostGpu(int(selector.partition(":")[2]))
            made.target = replace(made.target, name=names[len(opened) - 1], api="fake")
            return made

        monkeypatch.setattr("tunesmith.library._device.open_device", open_device)
        monkeypatch.setattr("tunesmith.library._device.context_kept", contextlib.nullcontext)
        return Library([(Path("nn.yaml"), logic(NN))]), opened

    def test_each_gpu_is_opened_once_and_has_its_own_programs(self, rig, monkeypatch):
        lib, opened = self.library(monkeypatch, TARGET.name, TARGET.name)
        a, b = rig.normal(6, 5), rig.normal(5, 7)
        for number in (0, 1, 0, 1):
            monkeypatch.setattr(type(a), "get_device", lambda self, number=number: number)
            close(lib.matmul(a, b), product(a, b))
        assert [len(device.launches) for device in opened.values()] == [2, 2]
        assert [sum(entry[0] == "load" for entry in device.log) for device in opened.values()] == [1, 1]
        lib.close()

    def test_a_gpu_that_no_logic_was_made_on_is_refused_with_the_remedy(self, rig, monkeypatch):
        lib, _ = self.library(monkeypatch, "another GPU")
        with pytest.raises(UserError, match=rf"{TARGET.name}.*lie on another GPU \(CUDA:0\).*device='CUDA:0'"):
            lib.matmul(rig.normal(6, 5), rig.normal(5, 7))
