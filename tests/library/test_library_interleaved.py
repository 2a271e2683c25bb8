"""Interleaved batches in the library: used in place with a logic for them, copied without one."""

from __future__ import annotations

import numpy as np
import pytest

from library_fakes import DEVICES, TARGET, close, library, logic, normal
from tunesmith.library import LaunchRecord
from tunesmith.problems.gemm import gemm_type

STRIDED = gemm_type(transpose_b=False, batched=True)
INTERLEAVED = gemm_type(transpose_b=False, batched=True, interleaved=True)
ROWS = {(64, 64, 64, 64): 0}


def interleaved(values, padding=0):
    """The same batch x rows x columns, column-major, with its batch the fastest index."""
    batch, rows, columns = values.shape
    storage = np.full((columns, rows + padding, batch), np.nan, values.dtype)
    view = storage[:, :rows].T
    view[...] = values
    return view


def launched_for(a, b, out, *kinds, device=DEVICES[0], **more):
    """The launch of a library with these types. Asserts that the product is right."""
    launches: list[LaunchRecord] = []
    with library(*(logic(kind, rows=ROWS) for kind in kinds), device=device(TARGET), launched=launches.append) as lib:
        lib.matmul(a, b, out=out, **more)
    (launched,) = launches
    close(out, a.astype(float) @ b.astype(float) + (0.5 * more["c"] if "c" in more else 0))
    return launched


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("padding", [0, 3])
def test_an_interleaved_batch_goes_to_the_logic_for_it(device, padding):
    a, b = interleaved(normal(5, 7, 4), padding), interleaved(normal(5, 4, 6), padding)
    out = interleaved(np.zeros((5, 7, 6), np.float32), padding)
    record = launched_for(a, b, out, STRIDED, INTERLEAVED, device=device)
    assert record.problem.type == INTERLEAVED
    assert record.problem.sizes == (7, 6, 5, 4)
    assert record.problem.leading == ((7 + padding, 7 + padding, 7 + padding, 4 + padding) if padding else ())
    if padding:
        assert np.isnan(out.base[:, 7:]).all(), "what lies between the columns is left alone"


def test_batches_one_after_the_other_go_to_theirs():
    out = np.zeros((5, 7, 6), np.float32)
    assert launched_for(normal(5, 7, 4), normal(5, 4, 6), out, STRIDED, INTERLEAVED).problem.type == STRIDED


@pytest.mark.parametrize("device", DEVICES)
def test_where_there_is_no_such_logic_batches_are_copied(device):
    a, b, c = interleaved(normal(5, 7, 4)), interleaved(normal(5, 4, 6)), interleaved(normal(5, 7, 6))
    out = interleaved(np.zeros((5, 7, 6), np.float32))
    assert launched_for(a, b, out, STRIDED, device=device, c=c, beta=0.5).problem.type == STRIDED
    plain = np.zeros((5, 7, 6), np.float32)
    record = launched_for(normal(5, 7, 4), normal(5, 4, 6), plain, INTERLEAVED, device=device)
    assert record.problem.type == INTERLEAVED


def test_a_single_matrix_is_both():
    out = np.zeros((7, 6), np.float32, order="F")
    a, b = np.asfortranarray(normal(7, 4)), np.asfortranarray(normal(4, 6))
    assert launched_for(a, b, out, INTERLEAVED).problem.sizes == (7, 6, 1, 4)
