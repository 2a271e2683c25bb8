"""The published seeds and formulas, with the numbers of their sources, and the results of the steps."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from policy_problems import problem
from tunesmith.kernels import KERNELS
from tunesmith.models.intensity.policies import POLICIES, PolicyChoice
from tunesmith.models.intensity.policies.chips import figures_of, published_ridge
from tunesmith.models.intensity.policies.distribution import dealt, padded, tile_of
from tunesmith.models.intensity.policies.known_targets import KNOWN_TARGETS
from tunesmith.models.intensity.policies.latency import estimate
from tunesmith.models.intensity.policies.mappings import MAPPINGS
from tunesmith.models.intensity.policies.mappings.base import nearest_power
from tunesmith.models.intensity.policies.seed_steps import SEED_STEPS, utilisation, work_groups
from tunesmith.models.intensity.policies.seeds import SEEDS, TileSeed, Workload, published_seed
from tunesmith.models.intensity.policies.situation import PolicyInput
from tunesmith.models.intensity.policies.tile_steps import registers, shared_memory
from tunesmith.models.intensity.policies.wish import TileWish
from tunesmith.models.intensity.published import Bucket
from tunesmith.models.roofline.chips import chip_of

MI300X, H200 = KNOWN_TARGETS["gfx942"], KNOWN_TARGETS["sm_90"]


def situation(m, n, k, target=MI300X, kind="b", batch=0):
    return PolicyInput.of(problem(kind, m, n, k, batch), target)


@pytest.mark.parametrize(
    ("generation", "workload", "seeds"),
    [
        ("default", Workload.GEMM, [(2, 2, 4, 2048), (4, 8, 4, 2048), (4, 16, 2, 512)]),
        ("default", Workload.SCALED_GEMM, [(2, 2, 4, 2048), (8, 32, 4, 512), (8, 32, 2, 512)]),
        ("default", Workload.CONVOLUTION, [(2, 2, 4, 1024), (8, 4, 4, 2048), (8, 8, 2, 512)]),
        ("RDNA4", Workload.GEMM, [(2, 2, 4, 2048), (4, 4, 4, 1024), (8, 16, 4, 1024)]),
        ("RDNA4", Workload.CONVOLUTION, [(2, 2, 4, 1024), (8, 4, 4, 1024), (8, 8, 4, 1024)]),
    ],
)
def test_the_seeds_are_the_published_ones(generation, workload, seeds):
    """Copied a second time from IREE's tables, in their order: small, medium, large."""
    buckets = (Bucket.SMALL, Bucket.MEDIUM, Bucket.LARGE)
    assert [SEEDS[generation, workload][bucket] for bucket in buckets] == [TileSeed(*seed) for seed in seeds]
    assert SEEDS[generation, workload][Bucket.VERY_LARGE] == TileSeed(*seeds[-1])


def test_a_generation_without_seeds_of_its_own_has_the_default_ones():
    for architecture in ("sm_90", "gfx942", "gfx950", "gfx90a:sramecc+", "anything"):
        assert published_seed(architecture, Workload.GEMM, Bucket.MEDIUM) == TileSeed(4, 8, 4, 2048)
    assert published_seed("gfx1201", Workload.GEMM, Bucket.MEDIUM) == TileSeed(4, 4, 4, 1024)
    assert published_seed("gfx1201", Workload.SCALED_GEMM, Bucket.LARGE) == TileSeed(8, 32, 2, 512)


@pytest.mark.parametrize(
    ("architecture", "dtype", "ridge"),
    [("gfx942", "bfloat16", 246.7), ("sm_90", "float16", 206.1), ("sm_80", "float16", 153.0)],
)
def test_the_ridges_are_those_of_the_data_sheets(architecture, dtype, ridge):
    """1307.4 TFLOP/s over 5.3 TB/s, 989.4 over 4.8, and 312 over 2.039; rounded to a tenth."""
    assert published_ridge(KNOWN_TARGETS[architecture], dtype) == pytest.approx(ridge, abs=0.05)


def test_a_chip_without_a_data_sheet_has_no_ridge():
    assert situation(64, 64, 64, KNOWN_TARGETS["x86-64"], "s").ridge is None


@pytest.mark.parametrize(
    ("name", "architecture"),
    [("NVIDIA L4", "sm_89"), ("NVIDIA GeForce RTX 3060", "sm_86"), ("NVIDIA GH200 480GB", "sm_90")],
)
def test_another_chip_of_a_known_architecture_has_no_ridge_but_an_estimate(name, architecture):
    """The same as in `characterize`. The latency model uses the figures of the architecture instead."""
    target = replace(H200, name=name, architecture=architecture)
    assert chip_of(name, architecture) is None
    assert situation(64, 64, 64, target, "h").ridge is None
    assert figures_of(target).rate("float16") > 0


@pytest.mark.parametrize("kind", ["s", "d", "h", "b", "f8", "b8", "i8", "tf32"])
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100", "gfx90a", "gfx942"])
def test_a_policy_has_the_ridge_that_characterize_has(architecture, kind):
    """The ridge is None for a type that the data sheet lacks, such as single precision on the B200."""
    target = KNOWN_TARGETS[architecture]
    chip = chip_of(target.name, architecture)
    assert chip is not None
    roofline = chip.roofline("x" if kind == "tf32" else kind)
    assert situation(64, 64, 64, target, kind).ridge == (roofline.ridge if roofline else None)


def test_without_a_ridge_the_cut_offs_are_those_without_a_chip():
    """The intensity, 2/3 of 4096 FLOP per element, is between 1000 and 7000."""
    answer = POLICIES["published-intensity"].choose(
        problem("s", 4096, 4096, 4096), KNOWN_TARGETS["sm_100"], KERNELS["TritonGemm"]
    )
    assert isinstance(answer, PolicyChoice)
    assert "no ridge is known: large" in answer.reason


def test_bits_along_k_count_before_tiles():
    assert TileSeed(4, 16, 4, 512).tiles_along_k(2, 16) == 2, "512 bits are 32 halves, two tiles of 16"
    assert TileSeed(4, 16, 4, 512).tiles_along_k(8, 4) == 2
    assert TileSeed(4, 16, 4).tiles_along_k(2, 16) == 4


def test_the_cap_halves_tiles_until_each_compute_unit_has_a_work_group():
    """1024 x 1024 / (16 tiles x 16 x 16 x 4 sub-groups) = 64 work-groups for 304 compute units: 16 tiles become 8
    (128), 4 (256) and 2 (512)."""
    gemm_situation, seed = situation(1024, 1024, 1024), TileSeed(4, 16, 2, 512)
    assert work_groups(seed, gemm_situation) == 64
    capped = SEED_STEPS["workgroup-cap"](seed, gemm_situation, Bucket.MEDIUM)
    assert (capped.tiles, work_groups(capped, gemm_situation)) == (2, 512)
    assert SEED_STEPS["workgroup-cap"](seed, gemm_situation, Bucket.SMALL) == seed, "small products are left alone"
    assert SEED_STEPS["workgroup-cap"](seed, situation(16, 16, 16), Bucket.LARGE).tiles == 1, "and it ends"
    assert SEED_STEPS["workgroup-cap"](seed, situation(1024, 1024, 64, batch=8), Bucket.LARGE) == seed


def test_the_guard_halves_tiles_where_waves_would_be_less_than_half_full():
    """132 compute units. 4 sub-groups x 16 tiles of 16 x 16 are 128 x 128 elements: 2048 x 1152 has 144 work-groups,
    two waves, of which 0.55 is used; 2048 x 1088 has 136 and 0.52; 512 x 512 has 16 and 0.12."""
    seed = TileSeed(4, 16, 2, 512)
    assert utilisation(seed, situation(2048, 1152, 512, H200)) == pytest.approx(144 / 264)
    for m, n, tiles in ((2048, 1152, 16), (2048, 1088, 16), (512, 512, 8)):
        assert SEED_STEPS["utilisation-guard"](seed, situation(m, n, 512, H200), Bucket.LARGE).tiles == tiles


def test_boost_needs_two_waves_of_large_tiles_and_a_short_k():
    seed, boost = TileSeed(4, 16, 2, 512), SEED_STEPS["boost"]
    assert boost(seed, situation(8192, 8192, 8192, H200), Bucket.LARGE).tiles == 32
    assert boost(seed, situation(8192, 8192, 8192, H200), Bucket.VERY_LARGE) == seed, "there it spilled registers"
    assert boost(seed, situation(4096, 4096, 8192, H200), Bucket.LARGE) == seed, "K is longest"
    # 132 compute units x 2 waves x 32768 elements are 8,650,752.
    assert boost(seed, situation(2048, 4223, 512, H200), Bucket.LARGE) == seed
    assert boost(seed, situation(2048, 4224, 512, H200), Bucket.LARGE).tiles == 32


def test_the_two_strategies_spend_the_same_budget():
    """IREE gives convolutions 8 x {4, 8} and GEMMs 4 x {8, 16}; each step turns one into the other."""
    many, few = SEED_STEPS["subgroup-favor"], SEED_STEPS["tile-favor"]
    gemm_situation = situation(64, 64, 64)
    for tiles in (8, 16):
        conv, gemm = TileSeed(8, tiles // 2, 4), TileSeed(4, tiles, 4)
        assert many(gemm, gemm_situation, Bucket.LARGE) == many(conv, gemm_situation, Bucket.LARGE) == conv
        assert few(gemm, gemm_situation, Bucket.LARGE) == few(conv, gemm_situation, Bucket.LARGE) == gemm
    assert many(TileSeed(2, 2, 4), gemm_situation, Bucket.SMALL) == TileSeed(2, 2, 4), "small seeds are alike in both"


def test_tiles_are_dealt_evenly():
    """Four sub-groups and 16 tiles become 2 x 2 and 4 x 4 if both sides are divisible."""
    even = dealt(64, 64, TileSeed(4, 16, 2))
    assert (even.groups, even.tiles) == ((2, 2), (4, 4))
    odd = dealt(64, 3, TileSeed(4, 16, 2))
    assert (odd.groups, odd.tiles[1]) == ((2, 1), 1), "three columns have no divisor in common with the seed"
    assert dealt(7, 5, TileSeed(4, 16, 2)).groups == (2, 2), "where nothing divides, as many as there are"
    assert dealt(1, 1, TileSeed(4, 16, 2)).is_least


def test_a_long_side_gets_what_is_left_over():
    """64 x 1 tiles with 16 tiles for each sub-group: N gets 1, M gets its share of 4, and the remaining factor of 4
    goes to M too."""
    assert dealt(64, 1, TileSeed(4, 16, 2)).tiles == (16, 1)


def test_a_tile_never_exceeds_its_seed():
    generator = random.Random(1)
    for _ in range(2000):
        rows, columns = generator.randint(1, 600), generator.randint(1, 600)
        seed = TileSeed(2 ** generator.randint(0, 3), 2 ** generator.randint(0, 5), 4)
        shares = dealt(rows, columns, seed)
        assert math.prod(shares.groups) <= seed.sub_groups
        assert math.prod(shares.tiles) <= seed.tiles


def test_sizes_are_rounded_up_by_their_own_size():
    assert [padded(size) for size in (1, 32, 33, 128, 129, 1000)] == [1, 32, 64, 128, 256, 1024]


def test_k_is_cut_by_the_greatest_common_divisor():
    seed = TileSeed(4, 16, 4)
    assert tile_of(seed, situation(1024, 1024, 1024), True).depth == 64
    assert tile_of(seed, situation(1024, 1024, 96), True).depth == 32, "six tiles of 16 and four have two in common"
    assert tile_of(seed, situation(1024, 1024, 1000), True).depth == 16, "63 tiles and four have one"


def test_tiles_shrink_to_registers_and_shared_memory():
    gemm_situation = situation(4096, 4096, 4096, H200)
    small = registers(TileWish(256, 256, 64, (2, 2)), gemm_situation)
    assert small.elements == 128 * 4 * 32, "128 sums for each of 4 x 32 work-items"
    fits = shared_memory(TileWish(256, 256, 128, (2, 2), stages=4), gemm_situation)
    assert fits.stages * fits.stage_bytes(2) <= H200.local_memory_bytes < 3 * TileWish(256, 256, 128).stage_bytes(2)
    assert shared_memory(TileWish(128, 128, 64), gemm_situation) == TileWish(128, 128, 64)


def test_the_latency_model_prefers_fewer_waves_and_splits_a_long_k():
    """More waves of the same tile take longer. With a long K and a single tile, parts of K are faster."""
    tile = TileWish(128, 128, 64, stages=4)
    mapping = MAPPINGS["TritonGemm"]
    few, many = (estimate(tile, situation(128 * 132, 128 * waves, 4096, H200), mapping).seconds for waves in (1, 2))
    assert few < many < 2 * few + 1e-6
    gemm_situation = situation(128, 128, 65536, H200)
    parts = TileWish(128, 128, 64, stages=4, split=16)
    assert estimate(parts, gemm_situation, mapping).seconds < estimate(tile, gemm_situation, mapping).seconds / 4


def test_powers_of_two_are_the_nearest_by_ratio():
    assert [nearest_power(value, 16, 256) for value in (1, 16, 22, 23, 45, 46, 300)] == [16, 16, 16, 32, 32, 64, 256]
