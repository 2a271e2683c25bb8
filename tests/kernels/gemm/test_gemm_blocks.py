"""How D is cut into blocks for the compute units of a CPU."""

from __future__ import annotations

import pytest

from tunesmith.kernels import KERNELS
from tunesmith.kernels.gemm.opencl.blocks import Blocks, schedule_of
from tunesmith.problems.gemm import Gemm, gemm_type
from tunesmith.records import Problem

KIND = gemm_type(transpose_b=False, batched=True)
FAMILY = KERNELS["BlockedGemm"]
FEW = {"Schedule": "FewColumns", "MacroTile": (1024, 4), "ThreadTile": (16, 4)}
SIZES = [(1, 1, 1), (1024, 1024, 1), (1025, 1023, 1), (2048, 4, 1), (2048, 32, 1), (4, 5000, 1), (100, 300, 7)]


def cut(m, n, batch, units, values):
    config = FAMILY.space(KIND).defaults | values
    return Blocks.of(Gemm.of(Problem(KIND, (m, n, batch, 64))), config, units), config


@pytest.mark.parametrize("units", [1, 2, 3, 16, 128])
@pytest.mark.parametrize("values", [{}, {"MacroTile": (64, 12)}, FEW], ids=["large", "small", "few columns"])
@pytest.mark.parametrize("sizes", SIZES)
def test_blocks_are_whole_tiles_of_at_most_the_macro_tile_and_cover_d_once(sizes, values, units):
    blocks, config = cut(*sizes, units, values)
    vector, few = config["VectorWidth"], values is FEW
    tile = (vector, 4) if few else schedule_of(config).thread_tile
    for size, extent, count, most, whole in zip(
        sizes, (blocks.rows, blocks.columns), blocks.count, config["MacroTile"], tile, strict=False
    ):
        assert extent % whole == 0
        assert 0 < extent <= most
        assert (count - 1) * extent < size <= count * extent


@pytest.mark.parametrize(("size", "units"), [(512, 2), (1024, 2), (1000, 4), (2048, 16)])
def test_no_unit_has_much_more_to_do_than_the_average(size, units):
    """A tenth at most, where blocks of the largest size would leave up to a half of the units idle in the end."""
    blocks, _ = cut(size, size, 1, units, {})
    waves = -(-blocks.count[0] * blocks.count[1] // units)
    assert waves * units * blocks.rows * blocks.columns <= 1.1 * size * size


def test_a_large_batch_is_not_cut_further():
    blocks, _ = cut(100, 100, 64, 4, {})
    assert blocks.count == (1, 1)
