"""Each term of the latency model: what changes the estimated time of one tile, and by how much."""

from dataclasses import replace

import pytest

from tunesmith.models.intensity.policies.known_targets import known_target
from tunesmith.models.intensity.policies.latency import UNIT_REGISTERS, estimate
from tunesmith.models.intensity.policies.mappings import mapping_of
from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.problems.gemm import gemm_type
from tunesmith.records import Problem

H200 = known_target("sm_90")
WGMMA, TRITON = mapping_of("CudaWgmmaGemm"), mapping_of("TritonGemm")
TILE = TileWish(128, 128, 64, sub_groups=(4, 1), stages=3)


def situation(m, n, k, transpose_b=True):
    return PolicyInput.of(Problem(gemm_type("b", transpose_b=transpose_b), (m, n, k)), H200)


def seconds(wish, product, mapping):
    return estimate(wish, product, mapping).seconds


def test_elements_stored_one_by_one_take_an_access_each():
    """One wave of both; M is 1024 or one less, which is the same number of tiles and of loads by TMA's copies."""
    even, odd = situation(1024, 1024, 4096), situation(1023, 1024, 4096)
    copies = sum(even.chip.launch + 2 * size / even.chip.memory_rate for size in WGMMA.copied_bytes(odd))
    assert WGMMA.copied_bytes(odd)
    assert WGMMA.copied_bytes(even) == ()
    difference = seconds(TILE, odd, WGMMA) - seconds(TILE, even, WGMMA) - copies
    assert abs(difference / (TILE.elements * even.chip.access) - 1) < 1e-9


def test_an_operand_is_copied_at_the_memorys_rate_after_a_launch_of_its_own():
    nt, nn = situation(4096, 4092, 512), situation(4096, 4096, 512)
    (copied,) = WGMMA.copied_bytes(nt)
    assert copied == 4092 * 512 * 2
    assert (
        seconds(TILE, nt, WGMMA) - seconds(TILE, nn, WGMMA) > nt.chip.launch + 2 * copied / nt.chip.memory_rate - 1e-9
    )


@pytest.mark.parametrize("k", [64, 4096])
def test_work_groups_of_a_compute_unit_wait_for_memory_together(k):
    """With a memory that answers after a second, all else is nothing: a fill for each round of resident work-groups,
    and in each wave the iterations, shared by the stages in flight of all residents."""
    product, wish = situation(16384, 16384, k), replace(TILE, m=64, n=64)
    slow = replace(product, chip=replace(product.chip, latency=1.0))
    for residents in (1, 2, 4):
        memory = residents * wish.stages * wish.stage_bytes(2)
        device = replace(slow, target=replace(slow.target, local_memory_bytes=memory))
        groups = 256 * 256
        fills, waves = -(-groups // (slow.units * residents)), -(-groups // slow.units)
        expected = fills + waves * (k // wish.depth) / (wish.stages * residents)
        assert seconds(wish, device, TRITON) == pytest.approx(expected, rel=0.01)


def test_registers_of_sums_limit_resident_work_groups():
    product, large = situation(16384, 16384, 4096), replace(TILE, m=256, n=256)
    assert UNIT_REGISTERS // large.elements == 1
    roomy = replace(product, target=replace(product.target, local_memory_bytes=1 << 30))
    assert seconds(large, roomy, TRITON) == seconds(large, product, TRITON)


def test_loads_by_work_items_take_an_access_each():
    """Two stages of 128 x 128 x 64 in pieces of one element: the wait for loads is longer than any other."""
    wide, single = situation(4096, 4096, 4096), situation(4095, 4095, 4095)
    assert TRITON.load_width(TILE, wide) in (0, 8)
    assert TRITON.load_width(TILE, single) == 1
    found = estimate(TILE, single, TRITON)
    assert found.bound == "loads"
    iterations = -(-4095 // TILE.depth)
    assert found.seconds > found.waves * iterations * (TILE.m + TILE.n) * TILE.depth * single.chip.access


def test_zeroing_flags_for_parts_of_k_costs_a_share_of_a_launch():
    product, split = situation(256, 256, 16384), replace(TILE, split=4)
    added = seconds(split, product, WGMMA) - seconds(split, replace_launch(product, 0.0), WGMMA)
    whole = seconds(TILE, product, WGMMA) - seconds(TILE, replace_launch(product, 0.0), WGMMA)
    assert abs(added / product.chip.launch - 1.5) < 1e-6
    assert abs(whole / product.chip.launch - 1.0) < 1e-6


def replace_launch(product, launch):
    return replace(product, chip=replace(product.chip, launch=launch))
