"""A batch that no problem type serves is one call of NumPy or of the vendor's BLAS, not a launch for each matrix."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import ml_dtypes  # noqa: F401  (teaches NumPy the names of its types)
import numpy as np
import pytest

from cublas_fakes import carried_out
from gpu_fakes import HostGpu, Rig, every_type, numbers, product
from library_fakes import DEVICES, TARGET, TYPES, library, normal
from library_fakes import logic as fake_logic
from tunesmith.devices import APIS
from tunesmith.devices.fake import FakeDevice
from tunesmith.devices.gemm_call import GemmCall
from tunesmith.library import LaunchRecord
from tunesmith.library.arrays._libraries import TorchArrays
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import LibraryCall
from tunesmith.toolchains import blas

NN = gemm_type(transpose_b=False)


# --- the host's memory ------------------------------------------------------------------------------------------------


def arrays(seed, dtype):  # type: ignore[no-untyped-def]
    """A batch of products in some layout: a, b, more arguments, and the result in double precision."""
    random = np.random.default_rng(seed)
    batch, m, n, k = (int(size) for size in random.integers(1, 7, 4))
    batch += 1

    def laid_out(rows, columns, shared):  # type: ignore[no-untyped-def]
        shape, order = (1 if shared else batch, rows, columns), random.permutation(3)
        sizes = [shape[axis] + int(random.integers(0, 3)) for axis in order]
        whole = random.standard_normal(sizes).astype(dtype).transpose(np.argsort(order))
        x = whole[: shape[0], -rows:, :columns]
        if random.random() < 0.3:
            x = np.repeat(x, 2, axis=2)[:, :, ::2]
        if random.random() < 0.2:
            x = x[:, ::-1]
        return x[0] if shared and random.random() < 0.5 else x

    # A shared b may make a tall product, which the fake device does not launch in half precision.
    shared = random.choice(["", "", "a", "b" if dtype.startswith("float") and dtype != "float16" else ""])
    a, b, c = laid_out(m, k, shared == "a"), laid_out(k, n, shared == "b"), laid_out(m, n, False)
    expected = 1.5 * (a.astype(float) @ b.astype(float))
    more = {"alpha": 1.5}
    if random.random() < 0.3:
        bias = random.standard_normal(2 * n).astype(dtype)[::2]
        expected, more = np.maximum(expected + bias.astype(float), 0), {**more, "bias": bias, "activation": "relu"}
    if random.random() < 0.5:
        expected, more = expected - 0.5 * c.astype(float), {**more, "c": c, "beta": -0.5}
    if random.random() < 0.5:
        more["out"] = c if random.random() < 0.5 else laid_out(m, n, False)
    return a, b, more, expected


SPACINGS = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}
LETTERS = {"float32": "s", "float64": "d", "float16": "h", "bfloat16": "b"}


@pytest.mark.parametrize("dtype", LETTERS)
@pytest.mark.parametrize("seed", range(60))
def test_numpy_makes_any_batch_of_any_layout_right(dtype, seed):
    """Sums of no more than seven terms, then what follows, each rounded once: 16 spacings of the sums' precision, which
    is single or better, and one of the result's."""
    launched_records: list[LaunchRecord] = []
    a, b, more, expected = arrays(seed, dtype)
    kind = gemm_type(LETTERS[dtype], transpose_b=False)
    with library(fake_logic(kind), launched=launched_records.append) as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = lib.matmul(a, b, **more)
    assert found.dtype.name == dtype
    assert found is more.get("out", found)
    sums = SPACINGS["float64" if dtype == "float64" else "float32"]
    terms = np.abs(a.astype(float)) @ np.abs(b.astype(float)) * 1.5 + 10.0
    assert (np.abs(found.astype(float) - expected) <= 16 * sums * terms + SPACINGS[dtype] * np.abs(expected)).all()
    assert len(launched_records) in (0, 1)


@pytest.mark.parametrize("device", DEVICES)
def test_twenty_thousand_small_matrices_are_no_launch_and_that_is_said_once(device):
    launched_records: list[LaunchRecord] = []
    a, b = normal(20_000, 3, 3), normal(20_000, 3, 3)
    lib = library(*map(fake_logic, TYPES), device=device(TARGET), launched=launched_records.append)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for count in (20_000, 20_000, 100):
            np.testing.assert_allclose(lib.matmul(a[:count], b[:count]), a[:count] @ b[:count])
    assert launched_records == []
    (warning,) = warned
    assert str(warning.message) == (
        "no logic is for Cijk_Ailk_Bljk_SB: NumPy multiplies such batches; tune that type to have a kernel"
    )
    assert warning.filename == __file__


def test_a_batch_with_a_type_and_a_single_matrix_are_launched():
    launched_records: list[LaunchRecord] = []
    kinds = [NN, gemm_type(transpose_b=False, batched=True)]
    with library(*map(fake_logic, kinds), launched=launched_records.append) as lib:
        lib.matmul(normal(4, 3, 5), normal(4, 5, 7))
        lib.matmul(normal(1, 3, 5), normal(5, 7))
    assert [record.problem.type for record in launched_records] == kinds[::-1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("form", ["a matrix", "a batch of one", "expanded"])
def test_a_shared_operand_makes_one_tall_product_also_where_layouts_have_to_be_copied(device, kind, form):
    launched_records: list[LaunchRecord] = []
    x, w, c = normal(4, 6, 5), normal(5, 7), normal(4, 6, 7)
    shared = {"a matrix": w, "a batch of one": w[None], "expanded": np.broadcast_to(w, (4, 5, 7))}[form]
    with library(fake_logic(kind), device=device(TARGET), launched=launched_records.append) as lib:
        found = lib.matmul(x, shared, c=c, beta=2.0)
    np.testing.assert_allclose(found, x @ w + 2 * c, rtol=1e-4, atol=1e-4)
    assert [sorted(record.problem.sizes) for record in launched_records[:1]] == [[5, 7, 24]]


@pytest.mark.parametrize(
    ("a", "b", "sizes"),
    [
        ((4, 1, 5), (5, 7), (4, 7, 5)),
        ((4, 6, 5), (5, 1), (24, 1, 5)),
        ((1, 5), (4, 7, 5), (1, 28, 5)),
        ((6, 5), (4, 1, 5), (6, 4, 5)),
    ],
)
def test_matrices_of_one_row_or_column_that_share_an_operand_make_one_product_too(a, b, sizes):
    """The batch of b has its columns one behind the other, as rows of its transpose."""
    launched_records: list[LaunchRecord] = []
    left, right, bias = normal(*a), normal(*b) if len(b) == 2 else normal(*b).transpose(0, 2, 1), normal(sizes[1])
    out = np.zeros((4, 7, 1) if b == (4, 7, 5) else (4, 1, 6), np.float32).transpose(0, 2, 1) if len(a) == 2 else None
    kinds = map(fake_logic, TYPES)
    with library(*kinds, launched=launched_records.append) as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_allclose(lib.matmul(left, right, out), left @ right, rtol=1e-4, atol=1e-4)
        assert [sorted(record.problem.sizes) for record in launched_records] == [sorted(sizes)]
        bias = normal(right.shape[-1])
        np.testing.assert_allclose(lib.matmul(left, right, bias=bias), left @ right + bias, rtol=1e-4, atol=1e-4)


# --- a GPU with a BLAS ------------------------------------------------------------------------------------------------


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


def test_one_call_serves_a_batch_in_any_layout_without_a_copy(rig, monkeypatch):
    monkeypatch.setattr(TorchArrays, "copy", lambda *what: pytest.fail("copied"))
    lib = rig.library(*singles())
    cases = [
        (a, b)
        for a, b in itertools.product(layouts(rig, 3, 6, 5), layouts(rig, 3, 5, 7))
        if a.ndim + b.ndim > 4 and (a.ndim == 3 and a.stride(0) != 0)
    ]
    for a, b in cases:
        rig.device.calls.clear()
        rig.device.log.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = lib.matmul(a, b)
        np.testing.assert_allclose(numbers(found), product(a, b), rtol=1e-5, atol=1e-5)
        tall = rig.device.launches
        assert len(rig.device.calls) + len(tall) == 1, "one call, or one launch of a tall product"
        assert bool(tall) <= (b.ndim == 2 or b.stride(0) == 0)
        assert all(call.batch == 3 for call in rig.device.calls)
    assert len(cases) == 24


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
    a, b, c = normal(6, 5), normal(3, 5, 14)[:, :, 7:], normal(3, 6, 9)[:, :, :7]
    with pytest.warns(UserWarning, match="the vendor's BLAS"):
        found = lib.matmul(a, b, residual=c)
    np.testing.assert_allclose(found, a @ b + c, rtol=1e-4, atol=1e-4)
    assert len(rig.device.calls) == 1


def test_other_devices_of_the_host_are_left_alone():
    """The fake GPU has no BLAS, and NumPy does not multiply matrices on a GPU."""
    launched_records: list[LaunchRecord] = []
    from tunesmith.devices.fake import fake_target

    with library(fake_logic(NN), device=FakeDevice(fake_target("GPU")), launched=launched_records.append) as lib:
        lib.matmul(normal(3, 4, 5), normal(3, 5, 6))
    assert len(launched_records) == 3
