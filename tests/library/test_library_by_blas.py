"""Products that the BLAS computes through the library: right, checked, reported, and by a short way."""

from __future__ import annotations

import pickle
import threading
import warnings

import numpy as np
import pytest
from test_library_opencl import target, write  # noqa: F401  # a fixture

import tunesmith
from opencl_runner import opencl_device
from tunesmith.library import Library
from tunesmith.logic import Rule
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import UserError

pytestmark = pytest.mark.opencl

NN = gemm_type("s", transpose_b=False)
random = np.random.default_rng(11)


def normal(*shape, dtype="float32"):
    return random.standard_normal(shape).astype(dtype)


def close(found, a, b, rest=0.0):
    expected = np.asarray(a, float) @ np.asarray(b, float) + rest
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found, float), expected, rtol=1e-4, atol=1e-4)


@pytest.fixture
def launches():
    return []


@pytest.fixture
def lib(launches):
    """Without any logic."""
    with warnings.catch_warnings(), Library((), device=opencl_device(), launched=launches.append) as made:
        warnings.simplefilter("ignore", UserWarning)
        yield made


class MadeUpCosts:
    """In place of `HostCosts`: launches cost nothing, kernels take a millisecond, and the BLAS so many seconds."""

    blas_seconds = 0.0

    def __init__(self, launcher):
        self.launch_calls = 0

    def launch(self):
        return 0.0

    def blas(self, problem):
        return self.blas_seconds

    def kernel(self, problem, choice):
        return 1e-3


@pytest.fixture
def costs(monkeypatch):
    monkeypatch.setattr("tunesmith.library.gemm._host_costs.HostCosts", MadeUpCosts)
    monkeypatch.setattr(MadeUpCosts, "blas_seconds", 0.0)
    return MadeUpCosts


def only_short(lib, monkeypatch):
    """From now on a call that does not go the short way fails."""
    monkeypatch.setattr(lib._begun_products().host, "matmul", lambda *_: pytest.fail("the long way"))


# --- the choice -------------------------------------------------------------------------------------------------------


def test_the_faster_of_kernel_and_blas_is_launched_and_select_says_which(target, tmp_path, launches, costs):  # noqa: F811
    """The logic says 1 ms for a kernel at a measured size."""
    write(NN, target, tmp_path)
    a, b = normal(48, 32), normal(32, 64)
    for blas_seconds, kernel, rule in ((0.5e-3, "VendorBlas", Rule.VENDOR), (2e-3, "RegisterGemm", Rule.EXACT)):
        costs.blas_seconds = blas_seconds
        with tunesmith.load(tmp_path, launched=launches.append) as lib:
            for _ in range(2):
                close(lib.matmul(a, b), a, b)
            assert lib.select(64, 48, 32) == launches[-1].choice
        assert [(launch.choice.solution.kernel, launch.choice.rule) for launch in launches[-2:]] == [(kernel, rule)] * 2
        assert launches[-1].problem.sizes == (64, 48, 32)


def test_without_a_floor_the_logic_alone_chooses(target, tmp_path, launches, costs):  # noqa: F811
    write(NN, target, tmp_path)
    a, b = normal(48, 32), normal(32, 64)
    with tunesmith.load(tmp_path, launched=launches.append, floor=False) as lib:
        close(lib.matmul(a, b), a, b)
    assert launches[-1].choice.rule is Rule.EXACT


def test_what_a_kernel_would_need_a_copy_for_is_the_blass(target, tmp_path, launches, costs):  # noqa: F811
    write(NN, target, tmp_path)
    costs.blas_seconds = 2e-3
    a, b = normal(48, 32), normal(32, 64)
    with tunesmith.load(tmp_path, launched=launches.append) as lib:
        for x in (a, a.T.copy().T, a[:, ::-1]):
            close(lib.matmul(x, b), x, b)
    assert [launch.choice.rule for launch in launches] == [Rule.EXACT, Rule.VENDOR, Rule.VENDOR]


def test_a_type_without_a_logic_is_the_blass_and_said_once(launches):
    with warnings.catch_warnings(record=True) as warned, Library((), launched=launches.append) as lib:
        warnings.simplefilter("always")
        for size in (5, 6, 7):
            close(lib.matmul(a := normal(size, 4), b := normal(4, 3)), a, b)
        lib.matmul(normal(5, 4, dtype="float64"), normal(4, 3, dtype="float64"))
        lib.matmul(normal(5, 4, dtype="float16"), normal(4, 3, dtype="float16"))
    assert [launch.choice.rule for launch in launches] == [Rule.VENDOR] * 4 + [Rule.HEURISTIC]
    for warning, name in zip(warned, ("Cij_Aik_Bkj_SB", "Cij_Aik_Bkj_DB", "Cij_Aik_Bkj_HB"), strict=True):
        assert f"no logic is for {name} on" in str(warning.message)
        assert ("NumPy's BLAS computes it; tune that type" in str(warning.message)) is (name[-2] != "H")
        assert warning.filename == __file__


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_layout_and_epilogue_is_right(lib, launches, dtype):
    a, b, c, bias = (normal(*shape, dtype=dtype) for shape in ((35, 21), (21, 19), (35, 19), (19,)))
    wide = normal(80, 60, dtype=dtype)
    for x, y in ((a, b), (a.T.copy().T, b.T.copy().T), (wide[2:37, 5:26], b), (wide[:70:2, :42:2], b[:, ::-1])):
        close(lib.matmul(x, y), x, y)
        out = np.full((35, 40), 7.0, dtype)
        assert lib.matmul(x, y, out[:, 1:20]).base is out
        close(out[:, 1:20], x, y)
        assert (out[:, 20:] == 7).all()
        assert (out[:, 0] == 7).all()
    close(lib.matmul(a, b, c=c, beta=-0.5, alpha=2.0), 2 * a, b, -0.5 * c.astype(float))
    found = lib.matmul(a, b, bias=bias, activation="relu", residual=c)
    close(found, np.zeros((35, 1)), np.zeros((1, 19)), np.maximum(a.astype(float) @ b + bias, 0) + c)
    assert {launch.choice.solution.kernel for launch in launches} == {"VendorBlas"}


def test_batches_that_share_a_matrix_are_one_product(lib, launches):
    a, b, out = normal(3, 17, 5), normal(3, 5, 31), np.empty((3, 17, 31), np.float32)
    columns = normal(5, 3 * 31).reshape(5, 3, 31).transpose(1, 0, 2)
    into = np.empty((17, 3 * 31), np.float32).reshape(17, 3, 31).transpose(1, 0, 2)
    for x, y, result, sizes in (
        *((a, b, out, (31, 17, 3, 5)), (a, b[0], out, (31, 51, 5))),
        *((a[0], columns, into, (93, 17, 5)), (a, b[:1], None, (31, 51, 5))),
    ):
        close(lib.matmul(x, y, result), x, y)
        assert launches[-1].problem.sizes == sizes


# --- the short way ----------------------------------------------------------------------------------------------------


def test_the_second_call_of_a_layout_goes_the_short_way_and_is_reported(lib, launches, monkeypatch):
    a, b, out = normal(9, 5), normal(5, 8), np.empty((9, 8), np.float32)
    lib.matmul(a, b)
    lib.matmul(a, b, out)
    only_short(lib, monkeypatch)
    close(lib.matmul(a + 1, b, alpha=1.0), a + 1, b)
    assert lib.matmul(a, b, out) is out
    close(out, a, b)
    assert len(launches) == 4
    assert launches[2] == launches[0]


def test_only_the_same_call_goes_the_short_way(lib):
    """After a short call, every call that differs in something is what it was."""
    a, b, c, out = normal(6, 6), normal(6, 6), normal(6, 6), np.empty((6, 6), np.float32)
    lib.matmul(a, b)
    lib.matmul(a, b, out)
    close(lib.matmul(a, b, alpha=2), 2 * a, b)
    close(lib.matmul(a, b, alpha=np.float32(2)), 2 * a, b)
    close(lib.matmul(a, b, c=c, beta=1.0), a, b, c)
    close(lib.matmul(a, b, residual=c), a, b, c)
    close(lib.matmul(a, b.T), a, b.T)
    close(lib.matmul(a.astype(float), b.astype(float)), a, b)
    assert isinstance(lib.matmul(a.astype(float), b.astype(float))[0, 0], np.float64)
    close(lib.matmul(a.astype(">f4"), b), a, b)
    close(lib.matmul(a.tolist(), b.tolist()), a, b)
    close(lib.matmul(a, b, bias=c[0]), a, b, c[0])
    overlapping = a.copy()
    close(lib.matmul(overlapping, b, overlapping), a, b)

    close(lib.matmul(_unaligned(a), b), a, b)


def _unaligned(x):
    raw = np.zeros(x.nbytes + 1, np.uint8)
    view = raw[1:].view(x.dtype).reshape(x.shape)
    view[...] = x
    return view


def test_wrong_calls_are_refused_after_a_short_call_as_before_one(lib):
    a, b, out = normal(6, 6), normal(6, 6), np.empty((6, 6), np.float32)
    locked = out.copy()
    locked.flags.writeable = False
    itself = np.lib.stride_tricks.as_strided(out, (6, 6), (0, 4))
    wrong = (
        (ValueError, "out must not be written", lambda: lib.matmul(a, b, locked)),
        (ValueError, "out shares memory with itself", lambda: lib.matmul(a, b, itself)),
        (TypeError, "b is a masked array", lambda: lib.matmul(a, np.ma.masked_array(b))),
        (TypeError, "a and b must have the same data type", lambda: lib.matmul(a, b.astype(float))),
        (TypeError, "the result, with all that is added", lambda: lib.matmul(a, b, out.astype(float))),
        (ValueError, "do not multiply", lambda: lib.matmul(a, b[:5])),
        (ValueError, "out has shape", lambda: lib.matmul(a, b, out[:5])),
        (ValueError, "out must be an array", lambda: lib.matmul(a, b, out.tolist())),
        (ValueError, "beta is not zero", lambda: lib.matmul(a, b, beta=2.0)),
        (ValueError, "stream goes with memory of a GPU", lambda: lib.matmul(a, b, stream=3)),
        (ValueError, "activation is 'tanh'", lambda: lib.matmul(a, b, activation="tanh")),
    )
    messages: list[list[str]] = [[], []]
    for found in messages:
        for kind, match, call in wrong:
            with pytest.raises(kind, match=match) as caught:
                call()
            found.append(str(caught.value))
        lib.matmul(a, b)
        lib.matmul(a, b, out)
    assert messages[0] == messages[1]


def test_overflow_is_as_silent_as_in_a_kernel(lib):
    a = np.full((4, 4), 3e38, np.float32)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error", RuntimeWarning)
        for _ in range(2):
            assert np.isinf(lib.matmul(a, a)).all()
        with pytest.raises(FloatingPointError):
            np.matmul(a, a)


def test_calls_from_several_threads_and_from_within_a_call(lib):
    a, b = normal(40, 40), normal(40, 40)
    wrong: list[BaseException] = []

    def many():
        try:
            for _ in range(200):
                close(lib.matmul(a, b), a, b)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    found = lib._begun_products().host._quiet.run(lambda: lib.matmul(a, b))
    close(found, a, b)


def test_a_closed_library_forgets_its_products(launches):
    a, b = normal(6, 5), normal(5, 7)
    lib = Library((), device=opencl_device(), launched=launches.append)
    with pytest.warns(UserWarning, match="no logic is for"):
        lib.matmul(a, b)
    lib.close()
    assert lib._begun_products().host.products == {}
    with pytest.warns(UserWarning, match="no logic is for"):
        close(lib.matmul(a, b), a, b)
    lib.close()


def test_tensors_on_the_host_go_the_short_way_and_keep_their_checks(lib, launches, monkeypatch):
    torch = pytest.importorskip("torch")
    a, b, out = torch.randn(9, 5), torch.randn(8, 5).mT, torch.empty(9, 8)
    lib.matmul(a, b)
    lib.matmul(a, b, out)
    close(lib.matmul(a, b.contiguous()), a, b)
    for wrong, match in ((a.clone().requires_grad_(), "no gradient"), (a.to_sparse(), "")):
        with pytest.raises(Exception, match=match) as caught:
            lib.matmul(wrong, b)
        assert isinstance(caught.value, UserError) is bool(match)
    close(lib.matmul(a, b.numpy()), a, b)
    mixed = lib.matmul(a.numpy(), b)
    assert isinstance(mixed, np.ndarray)
    assert lib.matmul(a.bfloat16(), b.bfloat16()).dtype is torch.bfloat16
    count = len(launches)
    only_short(lib, monkeypatch)
    found = lib.matmul(a, b)
    assert isinstance(found, torch.Tensor)
    close(found, a, b)
    assert lib.matmul(a, b, out) is out
    close(out, a, b)
    assert len(launches) == count + 2


def test_arrays_from_another_process_go_the_short_way_though_their_data_type_is_another_object(lib, monkeypatch):
    a, b, out = normal(6, 5), normal(5, 7), np.empty((6, 7), np.float32)
    lib.matmul(a, b, out)
    only_short(lib, monkeypatch)
    sent = pickle.loads(pickle.dumps(a))
    assert sent.dtype is not a.dtype
    close(lib.matmul(sent, b, out), a, b)


def test_another_data_type_of_the_same_width_does_not_go_the_short_way(lib):
    a, b, out = normal(6, 5), normal(5, 7), np.empty((6, 7), np.float32)
    lib.matmul(a, b, out)
    with pytest.raises(TypeError):
        lib.matmul(a, b, out.view(np.int32))
    with pytest.raises(TypeError):
        lib.matmul(a, b.view(np.int32), out)


def test_an_out_with_more_matrices_than_the_product_is_refused_after_a_right_one_too(lib):
    a, b, out = normal(1, 6, 5), normal(1, 5, 7), np.zeros((3, 6, 7), np.float32)
    lib.matmul(a, b, out[:1])
    with pytest.raises(ValueError, match="out has shape"):
        lib.matmul(a, b, out)
    assert not out[1:].any()


def test_the_products_that_are_remembered_are_bounded(lib, monkeypatch):
    monkeypatch.setattr("tunesmith.library.gemm._host_matmul.REMEMBERED", 4)
    for size in range(1, 12):
        close(lib.matmul(a := normal(size, 4), b := normal(4, 3)), a, b)
        assert 1 <= len(lib._begun_products().host.products) <= 4


# --- strict -----------------------------------------------------------------------------------------------------------


def test_a_strict_library_refuses_what_no_logic_is_for(target, tmp_path, launches):  # noqa: F811
    write(NN, target, tmp_path)
    a, b = normal(48, 32), normal(32, 64)
    with tunesmith.load(tmp_path, launched=launches.append, strict=True) as lib:
        for _ in range(2):
            close(lib.matmul(a, b), a, b)
            close(lib.matmul(a, b.T.copy().T), a, b)
            with pytest.raises(UserError, match=r"no logic is for Cij_Aik_Bkj_DB on .*strict; tune Cij_Aik_Bkj_DB"):
                lib.matmul(a.astype(float), b.astype(float))
            with pytest.raises(UserError, match="no logic is for Cij_Aik_Bkj_HB"):
                lib.matmul(a.astype("f2"), b.astype("f2"))
            with pytest.raises(UserError, match="no logic is for Cij_Aik_Bkj_BB"):
                lib.matmul(a.astype("bfloat16"), b.astype("bfloat16"))
            with pytest.raises(UserError, match="tune Cijk_Ailk_Bljk_SB"):
                lib.matmul(np.stack([a, a]), np.stack([b, b]))
        with pytest.raises(ValueError, match="name one problem type of Cij_Aik_Bkj_SB, not 'Cij_Aik_Bkj_DB'"):
            lib.select(64, 48, 32, problem_type="Cij_Aik_Bkj_DB")
        assert lib.select(64, 48, 32).solution.type == NN
    assert len(launches) == 4


def test_a_strict_library_without_any_logic_refuses_everything():
    with (
        Library((), device=opencl_device(), strict=True) as lib,
        pytest.raises(UserError, match="the library is strict"),
    ):
        lib.matmul(normal(4, 4), normal(4, 4))
