"""The numbers that follow from a configuration of the OpenCL families: parts of K, stream-K's shares, loads."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from portblas_kernels import GPU
from tunesmith.kernels import KERNELS
from tunesmith.kernels.gemm.opencl.schedule import OpenCLSchedule, TileLoads
from tunesmith.kernels.gemm.stream_k import StreamKSchedule
from tunesmith.problems.gemm import Gemm, gemm_type
from tunesmith.records import Problem

TILED = KERNELS["TiledGemm"]
NT = gemm_type("s", batched=True)


def config(**values):
    return TILED.space(NT).defaults | values


@pytest.mark.parametrize(
    ("values", "sums"),
    [
        ({}, ()),
        ({"GlobalSplitU": 1}, ()),
        ({"GlobalSplitU": 2}, ("sum_of_splits",)),
        ({"StreamKGrid": 1}, ("sum_of_shares",)),
    ],
)
def test_a_program_adds_parts_of_k_only_where_k_is_split(values, sums):
    (module,) = TILED.modules(config(**values), NT)
    assert module.entries == ("gemm", *sums)


@pytest.mark.parametrize(
    ("k", "parts", "each"), [(100, 1, 104), (100, 3, 40), (96, 3, 32), (97, 3, 40), (8, 2, 8), (1, 4, 8), (0, 2, 0)]
)
def test_each_part_of_k_is_of_whole_iterations(k, parts, each):
    """Iterations have 8 steps; the last part takes the rest, which may be empty."""
    schedule = OpenCLSchedule.of(config(GlobalSplitU=parts))
    assert schedule.depth_per_split(Gemm.of(Problem(NT, (5, 6, 2, k)))) == each
    assert (parts - 1) * each < k + schedule.depth * parts
    assert parts * each >= k


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_stream_k_shares_the_tiles_of_all_matrices(batch):
    """Tiles are 64 x 64 elements: 3 x 2 of them in a matrix of 129 x 65."""
    schedule = OpenCLSchedule.of(config(StreamKGrid=4))
    found = schedule.stream(Gemm.of(Problem(NT, (129, 65, batch, 100))))
    assert found == StreamKSchedule.two_tile(3 * 2 * batch, 13, 4, 0)
    assert schedule.tiles(Gemm.of(Problem(NT, (128, 64, batch, 100)))) == (2, 1)


@pytest.mark.parametrize(
    ("operand", "transposed", "contiguous", "across"),
    [("A", False, 32, 8), ("A", True, 8, 32), ("B", False, 8, 64), ("B", True, 64, 8)],
)
def test_a_tile_is_contiguous_along_m_or_n_or_along_k(operand, transposed, contiguous, across):
    """Tiles of 32 x 64 with 8 steps along K. A lies along M unless it is transposed, and B along N if it is."""
    kind = gemm_type("s", transpose_a=transposed, transpose_b=transposed)
    loads = TileLoads.of(operand, config(WorkGroup=(8, 16, 1), ThreadTile=(4, 4)), kind)
    assert (loads.contiguous, loads.across, loads.elements) == (contiguous, across, contiguous * across)
    assert loads.along_tile is (contiguous > across)


@pytest.mark.parametrize(("coalesced", "vector"), [(1, 1), (2, 1), (1, 2), (2, 2), (1, 4)])
def test_the_loads_of_all_work_items_cover_a_tile_once(coalesced, vector):
    """A work-item loads vectors side by side at `span`, and one below the other at as many rows as there are items."""
    values = {"WorkGroup": (8, 8, 1), "VectorWidth": vector, "NumLoadsCoalescedA": coalesced, "LoopUnroll": 16}
    assert not list(TILED.rejections(config(**values), NT, GPU))
    loads = TileLoads.of("A", config(**values), NT)
    together = loads.work_items // loads.vectors
    covered = Counter()
    for item, column, row in product(range(loads.work_items), range(loads.coalesced), range(loads.rows)):
        across, along = divmod(item, loads.vectors)
        first = column * loads.span + along * vector
        covered.update((first + lane, row * together + across) for lane in range(vector))
    assert set(covered) == set(product(range(loads.contiguous), range(loads.across)))
    assert set(covered.values()) == {1}
    assert loads.per_item == loads.coalesced * loads.rows
