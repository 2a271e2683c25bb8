"""Sobol' points: those of SciPy where nothing is scrambled, and as evenly spread as those where something is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import qmc

from tunesmith.problems.random.counter import philox
from tunesmith.problems.random.streams import quasi_words, sobol_directions, sobol_shift
from tunesmith.records import UserError

MOST = 21201
PLAIN = {"sobol32": 32, "sobol64": 64}
SCRAMBLED = {"scrambled_sobol32": 32, "scrambled_sobol64": 64}
ALL = PLAIN | SCRAMBLED


def points(generator, count, dimensions, *, seed=9, offset=0):  # type: ignore[no-untyped-def]
    """(count, dimensions)"""
    index, dimension = np.meshgrid(np.arange(count), dimensions, indexing="ij")
    return quasi_words(generator, seed, offset, index, dimension)


@pytest.mark.parametrize(("generator", "bits"), PLAIN.items())
def test_every_dimension_is_that_of_scipy(generator, bits):
    """64 points are the first 6 direction numbers; the 33rd to 64th of a dimension follow from its recurrence."""
    expected = qmc.Sobol(MOST, scramble=False, bits=bits).random(64)
    assert np.array_equal(points(generator, 64, np.arange(MOST)) / 2.0**bits, expected)


@pytest.mark.parametrize(("generator", "bits"), PLAIN.items())
def test_later_points_are_those_of_scipy(generator, bits):
    """Points 2^15 - 50 and on, in 300 dimensions."""
    first = 2**15 - 50
    engine = qmc.Sobol(300, scramble=False, bits=bits)
    engine.random(1 << 14)
    engine.random(1 << 13)
    engine.random((1 << 13) - 50)
    made = points(generator, 100, np.arange(300), offset=first)
    assert np.array_equal(made / 2.0**bits, engine.random(100))


@pytest.mark.parametrize(("generator", "bits"), ALL.items())
def test_points_are_the_xor_of_directions_that_the_bits_of_the_gray_code_name(generator, bits):
    """As a kernel forms them from `sobol_directions` and `sobol_shift`, for points up to the last one."""
    directions = sobol_directions(generator, 77, 40)
    shift = sobol_shift(generator, 77, 40)
    assert directions.shape == (40, bits)
    assert directions.dtype == shift.dtype == np.dtype(f"u{bits // 8}")
    for n in (0, 1, 6, 2**20 + 3, 2**31, 2**bits - 1):
        gray = n ^ n >> 1
        used = [directions[:, k] for k in range(bits) if gray >> k & 1]
        expected = np.bitwise_xor.reduce([shift, *used], axis=0)
        made = quasi_words(generator, 77, n, np.zeros(40, np.int64), np.arange(40))
        assert made.dtype == directions.dtype
        assert np.array_equal(made, expected)


def test_points_of_32_bits_begin_again_after_the_last():
    made = points("scrambled_sobol32", 8, np.arange(5), offset=2**32 - 4)
    assert np.array_equal(made[4:], points("scrambled_sobol32", 4, np.arange(5)))


@pytest.mark.parametrize("generator", SCRAMBLED)
def test_the_top_bits_of_a_direction_survive_scrambling(generator):
    """A lower triangular matrix with a unit diagonal: the leading one stays where it is, and nothing comes above it."""
    bits = SCRAMBLED[generator]
    plain = sobol_directions(f"sobol{bits}", 0, 200)
    made = sobol_directions(generator, 3, 200)

    def leading(numbers):
        return [int(number).bit_length() for number in numbers.ravel()]

    assert leading(made) == leading(plain)
    assert not np.array_equal(made, plain)


@pytest.mark.parametrize("generator", ALL)
@pytest.mark.parametrize("m", [1, 5, 10])
def test_a_power_of_two_of_points_hits_every_interval_once(generator, m):
    """Of 2^m points of a dimension, from a multiple of 2^m on, each interval of length 2^-m has one."""
    dimensions = np.array([0, 1, 2, 17, 999, MOST - 1])
    intervals = points(generator, 1 << m, dimensions, offset=3 << m) >> np.uint64(ALL[generator] - m)
    assert np.array_equal(np.sort(intervals, axis=0), np.tile(np.arange(1 << m)[:, None], (1, len(dimensions))))


@pytest.mark.parametrize("generator", ALL)
def test_the_first_two_dimensions_are_a_net(generator):
    """(0, 8, 2): of 2^8 points each rectangle 2^-a x 2^-(8 - a) has one, for every a."""
    bits, m = ALL[generator], 8
    x, y = points(generator, 1 << m, np.arange(2)).T.astype(np.uint64)
    for a in range(m + 1):
        columns = np.zeros_like(x) if a == 0 else x >> np.uint64(bits - a)
        rows = np.zeros_like(y) if a == m else y >> np.uint64(bits - m + a)
        assert np.array_equal(np.sort(columns << np.uint64(m - a) | rows), np.arange(1 << m))


@pytest.mark.parametrize(("generator", "bits"), SCRAMBLED.items())
def test_scrambling_is_what_its_documentation_says(generator, bits):
    """A matrix by its columns, and a shift, from Philox words of the counters (block, dimension, bits, 0x536F626F)."""
    seed, dimension, words = 0x0123456789ABCDEF, 41, bits // 32
    blocks = np.arange((bits + 1) * words // 4 + 1, dtype=np.uint32)
    counter = np.stack([blocks, *(np.full_like(blocks, word) for word in (dimension, bits, 0x536F626F))])
    stream = philox(counter, np.array([0x89ABCDEF, 0x01234567], np.uint32), 10).T.ravel()
    numbers = [sum(int(stream[c * words + half]) << 32 * half for half in range(words)) for c in range(bits + 1)]
    expected = []
    for plain in sobol_directions(f"sobol{bits}", 0, dimension + 1)[dimension]:
        image = 0
        for column in range(bits):
            top = 1 << bits - 1 - column
            image ^= top | numbers[column] & top - 1 if int(plain) & top else 0
        expected.append(image)
    assert sobol_directions(generator, seed, dimension + 1)[dimension].tolist() == expected
    assert sobol_shift(generator, seed, dimension + 1)[dimension] == numbers[bits]


@pytest.mark.parametrize("generator", SCRAMBLED)
def test_scrambling_depends_on_every_bit_of_the_seed_and_on_the_dimension(generator):
    shifts = [tuple(sobol_shift(generator, 1 << bit, 6).tolist()) for bit in range(64)]
    assert len({number for shift in shifts for number in shift}) == 64 * 6
    matrices = {sobol_directions(generator, 1 << bit, 6).tobytes() for bit in range(64)}
    assert len(matrices) == 64


@pytest.mark.parametrize("generator", SCRAMBLED)
def test_a_dimension_is_scrambled_alike_whatever_else_is_asked_for(generator):
    few, many = points(generator, 16, np.array([700, 3])), points(generator, 16, np.arange(701))
    assert np.array_equal(few, many[:, [700, 3]])


def test_what_cannot_be_had_is_said():
    with pytest.raises(UserError, match="21202 dimensions asked for, 21201 are known"):
        sobol_directions("sobol32", 0, MOST + 1)
    with pytest.raises(UserError, match="21202 dimensions"):
        quasi_words("sobol64", 0, 0, np.array([1]), np.array([MOST]))
    with pytest.raises(UserError, match="0 dimensions"):
        sobol_shift("sobol64", 0, 0)
    with pytest.raises(UserError, match="gives a stream of words"):
        sobol_directions("xorwow", 0, 3)
    assert quasi_words("sobol64", 0, 0, np.array([], np.int64), np.array([], np.int64)).dtype == np.uint64
