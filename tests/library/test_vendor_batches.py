"""A batch on a GPU that no problem type serves as it lies is one call of the vendor's BLAS, not a launch for each."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import ml_dtypes  # noqa: F401  (teaches NumPy the names of its types)
import numpy as np
import pytest

from cublas_fakes import carried_out
from gpu_fakes import HostGpu, Rig, every_type, numbers, product
from library_fakes import normal
from tunesmith.devices import APIS
from tunesmith.devices.gemm_call import GemmCall
from tunesmith.library import LaunchRecord
from tunesmith.library.arrays._libraries import TorchArrays
from tunesmith.records import LibraryCall
from tunesmith.toolchains import blas


class VendorGpu(HostGpu):
    """A fake GPU with a cuBLAS that computes on the host; `calls` has the calls."""

    def __init__(self):
        super().__init__()
        self.target = replace(self.target, api="CUDA")
        self.calls: list[GemmCall] = []

    def repeated_plan(self, plan, programs, addresses):
        (step,) = plan.steps
        if not isinstance(step, LibraryCall):
            return super().repeated_plan(plan, programs, addresses)

        class Called:
            def enqueue(_, stream, at, on_zeros=False):  # noqa: N805
                self.log.append(("vendor", stream))
                self.calls.append(GemmCall.of(step))
                carried_out(step, at)

        return Called()

    def prepare(self, plan, programs, operands, workspace):
        if not isinstance(plan.steps[0], LibraryCall):
            return super().prepare(plan, programs, operands, workspace)
        addresses = {name: memory.address for name, memory in operands.items()}
        repeated = self.repeated_plan(plan, programs, addresses)

        class Prepared:
            def enqueue(_):  # noqa: N805
                repeated.enqueue(0, addresses)

        return Prepared()


@pytest.fixture
def rig(monkeypatch):
    made = Rig(monkeypatch)
    made.device = VendorGpu()
    monkeypatch.setattr(type(APIS["CUDA"]), "languages", ("CUDA", "BLAS", "fake"))
    found = blas.BlasLibrary("libcublas.so", "cuBLAS of the tests")
    monkeypatch.setitem(blas._FOUND_BY, ("CUDA", "GPU"), lambda: found)
    return made


def singles(letter="s", **more):  # type: ignore[no-untyped-def]
    return [kind for kind in every_type(letter, **more) if not kind.fields.flag("Batched")]


def layouts(rig, batch, rows, columns, dtype="float32"):
    """Batches that BLAS takes as they lie: transposed, padded, apart, interleaved by rows, and shared."""
    yield rig.normal(batch, rows, columns, dtype=dtype)
    yield rig.normal(batch, columns, rows, dtype=dtype).mT
    yield rig.normal(2 * batch, rows + 2, columns + 3, dtype=dtype)[::2, 1:-1, 3:]
    yield rig.normal(rows, batch, columns, dtype=dtype).transpose(0, 1)
    yield rig.normal(rows, columns, dtype=dtype).expand(batch, rows, columns)
    yield rig.normal(columns, rows, dtype=dtype).mT


def launched_at_once(rig, lib, a, b, warned):
    """Multiplies, and says whether that was one launch; else it was one call of the vendor's BLAS."""
    rig.device.calls.clear()
    rig.device.log.clear()
    with warnings.catch_warnings():
        warnings.simplefilter(warned)
        found = lib.matmul(a, b)
    np.testing.assert_allclose(numbers(found), product(a, b), rtol=1e-5, atol=1e-5)
    assert len(rig.device.calls) + len(rig.device.launches) == 1
    assert all(call.batch == 3 for call in rig.device.calls)
    return bool(rig.device.launches)


def test_one_call_serves_a_batch_in_any_layout_without_a_copy(rig, monkeypatch):
    monkeypatch.setattr(TorchArrays, "copy", lambda *what: pytest.fail("copied"))
    lib = rig.library(*singles())
    cases = [
        (a, b)
        for a, b in itertools.product(layouts(rig, 3, 6, 5), layouts(rig, 3, 5, 7))
        if a.ndim + b.ndim > 4 and (a.ndim == 3 and a.stride(0) != 0)
    ]
    for a, b in cases:
        is_launch = launched_at_once(rig, lib, a, b, "ignore")
        assert is_launch <= (b.ndim == 2 or b.stride(0) == 0), "one call, or one launch of a tall product"
    assert len(cases) == 24


def test_a_type_for_batches_copies_none_that_the_vendor_takes_as_it_lies(rig, monkeypatch):
    """The fake kernel launches a batch that lies as the type has it, also as one tall product. In the other layouts
    cuBLAS takes it, and no warning advises to tune a type that is there."""
    monkeypatch.setattr(TorchArrays, "copy", lambda *what: pytest.fail("copied"))
    lib = rig.library(*every_type("s"))
    dense, transposed, _, _, expanded, _ = range(6)
    for (first, a), (second, b) in itertools.product(
        enumerate(layouts(rig, 3, 6, 5)), enumerate(layouts(rig, 3, 5, 7))
    ):
        if a.ndim == b.ndim == 3:
            is_batch_of_the_type = {first, second} <= {dense, transposed}
            is_tall = (first, second) == (dense, expanded)
            assert launched_at_once(rig, lib, a, b, "error") == (is_batch_of_the_type or is_tall), (first, second)


def test_a_batch_that_cublas_would_copy_too_is_copied_for_its_type(rig):
    a, b = rig.normal(3, 6, 10)[:, :, ::2], rig.normal(3, 5, 7)
    np.testing.assert_allclose(numbers(rig.library(*every_type("s")).matmul(a, b)), product(a, b), rtol=1e-5, atol=1e-5)
    assert (len(rig.device.launches), len(rig.device.calls)) == (1, 0)


@pytest.mark.parametrize("kinds", ["single", "every"])
@pytest.mark.parametrize("form", ["every second", "expanded"])
def test_a_bias_that_the_vendor_would_read_wrongly_is_copied_first(rig, kinds, form):
    """The call has the address of its first number alone."""
    a, b = rig.normal(6, 3, 5).transpose(0, 1), rig.normal(3, 5, 7)
    bias = rig.normal(14)[::2] if form == "every second" else rig.normal(1).expand(7)
    lib = rig.library(*(singles(bias=True) if kinds == "single" else every_type("s", bias=True)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = lib.matmul(a, b, bias=bias)
    np.testing.assert_allclose(numbers(found), product(a, b) + numbers(bias), rtol=1e-5, atol=1e-5)
    (called,) = rig.device.calls
    assert called.bias


def test_no_type_is_named_to_tune_for_a_batch_that_it_would_not_take(rig):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rig.library(*singles()).matmul(rig.normal(6, 3, 5).transpose(0, 1), rig.normal(3, 5, 7))
    assert len(rig.device.calls) == 1


def test_a_strict_library_copies_what_its_type_does_not_take(rig):
    a, b = rig.normal(6, 3, 5).transpose(0, 1), rig.normal(3, 5, 7)
    lib = rig.library(*every_type("s"), strict=True)
    np.testing.assert_allclose(numbers(lib.matmul(a, b)), product(a, b), rtol=1e-5, atol=1e-5)
    assert (len(rig.device.launches), len(rig.device.calls)) == (1, 0)


def test_arrays_of_the_host_are_copied_for_their_type(rig):
    """They are copied to the GPU in any case."""
    a, b = normal(6, 3, 5).transpose(1, 0, 2), normal(3, 5, 7)
    np.testing.assert_allclose(rig.library(*every_type("s")).matmul(a, b), a @ b, rtol=1e-5, atol=1e-5)
    assert (len(rig.device.launches), len(rig.device.calls)) == (1, 0)


@pytest.mark.parametrize("letter, dtype, dest", [  # noqa: PT006
    ("s", "float32", "s"), ("d", "float64", "d"), ("h", "float16", "h"), ("b", "bfloat16", "b"), ("h", "float16", "s"),
])  # fmt: skip
@pytest.mark.parametrize("swapped", [False, True], ids=["row-major", "column-major"])
def test_every_data_type_with_alpha_beta_and_an_out(rig, letter, dtype, dest, swapped):
    """Small whole numbers, so that the result is exact in every type; extents of 8, which int8 needs."""
    torch = rig.torch
    result = {"s": "float32", "d": "float64", "h": "float16", "b": "bfloat16", "i": "int32"}[dest]
    random = np.random.default_rng(4)

    def whole(*shape, of):
        return rig.on_gpu(torch.from_numpy(random.integers(-3, 4, shape)).to(getattr(torch, of)))

    a, b, c = whole(3, 8, 16, of=dtype), whole(3, 16, 8, of=dtype), whole(3, 8, 8, of=result)
    out = whole(3, 8, 8, of=result)
    c, out = (c.mT, out.mT) if swapped else (c, out)
    lib = rig.library(*singles(letter, dest=dest))
    with pytest.warns(UserWarning, match="the vendor's BLAS multiplies such batches"):
        assert lib.matmul(a, b, out, c=c, alpha=2.0, beta=-3.0) is out
    assert (numbers(out) == 2 * product(a, b) - 3 * numbers(c)).all()
    (called,) = rig.device.calls
    assert (called.dtype, called.dest, called.batch, called.alpha, called.beta) == (dtype, result, 3, 2.0, -3.0)


def test_batches_of_int8_go_matrix_by_matrix(rig):
    """cuBLAS's call for strided batches refuses some layouts of int8."""
    random = np.random.default_rng(4)
    a, b = (
        rig.on_gpu(rig.torch.from_numpy(random.integers(-3, 4, shape)).to(rig.torch.int8))
        for shape in ((3, 8, 16), (3, 16, 8))
    )
    found = rig.library(*singles("i8", dest="i")).matmul(a, b)
    assert (numbers(found) == product(a, b)).all()
    assert not [called for called in rig.device.calls if called.batch > 1]


def test_c_and_out_may_lie_between_other_things(rig):
    a, b = rig.normal(3, 6, 5), rig.normal(3, 5, 7)
    whole, c = rig.on_gpu(rig.torch.full((5, 8, 9), 3.0)), rig.normal(6, 3, 7).transpose(0, 1)
    out = whole[1:4, 1:7, 2:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rig.library(*singles()).matmul(a, b, out, residual=c)
    np.testing.assert_allclose(numbers(out), product(a, b) + numbers(c), rtol=1e-5, atol=1e-5)
    out.fill_(3.0)
    assert (whole == 3.0).all()
    (called,) = rig.device.calls
    assert (called.stride_c, called.stride_d) == (7, 72)


def test_it_is_said_once_and_names_the_type_to_tune(rig):
    lib = rig.library(*singles("b"))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for size in (5, 5, 9):
            lib.matmul(rig.normal(3, 6, size, dtype="bfloat16"), rig.normal(3, size, 7, dtype="bfloat16"))
    (warning,) = warned
    assert str(warning.message).startswith(
        "no logic is for Cijk_Ailk_Bljk_B: the vendor's BLAS multiplies such batches"
    )
    assert warning.filename == __file__


def test_the_launch_that_is_told_of_is_of_the_whole_batch(rig):
    launched_records: list[LaunchRecord] = []
    lib = rig.library(*singles(), launched=launched_records.append)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib.matmul(rig.normal(192, 19, 6), rig.normal(192, 6, 19))
    (launched,) = launched_records
    assert (launched.solution.kernel, launched.problem.sizes) == ("VendorBlas", (19, 19, 192, 6))


def test_what_it_does_not_take_as_it_lies_is_copied_and_a_shared_operand_once(rig, monkeypatch):
    copied: list[tuple[int, ...]] = []
    copy = TorchArrays.copy
    monkeypatch.setattr(TorchArrays, "copy", lambda self, x, axes: copied.append(tuple(x.shape)) or copy(self, x, axes))
    lib = rig.library(*singles())
    single, batch = rig.normal(12, 10)[::2, ::2], rig.normal(3, 5, 14)[:, :, ::2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = lib.matmul(single, batch)
    np.testing.assert_allclose(numbers(found), product(single, batch), rtol=1e-5, atol=1e-5)
    (called,) = rig.device.calls
    assert 0 in (called.stride_a, called.stride_b)
    assert sorted(copied) == [(3, 5, 7), (6, 5)]


@pytest.mark.parametrize("letter", ["s", "i8"])
def test_without_the_library_and_where_it_refuses_a_batch_goes_one_by_one(rig, monkeypatch, letter):
    """cuBLAS takes leading dimensions of int8 only in multiples of four."""

    def missing():
        raise LookupError("not installed")

    if letter == "s":
        monkeypatch.setitem(blas._FOUND_BY, ("CUDA", "GPU"), missing)
    dtype = "float32" if letter == "s" else "int8"
    a, b = (rig.on_gpu((8 * rig.normal(*shape)).to(getattr(rig.torch, dtype))) for shape in ((3, 6, 5), (3, 5, 7)))
    found = rig.library(*singles(letter)).matmul(a, b)
    np.testing.assert_allclose(numbers(found), product(a, b), rtol=1e-5, atol=1e-5)
    assert len(rig.device.launches) == 3
    assert rig.device.calls == []


@pytest.mark.parametrize(("first", "stride", "calls"), [(0, 768, 1), (1, 768, 0), (0, 776, 0), (16, 784, 1)])
def test_float8_goes_to_the_vendor_in_one_call_if_every_matrix_is_aligned(rig, first, stride, calls):
    """Its rows are 48 bytes apart. The address of the first matrix, or of a later one, may be no multiple of 16."""
    storage = rig.normal(16 + 3 * 784, dtype="float8_e4m3fn")
    a = rig.on_gpu(storage.as_strided((3, 16, 32), (stride, 48, 1), first))
    b = rig.normal(3, 16, 32, dtype="float8_e4m3fn").mT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = rig.library(*singles("f8", dest="s")).matmul(a, b, out_dtype=rig.torch.float32)
    np.testing.assert_allclose(numbers(found), numbers(a.float()) @ numbers(b.float()), rtol=1e-4, atol=1e-4)
    assert (len(rig.device.calls), len(rig.device.launches)) == (calls, 0 if calls else 3)


@pytest.mark.parametrize("which", ["a", "b", "c", "out"])
@pytest.mark.parametrize("layout", ["backwards", "between elements"])
def test_a_batch_whose_matrices_follow_at_a_stride_that_blas_does_not_have_goes_one_by_one(rig, which, layout):
    """BLAS takes strides in whole elements, and no negative ones."""

    def laid_out(name, *shape):
        if name != which:
            return normal(*shape)
        if layout == "backwards":
            return normal(*shape)[::-1]
        size = shape[1] * shape[2] * 4
        return np.ndarray(shape, np.float32, bytearray(3 * size + 4), 0, (size + 2, shape[2] * 4, 4))

    a, b, c, out = (laid_out(*x) for x in (("a", 3, 6, 5), ("b", 3, 5, 7), ("c", 3, 6, 7), ("out", 3, 6, 7)))
    for x in (a, b, c):
        x[...] = normal(*x.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rig.library(*singles()).matmul(a, b, out, residual=c)
    np.testing.assert_allclose(out, a @ b + c, rtol=1e-4, atol=1e-4)
    assert (len(rig.device.calls), len(rig.device.launches)) == (0, 3)


def test_numpys_arrays_go_to_the_same_call(rig):
    lib = rig.library(*singles())
    b, c = normal(3, 5, 14)[:, :, 7:], normal(3, 6, 9)[:, :, :7]
    with pytest.warns(UserWarning, match="the vendor's BLAS"):
        found = lib.matmul(a := normal(3, 6, 5), b, residual=c)
    np.testing.assert_allclose(found, a @ b + c, rtol=1e-4, atol=1e-4)
    shared = normal(6, 5)
    np.testing.assert_allclose(lib.matmul(shared, b, residual=c), shared @ b + c, rtol=1e-4, atol=1e-4)
    assert len(rig.device.calls) == 2
