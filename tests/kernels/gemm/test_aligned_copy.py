"""The copies that TMA and the tensor cores need of operands that lie otherwise: every element at its place, nothing
read behind the matrix and nothing written behind the copy."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from cuda_on_host import host_library, run_on_host
from cuda_runner import H200, toolchain
from tunesmith.kernels.gemm.cuda.aligned import ALIGNMENT, AlignedCopy, aligned_module, needs_copy
from tunesmith.records import Plan


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return host_library(aligned_module(), tmp_path_factory.mktemp("aligned"))


def check_every_element(compiled, copy, storage, guard=64):
    workspace = np.full(copy.offset + copy.bytes + guard, 0xEE, np.uint8)
    run_on_host(compiled, Plan((copy.launch(0, H200),)), {copy.name: storage}, workspace)
    made = workspace[copy.offset : copy.offset + copy.bytes].view(storage.dtype)
    for index in range(copy.batch):
        matrix = _rows(storage, index * copy.stride, copy.rows, copy.length, copy.leading)
        found = _rows(made, index * copy.stride_to, copy.rows_to, copy.length_to, copy.leading_to)
        np.testing.assert_array_equal(found, matrix.T if copy.transposed else matrix)
    assert (workspace[: copy.offset] == 0xEE).all()
    assert (workspace[copy.offset + copy.batch * copy.stride_to * copy.element :] == 0xEE).all()


def _rows(storage, first, rows, length, leading):
    size = storage.itemsize
    return np.lib.stride_tricks.as_strided(storage[first:], (rows, length), (leading * size, size))


@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(
    ("batch", "rows", "length", "padding", "gap"),
    [(1, 5, 7, 0, 0), (2, 3, 71, 2, 5), (3, 1, 1, 0, 1), (2, 131, 128, 1, 0), (1, 33, 257, 0, 0)],
)
def test_rows_or_columns_are_copied_to_aligned_places(compiled, transposed, dtype, batch, rows, length, padding, gap):
    """Some within a tile, some over several of them with edges in the middle of a word."""
    leading = length + padding
    stride = leading * rows + gap
    random = np.random.default_rng(length)
    elements = stride * (batch - 1) + leading * (rows - 1) + length
    storage = random.integers(0, np.iinfo(dtype).max, elements, dtype)
    copy = AlignedCopy("A", batch, rows, length, leading, stride, storage.itemsize, 256, transposed)
    check_every_element(compiled, copy, storage)
    assert copy.leading_to * storage.itemsize % ALIGNMENT == 0
    assert not needs_copy(copy.leading_to, copy.stride_to, batch, storage.itemsize)


@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(("batch", "rows", "leading", "stride"), [(1, 3, 2**30 + 1, 0), (2, 1, 5, 2**31 + 3)])
def test_rows_and_matrices_may_be_further_apart_than_32_bits_say(compiled, transposed, batch, rows, leading, stride):
    """Of the memory between them, none is touched and so none is taken."""
    copy = AlignedCopy("A", batch, rows, 5, leading, stride, 1, 0, transposed)
    storage = np.zeros(stride * (batch - 1) + leading * (rows - 1) + 5, np.uint8)
    for location, row in np.ndindex(batch, rows):
        first = location * stride + row * leading
        storage[first : first + 5] = 10 * (location + row) + np.arange(1, 6)
    check_every_element(compiled, copy, storage)


@pytest.mark.parametrize("transposed", [False, True], ids=["rows", "columns"])
def test_no_word_behind_the_matrix_is_read(compiled, transposed):
    """The last row ends at the end of a page, behind which nothing may be touched."""
    size = mmap.PAGESIZE
    region = mmap.mmap(-1, 2 * size)
    view = np.frombuffer(region, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(view.ctypes.data + size), ctypes.c_size_t(size), 0) == 0
    storage = view[size - 3 * 10 : size].view(np.uint16)
    storage[:] = np.arange(15)
    check_every_element(compiled, AlignedCopy("A", 1, 3, 5, 5, 15, 2, 0, transposed), storage)


def test_nvrtc_compiles_both_copies_without_a_gpu():
    facts = {fact.entry: fact for fact in toolchain("CUDA").compile(aligned_module(), H200).facts}
    assert set(facts) == {"align", "transpose"}
    assert not any(fact.spill_bytes for fact in facts.values())


def test_only_strides_that_tma_refuses_need_a_copy():
    assert [needs_copy(leading, 64, 1, 2) for leading in (7, 8, 12, 16)] == [True, False, True, False]
    assert needs_copy(8, 12, 2, 2)
    assert not needs_copy(8, 12, 1, 2)
