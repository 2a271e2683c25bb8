"""`matmul` of torch tensors on a simulated GPU: which tensors are used as they lie, and which are copied."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from cuda_runner import H200
from gpu_fakes import WORKSPACE, Rig, close, every_type, expected, logic, numbers, product
from tunesmith.kernels import KERNELS
from tunesmith.library.launch._launcher import _asks_for_alignment
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem, UserError

NN = gemm_type(transpose_b=False)


@pytest.fixture
def rig(monkeypatch):
    return Rig(monkeypatch)


def views(rig, rows, columns, batch=0):
    """A matrix (or a batch) in every layout that a column-major problem has a type for."""
    lead = (batch,) if batch else ()
    yield rig.normal(*lead, rows, columns)
    yield rig.normal(*lead, columns, rows).mT
    if not batch:
        yield rig.normal(rows + 3, columns + 5)[2 : 2 + rows, 4 : 4 + columns]
        yield rig.normal(columns + 3, rows + 5)[1 : 1 + columns, 3 : 3 + rows].mT


@pytest.mark.parametrize("batch", [0, 3])
def test_views_with_a_type_of_their_own_are_taken_where_they_lie(rig, batch):
    """Row- and column-major tensors with any leading dimension and address take one launch and no copy."""
    lib = rig.library(*every_type())
    pairs = list(itertools.product(views(rig, 6, 5, batch), views(rig, 5, 7, batch)))
    for a, b in pairs:
        close(lib.matmul(a, b), product(a, b))
    assert len(rig.device.launches) == len(pairs)
    leading = {problem.leading for problem in rig.device.problems}
    assert len(leading) > 1 or batch


def test_a_row_major_result_is_the_transposed_problem_and_a_column_major_out_the_problem_itself(rig):
    lib = rig.library(*every_type())
    a, b = rig.normal(6, 5), rig.normal(5, 7)
    assert lib.matmul(a, b).is_contiguous()
    out = rig.on_gpu(rig.torch.zeros(7, 6)).mT
    assert lib.matmul(a, b, out) is out
    close(out, product(a, b))
    assert [problem.sizes for problem in rig.device.problems if len(problem.sizes) == 3] == [(7, 6, 5), (6, 7, 5)]


def test_what_lies_around_a_view_of_out_is_left_alone(rig):
    whole = rig.on_gpu(rig.torch.full((9, 12), 3.0))
    a, b = rig.normal(6, 5), rig.normal(5, 7)
    rig.library(*every_type()).matmul(a, b, out=whole[1:7, 2:9])
    close(whole[1:7, 2:9], product(a, b))
    whole[1:7, 2:9] = 3.0
    assert (whole == 3.0).all()


def test_a_batch_that_shares_its_weights_is_one_tall_problem(rig):
    """The weights are a matrix, a batch of one, or expanded. Sequences may have padding between them."""
    lib = rig.library(*every_type())
    x, w = rig.normal(4, 3, 5), rig.normal(5, 7)
    for weights in (w, w[None], w.expand(4, 5, 7)):
        close(lib.matmul(x, weights), product(x, w))
    padded = rig.normal(4, 3, 8)[:, :, :5]
    close(lib.matmul(padded, w), product(padded, w))
    assert {problem.sizes for problem in rig.device.problems} == {(7, 12, 5)}


@pytest.mark.parametrize("kinds", [every_type(), every_type()[:2], [gemm_type(batched=True)]], ids=len)
def test_one_matrix_serves_a_whole_batch(rig, kinds):
    """Either operand may be the single matrix, also if it has to be copied for each matrix of the batch."""
    lib = rig.library(*kinds)
    batch, single = rig.normal(4, 6, 5), rig.normal(5, 7)
    close(lib.matmul(batch, single), product(batch, single))
    close(lib.matmul(single.mT, batch.mT), product(single.mT, batch.mT))
    close(lib.matmul(single.mT[None], batch.mT), product(single.mT, batch.mT))
    out = rig.on_gpu(rig.torch.zeros(4, 6, 7)).mT
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = lib.matmul(single.mT, batch.mT, out, bias=rig.normal(6))
    close(found, product(single.mT, batch.mT) + numbers(rig.normal(6)))


def test_weights_in_a_layout_without_a_type_are_copied_once_and_not_for_each_of_the_batch(rig):
    lib = rig.library(gemm_type(transpose_b=False), gemm_type(transpose_b=False, batched=True))
    x, w = rig.normal(4, 6, 5), rig.normal(7, 5).mT
    for weights in (w, w[None], w.expand(4, 5, 7)):
        close(lib.matmul(x, weights), product(x, w))
    assert {problem.sizes for problem in rig.device.problems} == {(7, 24, 5)}


@pytest.mark.parametrize("batch", [2, 4])
def test_an_interleaved_batch_is_taken_as_it_lies_and_no_other_is_made_one(rig, batch):
    lib = rig.library(gemm_type(transpose_b=False, batched=True, interleaved=True), gemm_type(batched=True))
    a, b, out = (rig.normal(*shape, batch).permute(2, 0, 1) for shape in ((6, 5), (5, 7), (6, 7)))
    close(lib.matmul(a, b, out), product(a, b))
    a, b = rig.normal(batch, 6, 5), rig.normal(batch, 5, 7)
    close(lib.matmul(a, b), product(a, b))
    assert ["Interleaved" in problem.type.fields for problem in rig.device.problems] == [True, False]


@pytest.mark.parametrize("batch", [2, 4])
def test_nothing_is_copied_into_interleaved_order_where_less_would_have_to_be_copied(rig, batch):
    lib = rig.library(*(gemm_type(transpose_b=False, batched=True, interleaved=inside) for inside in (True, False)))
    a, out = (rig.normal(*shape, batch).permute(2, 0, 1) for shape in ((6, 5), (6, 7)))
    b = rig.normal(batch, 5, 7)
    close(lib.matmul(a, b, out), product(a, b))
    assert ["Interleaved" in problem.type.fields for problem in rig.device.problems] == [False]


def test_a_single_matrix_is_copied_for_an_interleaved_type(rig):
    lib = rig.library(gemm_type(transpose_b=False, batched=True, interleaved=True))
    a, b = rig.normal(12, 5)[::2], rig.normal(5, 14)[:, ::2]
    close(lib.matmul(a, b), product(a, b))
    assert ["Interleaved" in problem.type.fields for problem in rig.device.problems] == [True]


def test_a_batch_without_a_type_goes_one_by_one_without_copies(rig):
    lib = rig.library(*(gemm_type(transpose_a=a, transpose_b=b) for a, b in itertools.product([False, True], repeat=2)))
    a, b = rig.normal(4, 6, 5)[1:], rig.normal(3, 5, 7)
    close(lib.matmul(a, b), product(a, b))
    assert [problem.sizes for problem in rig.device.problems] == [(7, 6, 5)] * 3


@pytest.mark.parametrize(
    "make",
    [
        lambda rig: rig.normal(12, 5)[::2],
        lambda rig: rig.normal(6, 10)[:, ::2],
        lambda rig: rig.normal(1, 5).expand(6, 5),
        lambda rig: rig.normal(1, 5, 6)[0].mT[:, ::1],
    ],
    ids=["every second row", "every second column", "one row repeated", "transposed"],
)
def test_what_no_type_takes_is_copied_on_the_device(rig, make):
    """With a single type even a transposed operand has to be copied. The operand itself does not change."""
    lib = rig.library(NN)
    a, b = make(rig), rig.normal(5, 7)
    before = numbers(a).copy()
    close(lib.matmul(a, b), before @ numbers(b))
    assert (numbers(a) == before).all()


def test_out_may_be_an_operand_or_overlap_one(rig):
    lib = rig.library(*every_type())
    for index in range(3):
        tensors = [rig.normal(6, 6), rig.normal(6, 6) + 1, rig.normal(6, 6) - 1]
        reference = product(tensors[0], tensors[1]) + 2 * numbers(tensors[2])
        close(lib.matmul(*tensors[:2], out=tensors[index], c=tensors[2], beta=2.0), reference)
    whole = rig.normal(10, 6)
    reference = product(whole[:6], whole[2:8])
    close(lib.matmul(whole[:6], whole[2:8], out=whole[4:]), reference)


def test_whether_out_overlaps_is_asked_at_every_call(rig):
    """The layout is the same for all calls. A separate result is made and copied only if an overlap would do harm."""
    lib = rig.library(*every_type())
    whole, b = rig.normal(20, 6), rig.normal(6, 6)
    reference = product(whole[:6], b)
    made = []
    rig.torch_empty(made)
    for start, copies in ((6, 0), (3, 1), (12, 0)):
        a, made[:] = whole.clone(), []
        close(lib.matmul(a[:6], b, out=a[start : start + 6]), reference)
        assert made.count((6, 6)) == copies


@pytest.mark.parametrize("asks", ["Maps", "Promises"])
def test_an_address_that_a_solution_cannot_take_goes_to_one_that_can(rig, asks):
    """Tensor maps, and code that was compiled for multiples of 16, must not meet another address."""
    lib = rig.library(logic(NN, {asks: True}, {}))
    launched_records = []
    lib._begun_products().torch._launched = launched_records.append
    whole, b = rig.normal(6 * 5 + 1), rig.normal(5, 7)
    for start in (0, 1):
        a = whole[start : start + 30].view(6, 5)
        close(lib.matmul(a, b), product(a, b))
    assert [record.choice.name for record in launched_records] == ["S0", "S1"]


def test_where_every_solution_needs_aligned_addresses_others_are_copied(rig):
    lib = rig.library(logic(NN, {"Maps": True}))
    whole, b = rig.normal(6 * 5 + 1), rig.normal(5, 7)
    a, out = whole[1:].view(6, 5), rig.normal(6 * 7 + 1)[1:].view(6, 7)
    close(lib.matmul(a, b, out=out), product(a, b))
    aligned, other = whole[:30].view(6, 5), rig.normal(5 * 7 + 1)[1:].view(5, 7)
    close(lib.matmul(a, b), product(a, b))
    close(lib.matmul(aligned, other), product(aligned, other))
    with pytest.raises(UserError, match="alignment"):
        lib.matmul(rig.normal(3, 3, 5), rig.normal(3, 5, 3))


@pytest.mark.parametrize(("letter", "asks"), [("s", False), ("b", False), ("i8", True), ("f8", True)])
def test_the_vendors_blas_asks_for_aligned_addresses_of_one_byte_types_alone(letter, asks):
    family, kind = KERNELS["VendorBlas"], gemm_type(letter, transpose_a=True, transpose_b=False)
    plan = family.plan(family.space(kind).defaults, Problem(kind, (16, 16, 16)), H200)
    assert _asks_for_alignment(plan) == asks


def any_view(rig, random, shape):
    """A tensor of a shape in a random layout, from a random element."""
    torch, kind = rig.torch, random.integers(6)
    values = torch.from_numpy(random.standard_normal(shape).astype(np.float32))
    if kind == 0:
        made = values.mT.contiguous().mT
    elif kind == 1:
        wide = torch.full((*shape[:-2], shape[-2] + 2, shape[-1] + 3), torch.nan)
        made = wide[..., 1:-1, 2:-1].copy_(values)
    elif kind == 2:
        made = torch.full((*shape[:-2], shape[-2], 2 * shape[-1]), torch.nan)[..., ::2].copy_(values)
    elif kind == 3:
        made = values[..., :1, :].expand(shape)
    elif kind == 4:
        made = torch.empty(values.numel() + 1)[1:].view(shape).copy_(values)
    else:
        made = values
    return rig.on_gpu(made)


@pytest.mark.parametrize("seed", range(120))
def test_anything_gives_torchs_product(rig, seed):
    """Random sizes, layouts, batches, types with a logic, epilogues and outputs, some of which overlap an operand."""
    random = np.random.default_rng(seed)
    m, n, k, batch = (int(extent) for extent in random.integers(1, 7, 4))
    kinds = random.permutation(np.array([*every_type(), *every_type(bias=True, activation="relu")], object))
    plain = random.permutation(np.array(every_type(), object))[:1]
    config = {"Maps": bool(random.integers(2)), "Workspace": int(random.choice([0, WORKSPACE]))}
    served = dict.fromkeys([*kinds[: random.integers(6)], *plain])
    lib = rig.library(*(logic(kind, config, {"Workspace": config["Workspace"]}) for kind in served))
    lead = [(batch,) if random.integers(2) else () for _ in range(2)]
    a, b = any_view(rig, random, (*lead[0], m, k)), any_view(rig, random, (*lead[1], k, n))
    shape = (*max(lead), m, n)
    options = {"bias": any_view(rig, random, (1, n))[0], "activation": "relu"} if random.integers(2) else {}
    if random.integers(2):
        options["residual"] = any_view(rig, random, shape)
    if random.integers(2):
        out = any_view(rig, random, shape)
        options["out"] = out.clone() if 0 in out.stride() else out
    elif "residual" in options and 0 not in options["residual"].stride():
        options["out"] = options["residual"]
    reference = expected(a, b, options.get("bias"), options.get("activation", "none"), options.get("residual"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2 if "out" not in options else 1):
            found = lib.matmul(a, b, **options)
            close(found, reference)
    assert found is options.get("out", found)
    lib.close()


@pytest.mark.parametrize(("m", "n", "k"), [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_empty_extents_give_what_torch_gives_without_a_launch(rig, m, n, k):
    lib = rig.library(NN)
    a, b, c = rig.normal(m, k), rig.normal(k, n), rig.normal(m, n)
    close(lib.matmul(a, b), product(a, b))
    bias = rig.normal(n)
    close(lib.matmul(a, b, bias=bias, activation="relu", residual=c), np.maximum(numbers(bias), 0) + numbers(c))
    assert rig.device.launches == []


def test_one_by_one_by_one(rig):
    close(rig.library(NN).matmul(rig.normal(1, 1), rig.normal(1, 1)), product(rig.normal(1, 1), rig.normal(1, 1)))
