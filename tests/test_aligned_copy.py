"""The copy that TMA needs of operands with odd strides: every element at its place, nothing read behind the matrix."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from cuda_on_host import host_library, run_on_host
from tunesmith.kernels.gemm.cuda.aligned import ALIGNMENT, AlignedCopy, aligned_module, needs_copy
from tunesmith.records import Plan


@pytest.fixture(scope="module")
def compiled(tmp_path_factory) -> ctypes.CDLL:
    return host_library(aligned_module(), tmp_path_factory.mktemp("aligned"))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(
    ("batch", "rows", "length", "padding", "gap"), [(1, 5, 7, 0, 0), (2, 3, 71, 2, 5), (3, 1, 1, 0, 1)]
)
def test_rows_are_copied_to_aligned_places(compiled, dtype, batch, rows, length, padding, gap):
    leading = length + padding
    stride = leading * rows + gap
    random = np.random.default_rng(length)
    storage = random.integers(1, 200, stride * (batch - 1) + leading * (rows - 1) + length).astype(dtype)
    copy = AlignedCopy("A", batch, rows, length, leading, stride, storage.itemsize, offset=256)
    workspace = np.zeros(256 + copy.bytes, np.uint8)
    run_on_host(compiled, Plan((copy.launch(0),)), {"A": storage}, workspace)
    made = workspace[256:].view(dtype)
    for place in np.ndindex(batch, rows):
        at, to = (
            place[0] * one + place[1] * other for one, other in ((stride, leading), (copy.stride_to, copy.leading_to))
        )
        np.testing.assert_array_equal(made[to : to + length], storage[at : at + length])
    assert copy.leading_to * storage.itemsize % ALIGNMENT == 0
    assert not needs_copy(copy.leading_to, copy.stride_to, batch, storage.itemsize)


def test_no_word_behind_the_matrix_is_read(compiled):
    """The last row ends at the end of a page, behind which nothing may be touched."""
    size = mmap.PAGESIZE
    region = mmap.mmap(-1, 2 * size)
    view = np.frombuffer(region, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(view.ctypes.data + size), ctypes.c_size_t(size), 0) == 0
    storage = view[size - 3 * 10 : size].view(np.uint16)
    storage[:] = np.arange(15)
    copy = AlignedCopy("A", 1, 3, 5, 5, 15, 2)
    workspace = np.zeros(copy.bytes, np.uint8)
    run_on_host(compiled, Plan((copy.launch(0),)), {"A": storage}, workspace)
    rows = workspace.view(np.uint16)[: 3 * copy.leading_to].reshape(3, -1)[:, :5]
    np.testing.assert_array_equal(rows, np.arange(15).reshape(3, 5))


def test_only_strides_that_tma_refuses_need_a_copy():
    assert [needs_copy(leading, 64, 1, 2) for leading in (7, 8, 12, 16)] == [True, False, True, False]
    assert needs_copy(8, 12, 2, 2)
    assert not needs_copy(8, 12, 1, 2)
