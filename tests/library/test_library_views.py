"""Where the elements of an array lie: what a `View` says, beside what NumPy says of the same array."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tunesmith.library.arrays._libraries import view_of_numpy
from tunesmith.library.arrays._view import NOT_YET, View

BATCH = np.zeros((3, 4, 5), np.float32)


def test_memory_that_is_to_be_allocated_may_be_written_and_is_in_the_machines_order():
    a = np.zeros((3, 4), np.dtype(np.float32).newbyteorder())
    a.flags.writeable = False
    view = view_of_numpy(a)
    assert (view.read_only, view.native) == (True, False)
    made = view.like("float64", (2, 5))
    assert (made.dtype, made.itemsize, made.shape, made.strides) == ("float64", 8, (2, 5), (40, 8))
    assert (made.address, made.read_only, made.native, made.owner, made.on_host) == (NOT_YET, False, True, None, True)


@pytest.mark.parametrize("array", [BATCH, BATCH[:, ::2], BATCH[:0], np.zeros((2, 3), np.int8), np.zeros(5)])
def test_the_bytes_of_all_elements_are_as_numpy_counts_them(array):
    view = view_of_numpy(array)
    assert (view.count, view.nbytes) == (array.size, array.nbytes)


def test_layouts_are_equal_at_addresses_of_one_alignment():
    view = view_of_numpy(BATCH)
    apart = {distance: replace(view, address=view.address + distance).layout for distance in (0, 16, 160, 4, 20)}
    assert apart[0] == apart[16] == apart[160] != apart[4] == apart[20]
    assert len({view.layout, replace(view, read_only=True).layout, replace(view, native=False).layout}) == 3


def test_a_gpu_is_the_arrays_own_or_the_one_that_the_driver_finds_at_its_address(monkeypatch):
    monkeypatch.setattr("tunesmith.devices.cuda.device.ordinal_of", lambda address: address % 7)
    there = View("float32", 4, (2, 3), (12, 4), 7000 + 5)
    assert (there.selector, replace(there, number=0).selector, replace(there, number=3).selector) == (
        *("CUDA:5", "CUDA:0", "CUDA:3"),
    )
    assert replace(there, on_host=True).selector == replace(there, shape=(0, 3)).selector == ""


def test_a_matrix_serves_a_batch_by_a_stride_of_0_and_a_batch_by_its_own():
    matrix, single, batch = (view_of_numpy(x) for x in (BATCH[0], BATCH[:1], BATCH))
    for view, length, step in ((matrix, 3, 0), (matrix, 1, 0), (single, 3, 0), (single, 1, 80), (batch, 3, 80)):
        made = view.batch(length)
        assert (made.shape, made.strides) == ((length, 4, 5), (step, 20, 4))
    first = batch.first()
    assert (first.shape, first.strides, first.address) == ((1, 4, 5), (80, 20, 4), batch.address)
    turned = batch.transposed()
    assert (turned.shape, turned.strides) == ((3, 5, 4), (80, 4, 20))


@pytest.mark.parametrize(
    ("array", "span"),
    [
        (BATCH, 240),
        (BATCH[:, :, 1:2], 4 * (2 * 20 + 3 * 5 + 1)),
        (BATCH[::2, ::3], 4 * (40 + 15 + 4 + 1)),
        (BATCH[:0], 0),
        (BATCH[0, 0, :1], 4),
    ],
)
def test_a_span_is_from_the_first_byte_to_the_last(array, span):
    assert view_of_numpy(array).span == span


@pytest.mark.parametrize("distance", [-8, -7, 0, 7, 8])
def test_arrays_overlap_if_they_share_a_byte(distance):
    memory = np.zeros(64, np.uint8)
    first, second = memory[16:24].view(np.int64), memory[16 + distance : 24 + distance]
    overlap = view_of_numpy(first).overlaps(view_of_numpy(second))
    assert overlap is np.may_share_memory(first, second)
    assert overlap is (abs(distance) < 8)


@pytest.mark.parametrize(
    ("shape", "strides", "overlaps"),
    [
        ((3, 4), (16, 4), False),
        ((3, 4), (12, 4), True),
        ((3, 4), (0, 4), True),
        ((1, 4), (0, 4), False),
        ((0, 4), (0, 4), False),
        ((3, 4), (4, 12), False),
        ((3, 4), (4, 8), True),
        ((2, 3), (12, 8), False),
        ((2, 3), (8, 8), True),
        ((4,), (3,), True),
        ((4,), (4,), False),
        ((4,), (-4,), False),
        ((2, 2), (-16, 4), False),
    ],
)
def test_an_array_overlaps_itself_if_two_elements_share_a_byte(shape, strides, overlaps):
    """Strides that are not nested, 12 and 8 bytes, may still keep elements apart."""
    memory = np.zeros(64, np.float32)
    start = 32 if min(strides) < 0 else 0
    view = view_of_numpy(np.ndarray(shape, np.float32, memory, 4 * start, strides))
    assert view.overlaps_itself is overlaps


@pytest.mark.parametrize(("strides", "overlaps"), [((8, 4), False), ((0, 4), True)])
def test_of_an_array_of_any_size_strides_alone_tell_that_it_is_dense_or_repeated(strides, overlaps):
    """No memory holds the addresses of so many elements."""
    assert View("float32", 4, (2**48, 2), strides, 4096).overlaps_itself is overlaps


@pytest.mark.parametrize(
    ("array", "contiguous"),
    [(BATCH, True), (BATCH[:, :1], False), (BATCH[:1], True), (BATCH[1:2, :, 1:], False), (BATCH[:, 2:2], True),
     (BATCH.transpose(0, 2, 1), False), (np.zeros((4, 1, 5))[:, ::-1], True)],
)  # fmt: skip
def test_an_array_is_contiguous_if_numpy_says_so(array, contiguous):
    assert view_of_numpy(array).contiguous is contiguous is array.flags.c_contiguous


@pytest.mark.parametrize(
    ("array", "tall"),
    [
        (BATCH, (12, 5)),
        (BATCH[:, :3], None),
        (BATCH[:2, :3], None),
        (BATCH[:, :1], (3, 5)),
        (BATCH[:1, :3], (3, 5)),
        (BATCH[:, :, 1:], (12, 4)),
        (np.zeros((3, 8, 5), np.float32)[:, ::2], (12, 5)),
        (BATCH[::-1], None),
    ],
)
def test_a_batch_is_one_tall_matrix_if_each_begins_where_the_last_one_ended(array, tall):
    found = view_of_numpy(array).one_below_the_other()
    if tall is None:
        assert found is None
    else:
        between_rows = array.strides[0 if array.shape[1] == 1 else 1]
        assert (found.shape, found.strides) == ((1, *tall), (0, between_rows, array.strides[2]))


@pytest.mark.parametrize(
    ("array", "transposed", "leading"),
    [
        (BATCH.transpose(0, 2, 1), False, 5),
        (BATCH, True, 5),
        (BATCH, False, None),
        (BATCH[:, :, 1:], True, 5),
        (BATCH[:, :, ::2], True, None),
        (BATCH[:, :3], True, None),
        (BATCH[:1, :3], True, 5),
        (BATCH[:, :, :1], True, 5),
        (BATCH[:1, :1, :3], True, 3),
        (BATCH[:1, :2, :3], True, 5),
        (np.zeros((1, 1, 5), np.float32), True, 5),
        (np.zeros((1, 1, 5), np.float32), False, 1),
        (np.zeros((3, 4, 5), np.int8)[:, :, :4], True, 5),
    ],
)
def test_the_leading_dimension_is_the_distance_between_columns_or_between_rows(array, transposed, leading):
    assert view_of_numpy(array).leading_dimension(transposed) == leading


@pytest.mark.parametrize(("length", "widest"), [(8, 24), (16, 32), (100, 200)], ids=["short", "at the turn", "long"])
def test_columns_on_the_host_may_lie_apart_by_their_own_length_or_by_16_elements(length, widest):
    for between, expected in ((widest, widest), (widest + 1, None)):
        array = np.zeros((1, 3, between), np.float32)[:, :, :length]
        assert view_of_numpy(array).leading_dimension(True) == expected


def test_the_elements_of_an_interleaved_batch_lie_side_by_side():
    storage = np.zeros((5, 6, 3), np.float32)
    for rows, leading in ((6, 6), (4, 6)):
        assert view_of_numpy(storage[:, :rows].T).leading_dimension(False, interleaved=True) == leading
    assert view_of_numpy(storage[:, :, :2].T).leading_dimension(False, interleaved=True) is None
    assert view_of_numpy(BATCH).leading_dimension(True, interleaved=True) is None


def test_elements_that_lie_across_borders_or_in_another_order_are_not_used_as_they_lie():
    memory = np.zeros(81, np.uint8)
    start = -memory.ctypes.data % 4
    for apart, expected in ((start, 5), (start + 1, None)):
        array = np.ndarray((1, 3, 5), np.float32, memory, apart)
        assert view_of_numpy(array).leading_dimension(True) == expected
    other = np.zeros((1, 3, 5), np.dtype(np.float32).newbyteorder())
    assert view_of_numpy(other).leading_dimension(True) is None
