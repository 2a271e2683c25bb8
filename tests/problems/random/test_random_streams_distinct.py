"""No two engines give one stream, up to as many as a launch may have; and why LFSR113 wants a power of two."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_runner import H200
from tunesmith.kernels import KERNELS
from tunesmith.problems.random import GENERATORS, GeneratorKind, random_type
from tunesmith.problems.random.streams import words
from tunesmith.records import Configuration

SEEDS = (0, 0x0123456789ABCDEF)
MOST = {
    name: min(g.most_engines or 1 << 20, 1 << 20) for name, g in GENERATORS.items() if g.kind is GeneratorKind.ENGINE
}
"""Engines that the dynamic ordering must keep apart: 2^20, or all that the generator has."""

FINGERPRINT = 4
"""Words from the beginning of a stream. Two of 2^20 unlike streams agree in 128 bits with probability 2^-89."""


def fingerprints(generator, seed, engines, numbers):
    return words(generator, seed, 0, engines, numbers, FINGERPRINT).view(f"V{4 * FINGERPRINT}")[:, 0]


def masked(engines):
    """The engines that work-items take by rocRAND's rule for LFSR113, `id & (engines - 1)`."""
    return np.arange(engines) & engines - 1


def different(prints):
    """How many there are. Their low halves tell nearly all apart; the few that agree there are compared whole."""
    low, high = np.ascontiguousarray(prints).view(np.uint64).reshape(-1, 2).T
    order = np.argsort(low)
    low, high = low[order], high[order]
    ties = np.flatnonzero(low[1:] == low[:-1])
    together = np.union1d(ties, ties + 1)
    whole = set(zip(low[together].tolist(), high[together].tolist(), strict=True))
    return len(low) - len(together) + len(whole)


@pytest.mark.parametrize("seed", [SEEDS[0], pytest.param(SEEDS[1], marks=pytest.mark.thorough)])
@pytest.mark.parametrize("generator", MOST)
def test_no_two_of_all_streams_are_equal(generator, seed):
    """Of seed 0, the one without bits; the thorough run adds one of many, which other tests have for fewer engines."""
    engines = MOST[generator]
    assert different(fingerprints(generator, seed, engines, np.arange(engines))) == engines


@pytest.mark.parametrize("generator", [name for name in MOST if not GENERATORS[name].power_of_two])
def test_no_two_streams_are_equal_where_their_number_is_no_power_of_two(generator):
    """600 x 256 engines, or as many of them as there are: rocRAND ships such launches for some architectures."""
    engines = min(600 * 256, MOST[generator] - GENERATORS[generator].block_multiple)
    assert engines & engines - 1
    assert different(fingerprints(generator, 77, engines, np.arange(engines))) == engines


@pytest.mark.parametrize("generator", MOST)
def test_no_stream_is_another_one_a_few_words_later(generator):
    """Every window of four words at places 0 to 7 of 2^16 streams: 2^19 windows, all different."""
    engines, places = 1 << 16, 8
    streams = words(generator, SEEDS[1], 0, engines, np.arange(engines), places + FINGERPRINT - 1)
    windows = np.lib.stride_tricks.sliding_window_view(streams, FINGERPRINT, axis=1)
    rows = np.ascontiguousarray(windows).view(f"V{4 * FINGERPRINT}").ravel()
    assert different(rows) == engines * places


@pytest.mark.parametrize("generator", MOST)
def test_neighbouring_seeds_have_no_stream_in_common(generator):
    """Seeds 40 and 42, since LFSR113 never looks at the lowest bit; default launch."""
    engines = GENERATORS[generator].default_engines
    both = [fingerprints(generator, seed, engines, np.arange(engines)) for seed in (40, 42)]
    assert different(np.concatenate(both)) == 2 * engines


@pytest.mark.parametrize(("block", "grid", "is_rejected"), [(600, 256, True), (96, 3, True), (64, 2048, False)])
def test_lfsr113_rejects_what_would_duplicate_streams(block, grid, is_rejected):
    kernel, problem_type = KERNELS["CudaRandom"], random_type("lfsr113", dynamic=True)
    config = Configuration({"KernelLanguage": "CUDA", "BlockSize": block, "GridSize": grid})
    found = {rejection.reason: rejection.detail for rejection in kernel.rejections(config, problem_type, H200)}
    assert ("duplicate streams" in found) == is_rejected
    assert not is_rejected or f"{block * grid} engines are no power of two" in found["duplicate streams"]


@pytest.mark.parametrize(("engines", "streams"), [(600 * 256, 1 << 14), (96, 1 << 6), (1 << 17, 1 << 17)])
def test_a_mask_gives_work_items_one_stream_unless_engines_are_a_power_of_two(engines, streams):
    """Clearing the bits that T - 1 has not leaves 2^(ones of T - 1) engines: 10.7 % of 153,600."""
    taken = fingerprints("lfsr113", SEEDS[1], 1 << 18, masked(engines))
    assert streams == 1 << (engines - 1).bit_count()
    assert different(taken) == streams
