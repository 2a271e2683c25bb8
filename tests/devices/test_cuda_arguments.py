"""The bytes that a CUDA kernel is launched with."""

from __future__ import annotations

import ctypes
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.devices import LaunchError
from tunesmith.devices.cuda.arguments import ALIGNMENT, Convention, Parameters, TensorMap, packed
from tunesmith.records import (
    Configuration,
    LocalArgument,
    OperandArgument,
    ScalarArgument,
    TensorMapArgument,
    WorkspaceArgument,
)

MAP = TensorMapArgument("A", "float32", (3, 44, 36), (2112, 48, 1), (1, 16, 64))


def bytes_of(*arguments, **convention):
    addresses = {"A": 0x1000, "D": 0x2000, "": 0x9000}
    kind = Convention.of(Configuration(convention))
    return [value for value, _ in packed(arguments, kind, addresses, lambda encoded: repr(encoded).encode())]


def test_a_scalar_has_the_bytes_of_its_type():
    assert bytes_of(ScalarArgument(-2, "int32"), ScalarArgument(1.5, "float64"), ScalarArgument(1.5, "float32")) == [
        np.int32(-2).tobytes(),
        np.float64(1.5).tobytes(),
        np.float32(1.5).tobytes(),
    ]


def test_a_scalar_that_does_not_fit_is_no_other_number():
    with pytest.raises(OverflowError):
        bytes_of(ScalarArgument(2**31, "int32"))


def test_operands_and_the_workspace_are_64_bit_addresses():
    assert bytes_of(OperandArgument("D"), WorkspaceArgument(256)) == [
        (0x2000).to_bytes(8, "little"),
        (0x9100).to_bytes(8, "little"),
    ]


def test_a_tensor_map_is_encoded_innermost_first_with_strides_in_bytes():
    """`cuTensorMapEncodeTiled` counts dimensions from the contiguous one and takes no stride for it."""
    assert TensorMap.of(MAP, 0x1000) == TensorMap(
        "FLOAT32", 0x1000, shape=(36, 44, 3), strides=(192, 8448), box=(64, 16, 1), swizzle=0
    )


def test_a_tensor_map_of_a_part_of_the_workspace_begins_at_its_offset():
    part = TensorMapArgument("", "float32", (4, 4), (4, 1), (4, 4), offset=0x200)
    assert bytes_of(part) == [repr(TensorMap.of(part, 0x9200)).encode()]


def test_a_compiler_that_cut_the_block_has_the_last_word_on_box_and_swizzle():
    (encoded,) = bytes_of(MAP, tensor_maps=((3, (1, 16, 32)),))
    assert encoded == repr(TensorMap.of(MAP, 0x1000, 3, (1, 16, 32))).encode()
    assert b"box=(32, 16, 1), swizzle=3" in encoded


def test_triton_gets_sizes_after_each_map_and_null_pointers_at_the_end():
    values = bytes_of(MAP, OperandArgument("D"), tensor_map_sizes=True, null_pointers=2)
    shape, strides = [np.int32(n).tobytes() for n in MAP.shape], [np.int64(n).tobytes() for n in MAP.strides]
    assert values[1:7] == shape + strides
    assert values[7:] == [(0x2000).to_bytes(8, "little"), bytes(8), bytes(8)]


def test_what_cuda_cannot_take_is_a_launch_error():
    with pytest.raises(LaunchError, match="shared_bytes"):
        bytes_of(LocalArgument(64))
    with pytest.raises(LaunchError, match="stride"):
        TensorMap.of(TensorMapArgument("A", "float32", (4, 4), (1, 4), (4, 4)), 0)


@given(st.lists(st.binary(min_size=1, max_size=200)))
def test_every_parameter_is_found_aligned_at_its_address(values):
    parameters = Parameters(values)
    addresses = (ctypes.c_void_p * len(values)).from_address(parameters.pointer)
    for address, value in zip(addresses, values, strict=False):
        assert address % ALIGNMENT == 0
        assert ctypes.string_at(address, len(value)) == value
    gaps = [after - before for before, after in itertools.pairwise(addresses)]
    assert gaps == [ALIGNMENT * (1 + (len(value) > ALIGNMENT)) for value in values[:-1]]
    assert parameters.pointer, "also the list of no addresses has an address"
