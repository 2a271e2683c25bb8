"""The calls of the host's BLAS: how many, with which arguments, and what is copied before them."""

from __future__ import annotations

import numpy as np
import pytest

from cublas_fakes import call, plain
from tunesmith.devices import LaunchError
from tunesmith.devices.host_blas import HostBlas

ADDRESSES = {"A": 0xA000, "B": 0xB000, "C": 0xC000, "D": 0xD000}


def kept():
    """A BLAS that keeps the arguments of its calls, as plain values."""
    asked = []
    return asked, HostBlas({"float32": lambda *arguments: asked.append([plain(argument) for argument in arguments])})


def test_each_matrix_of_a_batch_is_a_call_with_the_arguments_of_gemm_in_their_order():
    asked, blas = kept()
    for enqueue in blas.calls(call(beta=0.0), ADDRESSES):
        enqueue()
    a, b, d = 9 * 11 * 4, 10 * 11 * 4, 6 * 7 * 4
    assert asked == [
        [b"N", b"T", 5, 7, 11, 1.5, 0xA000 + i * a, 9, 0xB000 + i * b, 10, 0.0, 0xD000 + i * d, 6] for i in range(3)
    ]


@pytest.mark.parametrize(
    ("beta", "c", "copies"), [(0.5, 0xC000, 1), (0.0, 0xC000, 0), (0.5, 0xD000, 0), (0.0, 0xD000, 0)]
)
def test_c_is_copied_only_if_it_is_read_and_is_not_the_output(beta, c, copies):
    _, blas = kept()
    assert len(blas.calls(call(beta=beta), ADDRESSES | {"C": c})) == 3 + copies


def test_the_copy_is_of_the_columns_of_every_matrix_and_of_nothing_between_them():
    """C has columns of 5 in 8 elements and D in 6; their matrices follow at 60 and 50 elements."""
    source, target = np.arange(180, dtype=np.float32), np.full(150, -1, np.float32)
    _, blas = kept()
    step = call(stride_c=60, stride_d=50)
    copy, *_ = blas.calls(step, ADDRESSES | {"C": source.ctypes.data, "D": target.ctypes.data})
    copy()
    expected = np.full(150, -1, np.float32)
    for matrix in range(3):
        for column in range(7):
            for row in range(5):
                expected[50 * matrix + 6 * column + row] = source[60 * matrix + 8 * column + row]
    np.testing.assert_array_equal(target, expected)


def test_a_data_type_that_blas_does_not_have_is_refused():
    _, blas = kept()
    with pytest.raises(LaunchError, match="the host's BLAS has no float16"):
        blas.calls(call(dtype="float16"), ADDRESSES)
