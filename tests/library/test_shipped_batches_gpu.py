"""Batches by the logic in the package, on a real GPU: right in every layout, and one launch where they are dense."""

from __future__ import annotations

import sys

import pytest

import tunesmith
from cuda_runner import torch_on_gpu
from native_build import built
from tunesmith.kernels import VENDOR
from tunesmith.logic import Rule
from tunesmith.problems.gemm import torch_type

pytestmark = pytest.mark.gpu

MOST_ELEMENTS = 1 << 22
LAYOUTS = {"x @ w.t()": (False, True), "x @ w": (False, False), "x.t() @ y": (True, False)}
"""Whether x and w are stored transposed."""


@pytest.fixture(scope="module")
def torch():
    torch = torch_on_gpu()
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip("the package has no logic of batches for this GPU")
    return torch


@pytest.fixture(params=["compiled", "python"])
def launches(request, torch, monkeypatch, tmp_path_factory):
    """The short way of repeated calls: compiled, or in Python."""
    module = built(tmp_path_factory.getbasetemp()) if request.param == "compiled" else None
    if isinstance(module, str):
        pytest.skip(module)
    monkeypatch.setitem(sys.modules, "tunesmith_native", module)
    # The vendor's sums are strict then.
    for setting in ("allow_bf16_reduced_precision_reduction", "allow_fp16_reduced_precision_reduction"):
        monkeypatch.setattr(torch.backends.cuda.matmul, setting, False)
    return request.param


def operands(torch, dtype, layout, rows, columns, batch, inner):
    """x of `batch` x `rows` x `inner` and w of `batch` x `inner` x `columns`, stored in a layout."""
    transposed = LAYOUTS[layout]
    shapes = (batch, rows, inner), (batch, inner, columns)
    return [
        torch.randn(*((size, last, first) if turned else (size, first, last)), device="cuda", dtype=dtype).transpose(
            1, 2 if turned else 1
        )
        for (size, first, last), turned in zip(shapes, transposed, strict=True)
    ]


def is_right(torch, found, a, b):
    """Whether a result is within the most that float32 sums may be off, if each is cut off instead of rounded, and one
    spacing of its type, of the product in double precision."""
    exact, size = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    cut_off = 2.0**-23 * a.shape[2]
    return bool(((found.double() - exact).abs() <= cut_off * size + torch.finfo(found.dtype).eps * exact.abs()).all())


def small_sizes(library, kind, count):
    """The first sizes of a type that were measured."""
    measured = library.measured_sizes(kind)
    return [(m, n, batch, k) for m, n, batch, k in measured if max(m * n, m * k, n * k) * batch <= MOST_ELEMENTS][
        :count
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches_are_right_at_measured_sizes_and_beside_them(torch, launches, layout):
    launched = []
    with tunesmith.load(device="CUDA", launched=launched.append) as telling, tunesmith.load(device="CUDA") as library:
        x_turned, w_turned = LAYOUTS[layout]
        kind = torch_type("b", transpose_a=w_turned, transpose_b=x_turned, batched=True)
        measured = small_sizes(library, kind, 12)
        beside = [(m + 1, n + 1, batch, k + 1) for m, n, batch, k in measured]
        for m, n, batch, k in (*measured, *beside):
            a, b = operands(torch, torch.bfloat16, layout, n, m, batch, k)
            assert is_right(torch, telling.matmul(a, b), a, b)
            for _ in range(3):
                a, b = operands(torch, torch.bfloat16, layout, n, m, batch, k)
                assert is_right(torch, library.matmul(a, b), a, b), (m, n, batch, k)
        assert [record.problem.sizes for record in launched] == [*measured, *beside], "one launch for each batch"
        rules = [record.choice.rule for record in launched]
        if rules[0] is not Rule.SIBLING:  # on an H200
            assert rules == [Rule.EXACT] * len(measured) + [Rule.PREDICTED] * len(beside)
        assert {record.choice.solution.kernel for record in launched} - {VENDOR}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_heads_of_attention_that_are_slices_of_one_tensor_are_right(torch, launches, dtype):
    """Queries, keys and values are slices of one tensor, and a matrix may serve the whole batch."""
    batch, length, heads, width = 4, 197, 12, 64
    with tunesmith.load() as library:
        for _ in range(3):
            whole = torch.randn(batch, length, 3, heads, width, device="cuda", dtype=getattr(torch, dtype))
            for index in range(batch):
                queries, keys, values = whole[index].permute(1, 2, 0, 3)
                scores = library.matmul(queries, keys.transpose(1, 2))
                assert is_right(torch, scores, queries, keys.transpose(1, 2))
                assert is_right(torch, library.matmul(scores, values), scores, values)
            shared = torch.randn(1, width, 40, device="cuda", dtype=queries.dtype).expand(heads, width, 40)
            assert is_right(torch, library.matmul(queries, shared), queries, shared)
            out = torch.empty(heads, length, length, device="cuda", dtype=queries.dtype)
            assert library.matmul(queries, keys.transpose(1, 2), out) is out
            assert torch.equal(out, library.matmul(queries, keys.transpose(1, 2)))
