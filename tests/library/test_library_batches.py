"""A batch in the host's memory that no problem type serves is one call of NumPy, not a launch for each matrix."""

from __future__ import annotations

import warnings

import ml_dtypes  # noqa: F401  (teaches NumPy the names of its types)
import numpy as np
import pytest

from library_fakes import DEVICES, TARGET, TYPES, library, normal
from library_fakes import logic as fake_logic
from tunesmith.devices.fake import FakeDevice
from tunesmith.library import LaunchRecord
from tunesmith.problems.gemm import gemm_type

NN = gemm_type(transpose_b=False)


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


def test_other_devices_of_the_host_are_left_alone():
    """The fake GPU has no BLAS, and NumPy does not multiply matrices on a GPU."""
    launched_records: list[LaunchRecord] = []
    from tunesmith.devices.fake import fake_target

    with library(fake_logic(NN), device=FakeDevice(fake_target("GPU")), launched=launched_records.append) as lib:
        lib.matmul(normal(3, 4, 5), normal(3, 5, 6))
    assert len(launched_records) == 3
