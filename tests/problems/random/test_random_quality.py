"""Are they random? Statistics of the generators' numbers at fixed seeds, in the reference and on a device."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
from scipy import stats

from opencl_runner import unoptimised
from random_runner import FAMILY, Shape, fill, problem
from random_statistics import (
    FARTHEST,
    NORMAL,
    RAREST,
    UNIFORM,
    bits_off,
    chi_square,
    correlation,
    kolmogorov_smirnov,
    moments_off,
)
from tunesmith.problems.random import GENERATORS, GeneratorKind, poisson_table, scalars_for, width_of
from tunesmith.problems.random.distributions import quasi_values_of, values_of
from tunesmith.problems.random.streams import quasi_words, words

PSEUDO = [name for name, generator in GENERATORS.items() if generator.kind is not GeneratorKind.QUASI]
QUASI = [name for name, generator in GENERATORS.items() if generator.kind is GeneratorKind.QUASI]
ENGINES, SEED = 1024, 20240229
"""Words are dealt to so many engines: neighbours are another engine's, those 1024 further the same engine's next."""
COUNT, MORE = 1 << 18, 1 << 20
COUNTS = [pytest.param(COUNT, id="quarter"), pytest.param(MORE, id="million", marks=pytest.mark.thorough)]
"""How many words a test looks at. FARTHEST standard errors of a quarter million are 1 % of a deviation: a correlation
of 0.01, or a bit that is set in 50.5 % of all words, is found. The thorough run finds half of that.
"""
MEAN, DEVIATION = -1.5, 2.5
SHAPES = {"philox4_32_10": Shape(256, 4), "xorwow": Shape(256, 4)}
"""Of the generators whose numbers are looked at as the device gives them; 1024 engines too."""


UNOPTIMISED = unoptimised(FAMILY)


@cache
def dealt(generator, count, width):
    """(count / width, width): words, a vector a row."""
    return words(generator, SEED, 0, ENGINES, np.arange(count // width), width)


@pytest.fixture(scope="module", autouse=True)
def forgotten():
    yield
    dealt.cache_clear()


def scalars(distribution, lam=10.0):
    return scalars_for(distribution, seed=SEED, mean=MEAN, stddev=DEVIATION, lam=lam)


def referred(generator, words_taken, distribution, value_type):
    """Values of so many words, as the reference has them."""
    taken = dealt(generator, words_taken, width_of(GENERATORS[generator], distribution, value_type).words)
    return values_of(distribution, value_type, taken, scalars(distribution)).value.ravel()


def filled(generator, words_taken, distribution, value_type):
    """The same of a device."""
    width = width_of(GENERATORS[generator], distribution, value_type)
    count = words_taken // width.words * width.values
    asked = problem(generator, distribution, value_type, count, engines=ENGINES, **scalars(distribution))
    values = fill(asked, SHAPES[generator], family=UNOPTIMISED)
    return values if values.dtype.kind == "u" else values.astype(np.float64)


SOURCES = [
    *(pytest.param((generator, referred), id=f"{generator}-referred") for generator in PSEUDO),
    *(pytest.param((name, filled), id=f"{name}-filled", marks=pytest.mark.opencl) for name in SHAPES),
]


@pytest.fixture(scope="module", params=COUNTS)
def count(request):
    return request.param


@pytest.fixture(scope="module", params=SOURCES)
def source(request, count):
    """A generator with a function that gives values of a distribution and a type, each made once for all tests."""
    generator, made = request.param
    kept = cache(partial(made, generator, count))
    yield generator, kept
    kept.cache_clear()


CONVERTED = ("philox4_32_10", "mrg31k3p", "threefry4_64_20", "xorwow")
"""Of the generators whose values of more types are looked at: blocks of words of both widths, an engine, and one whose
words are not uniform. One code makes the values of all, of words that are looked at by themselves for each."""


@pytest.fixture(scope="module", params=[source for source in SOURCES if source.values[0][0] in CONVERTED])
def source_of_few(request, count):
    generator, made = request.param
    kept = cache(partial(made, generator, count))
    yield generator, kept
    kept.cache_clear()


@pytest.fixture
def generator(source):
    return source[0]


@pytest.fixture
def made(source):
    return source[1]


@pytest.fixture
def made_by_few(source_of_few):
    return source_of_few[1]


def test_uniform_numbers_have_the_moments_of_the_uniform_distribution(made):  # type: ignore[no-untyped-def]
    check_uniform(made("uniform", "float"))


@pytest.mark.parametrize("value_type", ["double", "half"])
def test_uniform_numbers_of_other_types_have_the_moments_too(made_by_few, value_type):  # type: ignore[no-untyped-def]
    check_uniform(made_by_few("uniform", value_type))


def check_uniform(values):
    """The half of the least spacing by which the mean is above 1/2 is at most a twentieth of a standard error."""
    assert values.min() > 0
    assert values.max() <= 1
    assert (np.abs(moments_off(values - 0.5, UNIFORM)) < FARTHEST).all()


def test_normal_numbers_have_the_moments_of_the_normal_distribution(made):  # type: ignore[no-untyped-def]
    check_normal(made("normal", "float"), "normal")


@pytest.mark.parametrize(
    ("distribution", "value_type"),
    [("normal", "double"), ("normal", "half"), ("log_normal", "float"), ("log_normal", "double")],
)
def test_normal_numbers_of_other_types_have_the_moments_too(made_by_few, distribution, value_type):  # type: ignore[no-untyped-def]
    check_normal(made_by_few(distribution, value_type), distribution)


def check_normal(values, distribution):
    """Log-normal ones by their logarithms, having a variance whose estimate depends on the few largest.

    A half's 16 bits of radius stop at 4.7 deviations; what they miss of the kurtosis is a quarter of a standard error.
    """
    if distribution == "log_normal":
        values = np.log(values)
    assert (np.abs(moments_off((values - MEAN) / DEVIATION, NORMAL)) < FARTHEST).all()


LAWS = {
    "uniform": stats.uniform(),
    "normal": stats.norm(MEAN, DEVIATION),
    "log_normal": stats.lognorm(s=DEVIATION, scale=np.exp(MEAN)),
}


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_values_follow_their_law(made, distribution):  # type: ignore[no-untyped-def]
    """Kolmogorov and Smirnov."""
    _, p_value = kolmogorov_smirnov(made(distribution, "float"), LAWS[distribution].cdf)
    assert p_value > RAREST


@pytest.mark.parametrize(
    ("distribution", "value_type"),
    [("log_normal", "float"), ("uniform", "double"), ("normal", "double"), ("log_normal", "double")],
)
def test_values_of_other_types_follow_their_law(made_by_few, distribution, value_type):  # type: ignore[no-untyped-def]
    _, p_value = kolmogorov_smirnov(made_by_few(distribution, value_type), LAWS[distribution].cdf)
    assert p_value > RAREST


def test_the_tails_of_normal_numbers_are_full(made):  # type: ignore[no-untyped-def]
    check_tails(made("normal", "float"))


@pytest.mark.parametrize("made", [referred, pytest.param(filled, marks=pytest.mark.opencl)])
def test_the_far_tails_of_normal_numbers_are_full(made):  # type: ignore[no-untyped-def]
    """A quarter million numbers, of which 8 are expected beyond 4 deviations on each side, cannot tell that none is.

    One generator is enough: one code makes the numbers of the words of all.
    """
    check_tails(made("philox4_32_10", MORE, "normal", "float"))


def check_tails(values):
    """How many lie beyond 2, 3 and 4 deviations on each side, in their binomial standard errors."""
    values = (values - MEAN) / DEVIATION
    for limit in (2, 3, 4):
        p = stats.norm.sf(limit)
        for beyond in (values > limit, values < -limit):
            assert abs(np.count_nonzero(beyond) - values.size * p) < FARTHEST * np.sqrt(values.size * p * (1 - p))


def test_the_two_normal_numbers_of_a_vector_are_independent(made):  # type: ignore[no-untyped-def]
    """Sine and cosine of one radius: neither they nor their squares, each of variance 2, may be correlated."""
    first, second = ((made("normal", "float") - MEAN) / DEVIATION).reshape(-1, 2).T
    assert abs(correlation(first, second, 0, 1)) < FARTHEST
    assert abs(correlation(first**2, second**2, 1, 2)) < FARTHEST
    assert abs(correlation(first[1:], second[:-1], 0, 1)) < FARTHEST


def law_of_low_bits(generator, bits):
    """Probabilities of a word's lowest bits.

    mrg31k3p has 2^31 - 1 numbers, which rocRAND's factor stretches to 2 x + floor(3 x / 2^31): odd for one in three.
    """
    odd = 1 / 3 if generator == "mrg31k3p" else 1 / 2
    return np.tile([1 - odd, odd], 1 << bits - 1) / (1 << bits - 1)


@pytest.mark.parametrize(("value_type", "bits"), [("unsigned_char", 8), ("unsigned_short", 16)])
def test_integers_are_equally_likely(generator, made, value_type, bits, count):  # type: ignore[no-untyped-def]
    """Each piece of a word by itself, the lowest first."""
    fields = made("uniform", value_type).reshape(count, -1).T
    assert len(fields) == 32 // bits
    for number, field in enumerate(fields):
        law = law_of_low_bits(generator if number == 0 else "", bits)
        assert chi_square(np.bincount(field, minlength=1 << bits), count * law) > RAREST


@pytest.mark.parametrize(("value_type", "bits"), [("unsigned_int", 32), ("unsigned_long_long", 64)])
def test_the_top_bits_of_long_integers_are_equally_likely(made, value_type, bits):  # type: ignore[no-untyped-def]
    top = (made("uniform", value_type) >> (bits - 12)).astype(np.int64)
    assert chi_square(np.bincount(top, minlength=1 << 12), np.full(1 << 12, top.size / (1 << 12))) > RAREST


def rounded_normal(lam, numbers):
    """Probabilities of what a mean above 4000 gives by definition."""
    edges = stats.norm.cdf((np.append(numbers, numbers[-1] + 1) - 0.5 - lam) / np.sqrt(lam))
    return np.diff(edges)


@pytest.mark.parametrize("lam", [0.5, 10.0, 100.0, 3999.0, 5000.0, 1e6])
def test_poisson_numbers_follow_their_law(lam, count):
    """To a mean of 4000 Poisson's; above it the rounded normal's, whose mean is lam and variance lam + 1/12.

    The two laws differ, by their skewness, by a chi-square of n / (6 lam): 35 of a million numbers at 5000.
    """
    values = values_of("poisson", "unsigned_int", dealt("philox4_32_10", count, 1), scalars("poisson", lam)).value
    values = values.ravel().astype(np.int64)
    reach = int(12 * np.sqrt(lam)) + 12
    first = max(0, int(lam) - reach)
    numbers = np.arange(first, int(lam) + reach)
    law = stats.poisson.pmf(numbers, lam) if lam <= 4000 else rounded_normal(lam, numbers)
    assert chi_square(np.bincount(values - first, minlength=len(numbers)), count * law) > RAREST
    variance = lam if lam <= 4000 else lam + 1 / 12
    assert abs(values.mean() - lam) < FARTHEST * np.sqrt(variance / count)


def test_every_generator_gives_poisson_numbers(made, count):  # type: ignore[no-untyped-def]
    values = made("poisson", "unsigned_int")
    law = stats.poisson.pmf(np.arange(64), 10.0)
    assert chi_square(np.bincount(values, minlength=64), count * law) > RAREST


@pytest.mark.parametrize("lam", [1e-6, 0.5, 1.0, 10.0, 31.9, 32.0, 100.0, 1234.5, 3999.0, 4000.0])
def test_an_alias_table_is_the_law_to_the_last_bit_of_a_word(lam):
    """Every word counted: 2^(32 - bits) of them choose each column, and the threshold parts them to a whole word.

    So a number is off by at most one word for its own column and one for each whose alias it is, and by its share of
    the tails that have no column, 2^-33.
    """
    table = poisson_table(lam)
    columns, each = 1 << table.bits, 1 << 32 - table.bits
    threshold, alias = table.pairs.T.astype(np.int64)
    own = -(-threshold >> table.bits)
    counted = own + np.bincount(alias, each - own, columns)
    assert counted.sum() == 1 << 32
    numbers = table.base + np.arange(columns)
    law = stats.poisson.pmf(numbers, lam)
    shared = 1 + np.bincount(alias, minlength=columns)
    assert (np.abs(counted * 2.0**-32 - law) <= (shared + law) * 2.0**-32).all()
    assert stats.poisson.cdf(table.base - 1, lam) + stats.poisson.sf(numbers[-1], lam) < 2.0**-33


LAGS = (1, 2, 3, 4, 5, 7, 8, 16, 255, 256, 624, ENGINES - 1, ENGINES, ENGINES + 1, 2 * ENGINES)
"""Up to 1023 another engine's word, from 1024 on the same engine's or its neighbour's next; those that a block, a row
of lanes or a state of mt19937 lies apart are among them."""


@pytest.mark.parametrize("generator", PSEUDO)
def test_words_of_one_stream_and_of_neighbouring_engines_are_uncorrelated(generator, count):
    """As numbers between 0 and 1, and bit by bit: half of the bits of two words are equal."""
    taken = dealt(generator, count, 1)[:, 0]
    numbers = taken * 2.0**-32
    for lag in LAGS:
        assert abs(correlation(numbers[lag:], numbers[:-lag], 0.5, 1 / 12)) < FARTHEST, lag
        assert (np.abs(bits_off(taken[lag:] ^ taken[:-lag], unlike(generator))) < FARTHEST).all(), lag


@pytest.mark.parametrize("generator", PSEUDO)
@pytest.mark.parametrize("seed", [4, 1000, SEED])
def test_neighbouring_seeds_give_uncorrelated_streams(generator, seed, count):
    """Seed + 2, since LFSR113 never looks at the lowest bit. Such seeds of it differ in one component only, of period
    2^31 - 1, of which engines 128 apart stand 128 * 2^55 steps apart, which is one: so no more than 64 are compared.
    """
    engines = 64 if generator == "lfsr113" else ENGINES
    first, second = (words(generator, start, 0, engines, np.arange(count), 1)[:, 0] for start in (seed, seed + 2))
    assert abs(correlation(first * 2.0**-32, second * 2.0**-32, 0.5, 1 / 12)) < FARTHEST
    assert (np.abs(bits_off(first ^ second, unlike(generator))) < FARTHEST).all()


def unlike(generator):
    """Probabilities that bits of two words differ."""
    odd = law_of_low_bits(generator, 1)[1]
    return np.array([2 * odd * (1 - odd)] + [0.5] * 31)


@pytest.mark.parametrize("generator", PSEUDO)
def test_bits_are_even_and_independent_within_a_word(generator, count):
    taken = dealt(generator, count, 1)[:, 0]
    ones = np.array([law_of_low_bits(generator, 1)[1]] + [0.5] * 31)
    assert (np.abs(bits_off(taken, ones)) < FARTHEST).all()
    for turn in range(1, 17):
        turned = taken << np.uint32(turn) | taken >> np.uint32(32 - turn)
        # One of the two bits is fair whenever the other is the lowest.
        assert (np.abs(bits_off(taken ^ turned, np.full(32, 0.5))) < FARTHEST).all(), turn


@pytest.mark.parametrize("generator", QUASI)
@pytest.mark.parametrize(
    ("distribution", "law"), [("uniform", stats.uniform()), ("normal", stats.norm(MEAN, DEVIATION))]
)
@pytest.mark.parametrize("value_type", ["float", "double"])
def test_points_are_nearer_to_their_law_than_random_numbers(generator, distribution, law, value_type):  # type: ignore[no-untyped-def]
    """Each of 2^16 intervals has one of 2^16 points: no more than 2^-16 lies between the two distribution functions.

    Random numbers would be 200 times as far off. What rounding to a float adds is less than 2^-20.
    """
    index = np.arange(1 << 16)
    for dimension in (0, 1, 700):
        points = quasi_words(generator, SEED, 0, index, np.full_like(index, dimension))[:, None]
        values = quasi_values_of(distribution, value_type, points, scalars(distribution)).value.ravel()
        distance, _ = kolmogorov_smirnov(values, law.cdf)
        assert distance <= 2.0**-16 + 2.0**-20
