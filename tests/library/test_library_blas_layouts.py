"""The layouts in which NumPy gets batches, so that it gives each matrix to its BLAS."""

from __future__ import annotations

import numpy as np
import pytest

from library_fakes import normal
from tunesmith.library.gemm._by_numpy import _as_blas_takes, is_blas_matrix


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_that_serves_the_whole_batch_stays_a_single_one(dtype):
    """A copy for each of the batch would take as long as the products."""
    single = normal(5, 7)
    taken = _as_blas_takes(np.broadcast_to(single, (4, 5, 7)), np.dtype(dtype))
    assert (taken.shape, taken.dtype.name) == ((1, 5, 7), dtype)
    np.testing.assert_array_equal(taken[0], single)


def test_a_row_that_is_every_row_of_a_matrix_is_no_single_matrix():
    row = normal(7)
    taken = _as_blas_takes(np.broadcast_to(row, (5, 7)), np.dtype("float32"))
    assert taken.shape == (5, 7)
    assert (taken == row).all()


@pytest.mark.parametrize(
    ("array", "is_taken"),
    [
        (normal(3, 5, 7), True),
        (normal(3, 5, 7).transpose(0, 2, 1), True),
        (normal(3, 5, 9)[:, :, 2:], True),
        (normal(3, 9, 7)[:, ::3], True),
        (normal(3, 5, 14)[:, :, ::2], False),
        (normal(5, 7, 3).transpose(2, 0, 1), False),
        (normal(3, 5, 7)[:, :, ::-1], False),
        (normal(3, 5, 7)[:, ::-1], False),
        (np.broadcast_to(normal(7), (5, 7)), False),
        (np.ndarray((5, 7), np.float32, bytearray(200), 0, (30, 4)), False),
        (np.ndarray((7, 5), np.float32, bytearray(200), 0, (4, 30)), False),
        (np.ndarray((5, 7), np.float32, bytearray(200), 0, (24, 4)), False),
        (np.ndarray((7, 5), np.float32, bytearray(200), 0, (4, 24)), False),
    ],
)
def test_rows_or_columns_must_be_contiguous_apart_and_at_whole_elements(array, is_taken):
    """Others are copied; those that BLAS takes are multiplied as they lie."""
    assert is_blas_matrix(array) is is_taken
    taken = _as_blas_takes(array, np.dtype("float32"))
    assert np.shares_memory(taken, array) is is_taken
    assert is_blas_matrix(taken)
    np.testing.assert_array_equal(taken, array)
