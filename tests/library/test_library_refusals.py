"""The library refuses what it cannot do correctly. The messages say what is wrong and what to give instead."""

from __future__ import annotations

import numpy as np
import pytest

from library_fakes import TYPES, close, library, logic, normal
from tunesmith.records import UserError


class TestRefusals:
    """A call is refused with a clear message before anything is launched."""

    def refused(self, error, says, *arguments, **named):
        with library(logic(TYPES[0])) as lib, pytest.raises(error, match=says):
            lib.matmul(*arguments, **named)  # type: ignore[arg-type]

    def test_shapes_that_do_not_multiply(self):
        self.refused(ValueError, "4 columns and b has 5 rows", normal(3, 4), normal(5, 6))
        self.refused(ValueError, "batches", normal(2, 3, 4), normal(3, 4, 5))
        self.refused(ValueError, "matrices", normal(4), normal(4, 5))
        self.refused(ValueError, "matrices", normal(1, 1, 3, 4), normal(4, 5))

    def test_c_and_out_of_another_shape(self):
        for beta in (0.0, 1.0):
            self.refused(ValueError, "c has shape", normal(3, 4), normal(4, 5), c=normal(5, 3), beta=beta)
        self.refused(ValueError, "out has shape", normal(3, 4), normal(4, 5), out=normal(4, 5))
        self.refused(ValueError, "c must be given", normal(3, 4), normal(4, 5), beta=1.0)

    def test_out_that_cannot_be_written(self):
        out = normal(3, 5)
        out.flags.writeable = False
        self.refused(ValueError, "written", normal(3, 4), normal(4, 5), out=out)
        self.refused(ValueError, "written", normal(3, 4), normal(4, 5), out=[[0.0] * 5] * 3)

    @pytest.mark.parametrize(
        ("shape", "strides"), [((3, 5), (0, 4)), ((3, 5), (4, 4)), ((3, 5), (12, 4)), ((3, 5), (8, 4))]
    )
    def test_out_whose_elements_share_memory(self, shape, strides):
        memory = np.zeros(64, np.float32)
        out = np.lib.stride_tricks.as_strided(memory, shape, strides)
        self.refused(ValueError, "out shares memory with itself.*apart", normal(3, 4), normal(4, 5), out)
        assert not memory.any()

    def test_a_batch_in_an_out_whose_matrices_share_memory(self):
        out = np.lib.stride_tricks.as_strided(np.zeros(99, np.float32), (2, 3, 5), (56, 20, 4))
        self.refused(ValueError, "out shares memory with itself", normal(2, 3, 4), normal(2, 4, 5), out)

    @pytest.mark.parametrize("name", ["a", "b", "c", "bias", "out"])
    def test_masked_arrays(self, name):
        """A mask would be lost: of an operand its hidden numbers would be read, of a result nobody knows it."""
        operands = {"a": normal(3, 4), "b": normal(4, 5), "c": normal(3, 5), "bias": normal(5), "out": normal(3, 5)}
        operands[name] = np.ma.masked_less(operands[name], 0.0)
        says = rf"{name} is a masked array.*give {name}\.filled\(0\), or {name}\.data"
        self.refused(TypeError, says, **operands, beta=1.0)

    def test_data_types(self):
        self.refused(TypeError, "a is float32, b is float64", normal(3, 4), normal(4, 5, dtype="float64"))
        self.refused(TypeError, "out is float64", normal(3, 4), normal(4, 5), out=normal(3, 5, dtype="float64"))
        self.refused(TypeError, "int64", np.ones((3, 4), int), np.ones((4, 5), int))

    def test_a_precision_that_was_not_tuned(self):
        self.refused(UserError, "float64.*SB", normal(3, 4, dtype="float64"), normal(4, 5, dtype="float64"))


@pytest.mark.parametrize("steps", [(3, 2), (1, 3), (2, 9), (-1, 4)])
def test_out_whose_elements_lie_apart_in_a_strange_order_is_taken(steps):
    """An array of 2 x 3 elements, whose rows lie inside one another."""
    a, b = normal(2, 4), normal(4, 3)
    memory = np.zeros(64, np.float32)
    out = np.lib.stride_tricks.as_strided(memory[20:], (2, 3), [4 * step for step in steps])
    with library(logic(TYPES[0])) as lib:
        close(lib.matmul(a, b, out), a @ b)
    assert np.count_nonzero(memory) == 6


NO_SIZES = [-4, 0, 2.5, 4.0, "4", True, None]


@pytest.mark.parametrize("wrong", NO_SIZES, ids=repr)
@pytest.mark.parametrize("index", range(3))
def test_sizes_that_are_none_are_refused_by_their_name(wrong, index):
    sizes: list[object] = [8, 8, 8]
    sizes[index] = wrong
    with library(logic(TYPES[0])) as lib:
        for asked in (lib.select, lib.says):
            with pytest.raises(ValueError, match=f"{'MNK'[index]} is .*; give a whole number from 1 on"):
                asked(*sizes)
        assert lib.select(np.int64(8), 8, np.uint8(8)) == lib.select(8, 8, 8)
