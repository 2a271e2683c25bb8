"""The GEMM operation: names, layouts, and a bound that honest sums stay within and mutants do not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import Gemm, gemm_type, reference, strided
from tunesmith.records import Configuration, Problem

GEMM = OPERATIONS["GEMM"]
KS = (1, 2, 3, 7, 64, 1000, 4096)
SEEDS = 24


def scalars(alpha=1.0, beta=0.0):
    return Configuration({"alpha": alpha, "beta": beta})


def batch_of_seeds(k, data_type="s", alpha=1.0, beta=0.0, seed=0):
    """A 5 x 5 problem whose batch holds independent draws, its operands (batch first) and what D must be."""
    problem = Problem(gemm_type(data_type, batched=True), (5, 5, SEEDS, k), (), scalars(alpha, beta))
    inputs = GEMM.inputs(problem, np.random.default_rng(seed))
    views = {o.name: strided(o, inputs[o.name]) for o in GEMM.operands(problem) if o.name in inputs}
    a, b, c = (np.ascontiguousarray(np.moveaxis(views[name], 2, 0)) for name in "ABC")
    return a, b, c, GEMM.reference(problem, inputs)["D"]


def right(out, expected):
    """For each matrix of the batch, whether all of it is within the bound."""
    error = np.abs(np.moveaxis(out, 0, 2).astype(np.float64) - expected.value)
    return (error <= expected.bound).all(axis=(0, 1))


def sequential(a, b):
    total = np.zeros((*a.shape[:2], b.shape[2]), a.dtype)
    for i in range(a.shape[2]):
        total += a[:, :, i, None] * b[:, None, i, :]
    return total


def pairwise(a, b):
    k = a.shape[2]
    if k == 1:
        return a * b
    half = k // 2
    return pairwise(a[:, :, :half], b[:, :half]) + pairwise(a[:, :, half:], b[:, half:])


def blocked(a, b):
    """Split-K: the sums of runs of 48 terms, added at the end."""
    starts = range(0, a.shape[2], 48)
    return sum((sequential(a[:, :, i : i + 48], b[:, i : i + 48]) for i in starts), np.zeros((), a.dtype))


ORDERS = {
    "sequential": sequential,
    "from the end": lambda a, b: sequential(a[:, :, ::-1], b[:, ::-1]),
    "pairwise": pairwise,
    "blocked": blocked,
    "BLAS": np.matmul,
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("data_type", ["s", "d"])
def test_an_honest_sum_in_any_order_stays_within_the_bound(order, data_type):
    for k in KS:
        a, b, _, expected = batch_of_seeds(k, data_type)
        assert right(ORDERS[order](a, b), expected).all(), k


@pytest.mark.parametrize("order", ORDERS)
def test_an_honest_sum_of_terms_with_one_sign_stays_within_the_bound(order):
    """The worst case of a sequential sum, which inputs with random signs do not show."""
    for k in KS:
        a, b, _, _ = batch_of_seeds(k)
        a, b = np.abs(a), np.abs(b)
        expected = reference.expected(np.moveaxis(a, 0, 2), np.moveaxis(b, 0, 2), None, 1.0, 0.0)
        assert right(ORDERS[order](a, b), expected).all(), k


def test_honest_scalars_stay_within_the_bound():
    for k in KS:
        for alpha, beta in [(0.1, 0.3), (-0.75, 1.25), (1e-3, 1e3), (1e3, 1e-3), (0.0, 0.7)]:
            a, b, c, expected = batch_of_seeds(k, alpha=alpha, beta=beta)
            alpha32, beta32 = np.float32(alpha), np.float32(beta)
            assert right(alpha32 * sequential(a, b) + beta32 * c, expected).all(), (k, alpha, beta)
            assert right(sequential(alpha32 * a, b) + beta32 * c, expected).all(), (k, alpha, beta)


MUTANTS = {
    "last K step skipped": lambda a, b: sequential(a[:, :, :-1], b[:, :-1]),
    "first K step skipped": lambda a, b: sequential(a[:, :, 1:], b[:, 1:]),
    "last K step twice": lambda a, b: sequential(a, b) + a[:, :, -1:] * b[:, -1:],
    "operands swapped": lambda a, b: sequential(b.transpose(0, 2, 1), a.transpose(0, 2, 1)),
    "row off by one": lambda a, b: sequential(np.roll(a, 1, axis=1), b),
    "column off by one": lambda a, b: sequential(a, np.roll(b, 1, axis=2)),
    "address of A off by one": lambda a, b: sequential(np.roll(a.reshape(len(a), -1), 1, axis=1).reshape(a.shape), b),
    "next matrix of the batch": lambda a, b: sequential(a, np.roll(b, 1, axis=0)),
}


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("k", KS)
def test_a_mutant_leaves_the_bound_at_every_k(mutant, k):
    for seed in range(4):
        a, b, _, expected = batch_of_seeds(k, seed=seed)
        assert not right(MUTANTS[mutant](a, b), expected).any()


@pytest.mark.parametrize("k", KS)
def test_one_missing_term_in_one_element_is_seen(k):
    a, b, _, expected = batch_of_seeds(k)
    out = sequential(a, b)
    out[:, 4, 4] -= a[:, 4, -1] * b[:, -1, 4]
    assert not right(out, expected).any()


@pytest.mark.parametrize("k", KS)
def test_a_kernel_that_mistakes_its_scalars_is_seen(k):
    a, b, c, expected = batch_of_seeds(k, alpha=-0.75, beta=1.25)
    product, alpha, beta = sequential(a, b), np.float32(-0.75), np.float32(1.25)
    assert right(alpha * product + beta * c, expected).all()
    for wrong in (alpha * product, product + beta * c, alpha * product + c, beta * product + alpha * c,
                  alpha * (product + beta * c), alpha * product + beta * c.transpose(0, 2, 1)):  # fmt: skip
        assert not right(wrong, expected).any()


def test_half_precision_operands_do_not_pass_for_single():
    for k in (1, 2, 3, 7, 64, 1000):
        a, b, _, expected = batch_of_seeds(k)
        rounded = (operand.astype(np.float16).astype(np.float32) for operand in (a, b))
        assert not right(sequential(*rounded), expected).any()


HALF_KS = (1, 2, 3, 7, 64, 1000)


def in_single(a, b):
    """As a kernel for half precision adds up: products and sums in single precision."""
    return sequential(a.astype(np.float32), b.astype(np.float32))


@pytest.mark.parametrize("k", HALF_KS)
def test_half_precision_is_right_with_wider_sums_only(k):
    """Rounded once, at the end; and beta C added before that."""
    for alpha, beta in [(1.0, 0.0), (-0.75, 1.25)]:
        a, b, c, expected = batch_of_seeds(k, "h", alpha, beta)
        sums = np.float32(alpha) * in_single(a, b) + np.float32(beta) * (c.astype(np.float32) if beta else 0)
        assert right(sums.astype(np.float16), expected).all(), (alpha, beta)
    if k >= 64:
        a, b, _, expected = batch_of_seeds(k, "h")
        assert not right(sequential(a, b), expected).all()


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("k", HALF_KS)
def test_a_mutant_in_half_precision_leaves_the_bound(mutant, k):
    a, b, _, expected = batch_of_seeds(k, "h")
    made = MUTANTS[mutant](a.astype(np.float32), b.astype(np.float32)).astype(np.float16)
    assert not right(made, expected).any()


def test_an_element_that_nobody_wrote_is_not_right():
    a, b, _, expected = batch_of_seeds(8)
    out = sequential(a, b)
    out[:, 0, 0] = np.nan
    assert not right(out, expected).any()


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("padding", [0, 3])
def test_the_reference_reads_storage_as_blas_lays_it_out(transpose_a, transpose_b, padding):
    """Against plain loops over column-major storage with leading dimensions."""
    m, n, batch, k = 4, 3, 2, 5
    problem_type = gemm_type("d", transpose_a=transpose_a, transpose_b=transpose_b, batched=True)
    natural = [extent for _, extent in GEMM.leading(problem_type, (m, n, batch, k))]
    leading = tuple(extent + padding for extent in natural)
    problem = Problem(problem_type, (m, n, batch, k), leading if padding else (), scalars(2.0, 0.5))
    inputs = GEMM.inputs(problem, np.random.default_rng(1))
    _, ldc, lda, ldb = leading
    columns_a, columns_b = (m if transpose_a else k), (k if transpose_b else n)

    def element(z, i, j):
        total = 0.0
        for s in range(k):
            at_a = z * lda * columns_a + (i * lda + s if transpose_a else i + s * lda)
            at_b = z * ldb * columns_b + (s * ldb + j if transpose_b else s + j * ldb)
            total += inputs["A"][at_a] * inputs["B"][at_b]
        return 2.0 * total + 0.5 * inputs["C"][z * ldc * n + i + j * ldc]

    plain = np.array([[[element(z, i, j) for z in range(batch)] for j in range(n)] for i in range(m)])
    expected = GEMM.reference(problem, inputs)["D"]
    assert (np.abs(plain - expected.value) <= expected.bound).all()
    assert Gemm.of(problem).stride_b == ldb * columns_b


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("padding", [0, 3])
def test_an_interleaved_batch_is_the_fastest_index(transpose_a, transpose_b, padding):
    """Matrix z of storage seen as columns x rows x batch is what the same type gives without interleaving."""
    m, n, batch, k = 4, 3, 5, 6
    problem_type = gemm_type("d", transpose_a=transpose_a, transpose_b=transpose_b, batched=True, interleaved=True)
    natural = [extent for _, extent in GEMM.leading(problem_type, (m, n, batch, k))]
    _, ldc, lda, ldb = leading = tuple(extent + padding for extent in natural)
    problem = Problem(problem_type, (m, n, batch, k), leading if padding else (), scalars(2.0, 0.5))
    inputs = GEMM.inputs(problem, np.random.default_rng(1))

    def columns(name, leading, transposed):
        """The matrices of an operand, batch first, from storage padded to whole columns."""
        storage = np.full(-(-inputs[name].size // (leading * batch)) * leading * batch, np.nan)
        storage[: inputs[name].size] = inputs[name]
        stack = np.moveaxis(storage.reshape(-1, leading, batch), 2, 0)
        return stack if transposed else stack.swapaxes(1, 2)

    a = columns("A", lda, transpose_a)[:, :m, :k]
    b = columns("B", ldb, transpose_b)[:, :k, :n]
    c = columns("C", ldc, False)[:, :m, :n]
    expected = GEMM.reference(problem, inputs)["D"]
    assert right(2.0 * (a @ b) + 0.5 * c, expected).all()
    gemm = Gemm.of(problem)
    assert (gemm.stride_a, gemm.step) == (1, batch)


def test_inputs_have_no_zeros_and_nan_where_nobody_may_read():
    problem = Problem(gemm_type(), (6, 4, 5), (6, 9, 8, 7), scalars())
    inputs = GEMM.inputs(problem, np.random.default_rng(0))
    assert set(inputs) == {"A", "B", "C"}
    assert np.isnan(inputs["C"]).all()
    for operand in GEMM.operands(problem)[:2]:
        values = strided(operand, inputs[operand.name])
        assert ((np.abs(values) >= 0.5) & (np.abs(values) <= 1)).all()
        assert (values > 0).any()
        assert (values < 0).any()
        assert np.isnan(inputs[operand.name]).sum() == operand.storage_elements - values.size > 0
    assert not np.isfinite(inputs["A"][6:8]).any()


def test_a_type_without_beta_has_a_c_that_must_not_be_read():
    problem = Problem(gemm_type(use_beta=False), (6, 4, 5), (), scalars())
    assert np.isnan(GEMM.inputs(problem, np.random.default_rng(0))["C"]).all()
    assert all(Gemm.of(check).beta == 0 for check in GEMM.checks(problem))


@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_every_problem_is_checked_with_and_without_beta_itself_first(beta):
    problem = Problem(gemm_type(), (6, 4, 5), (), scalars(beta=beta))
    checks = GEMM.checks(problem)
    assert checks[0] == problem
    assert sorted(Gemm.of(check).beta == 0 for check in checks) == [False, True]
    assert {check.sizes for check in checks} == {problem.sizes}
    assert all(Gemm.of(check).alpha not in (1.0, Gemm.of(check).beta) for check in checks[1:])


def test_scalars_reach_the_reference_as_a_kernel_receives_them():
    assert Gemm.of(Problem(gemm_type("s"), (2, 2, 2), (), scalars(0.1))).alpha == float(np.float32(0.1))
    assert Gemm.of(Problem(gemm_type("d"), (2, 2, 2), (), scalars(0.1))).alpha == 0.1


@pytest.mark.parametrize("batched", [False, True])
def test_a_big_problem_is_sampled_and_agrees_with_the_whole(monkeypatch, batched):
    sizes = (61, 83, 11, 17) if batched else (61, 83, 17)
    problem = Problem(gemm_type(batched=batched), sizes, (), scalars(1.5, 0.5))
    inputs = GEMM.inputs(problem, np.random.default_rng(3))
    whole = GEMM.reference(problem, inputs)["D"]
    monkeypatch.setattr(reference, "MOST_FLOPS", 2 * 17 * 900)
    sampled = GEMM.reference(problem, inputs)["D"]
    np.testing.assert_allclose(sampled.value, whole.value[sampled.where], rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(sampled.bound, whole.bound[sampled.where], rtol=1e-12)
    assert 100 < sampled.value.size <= 900
    looked_at = np.zeros(whole.value.shape, bool)
    looked_at[sampled.where] = True
    corners = looked_at[np.ix_(*([0, -1] for _ in looked_at.shape))]
    assert corners.all()


@pytest.mark.parametrize("sizes", [(500, 1, 40), (1, 500, 40), (500, 7, 40), (300, 2, 40, 3), (2, 9, 4000)])
@pytest.mark.parametrize("transposed", [False, True])
def test_of_a_product_with_few_columns_or_rows_no_more_is_read_than_allowed(sizes, transposed, monkeypatch):
    """Although it has few elements and needs few operations."""
    kind = gemm_type(batched=len(sizes) == 4, transpose_a=transposed, transpose_b=transposed)
    problem = Problem(kind, sizes, (), scalars(1.5, 0.5))
    inputs = GEMM.inputs(problem, np.random.default_rng(3))
    whole = GEMM.reference(problem, inputs)["D"]
    read, gathered = [], reference._matrices

    def matrices(*arguments):
        read.append(gathered(*arguments))
        return read[-1]

    monkeypatch.setattr(reference, "MOST_READ", 4000)
    monkeypatch.setattr(reference, "_matrices", matrices)
    sampled = GEMM.reference(problem, inputs)["D"]
    np.testing.assert_allclose(sampled.value, whole.value[sampled.where], rtol=1e-14, atol=1e-14)
    # Never fewer than two rows and columns, the first and the last, if there are as many.
    least = 2 * sizes[2] * (sizes[3] if len(sizes) == 4 else 1)
    assert all(part.size <= max(4000, least) for part in read)
    assert sampled.value.size < whole.value.size
    looked_at = np.zeros(whole.value.shape, bool)
    looked_at[sampled.where] = True
    assert looked_at[np.ix_(*([0, -1] for _ in looked_at.shape))].all()


def test_all_matrices_of_a_batch_of_small_products_are_checked():
    """Although the batch has more elements than may be read of an operand."""
    problem = Problem(gemm_type(batched=True), (16, 16, 40, 1024), (), scalars(1.0, 0.0))
    assert reference.MOST_READ < 16 * 1024 * 40 * 16
    inputs = GEMM.inputs(problem, np.random.default_rng(3))
    assert GEMM.reference(problem, inputs)["D"].where == (...,)


@given(st.integers(1, 5000), st.integers(1, 400))
def test_sampled_places_leave_no_wide_gap(extent, count):
    places = reference.spread(extent, count)
    assert len(places) <= max(count, 1)
    assert places[-1] == extent - 1
    assert (np.diff(places) > 0).all()
    if count > 1:
        assert places[0] == 0
        assert np.diff(places, prepend=0, append=extent - 1).max() <= 2 * extent / count + 1


def test_work_and_traffic_are_counted_by_convention():
    problem = Problem(gemm_type("d", batched=True), (2, 3, 5, 7), (), scalars())
    assert GEMM.flops(problem) == 2 * 2 * 3 * 5 * 7
    assert GEMM.bytes(problem) == 8 * 5 * (2 * 7 + 7 * 3 + 2 * 3)
    with_beta = Problem(problem.type, problem.sizes, (), scalars(beta=1.0))
    assert GEMM.bytes(with_beta) - GEMM.bytes(problem) == 8 * 5 * 2 * 3


@given(st.tuples(*[st.integers(1, 500)] * 4))
def test_a_small_problem_is_no_larger_and_keeps_type_and_scalars(sizes):
    problem = Problem(gemm_type(batched=True), sizes, (999, 999, 999, 999), scalars(2.0, 3.0))
    small = GEMM.small(problem)
    assert all(0 < s <= size for s, size in zip(small.sizes, sizes, strict=True))
    assert (small.type, small.scalars) == (problem.type, problem.scalars)
    assert GEMM.flops(small) <= 2 * 64**3 * 2


@pytest.mark.parametrize("kind", [gemm_type(), gemm_type(transpose_a=True, batched=True)], ids=["plain", "batched"])
@pytest.mark.parametrize("leading", [(), (9, 8, 13, 17), (7, 7, 13, 5)])
def test_leading_dimensions_are_read_off_the_operands_strides(kind, leading):
    sizes = (7, 5, 3, 11) if "Batch" in kind.indices else (7, 5, 11)
    natural = tuple(least for _, least in GEMM.leading(kind, sizes))
    if leading:
        leading = tuple(max(stride, least) for stride, least in zip(leading, natural, strict=True))
    strides = {operand.name: operand.strides for operand in GEMM.operands(Problem(kind, sizes, leading))}
    assert GEMM.leading_from(kind, sizes, strides) == leading
    assert GEMM.leading_from(kind, sizes, {}) == (), "what nothing tells is natural"
    leading_found = GEMM.leading_from(kind, sizes, {"A": strides["A"]}) or natural
    assert leading_found == (*natural[:2], (leading or natural)[2], natural[3])


def test_a_dimension_of_one_element_tells_no_leading_dimension():
    """NumPy gives any stride to it."""
    assert GEMM.leading_from(gemm_type(), (7, 1, 1), {"A": (1, 999), "D": (1, 999)}) == ()
