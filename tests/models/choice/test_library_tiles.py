"""The numbers of cuBLASLt's tiles, as NVIDIA's header has them."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith.models.choice.library_tiles import sides_of, tile_sides


@pytest.mark.parametrize(
    ("number", "sides"),
    [
        (1, (8, 8)),
        (20, (128, 128)),
        (35, (256, 32)),
        (36, (8, 128)),
        (46, (8, 768)),
        (71, (32, 192)),
        (176, (128, 320)),
        (232, (256, 192)),
        (233, (264, 64)),
        (311, (768, 64)),
        (312, (64, 16)),
        (392, (64, 760)),
        (393, (128, 8)),
        (447, (128, 512)),
        (448, (192, 8)),
        (630, (768, 80)),
        (631, (256, 512)),
        (634, (512, 1024)),
    ],
)
def test_a_number_names_a_tile(number, sides):
    assert tuple(tile_sides()[number]) == sides


def test_every_tile_has_one_number():
    sides = tile_sides()
    assert len(sides) == 635
    assert len({tuple(each) for each in sides.tolist()}) == len(sides)


def test_what_is_no_number_of_a_tile_is_of_one_element():
    np.testing.assert_array_equal(sides_of(np.array([20.0, 0.0, 635.0, 1e9])), [[128, 128], [1, 1], [1, 1], [1, 1]])
    np.testing.assert_array_equal(sides_of(np.array([-1.0])), [[1, 1]])
