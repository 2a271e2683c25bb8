"""Published numbers, and numbers of other programs: the streams are those of the generators they are named after."""

from __future__ import annotations

import itertools
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from random_scalars import SCALARS, mrg31k3p, mrg32k3a, mt19937, mtgp32
from tunesmith.problems.random.counter import philox, threefry
from tunesmith.problems.random.engines import ENGINES
from tunesmith.problems.random.mrg import MRG31K3P, MRG32K3A
from tunesmith.problems.random.streams import engine_states, jump_matrices, mtgp32_parameters, words

ROOT = Path(__file__).parents[3]
DATA = Path(os.environ.get("TUNESMITH_DATA", ROOT.parent / "shared" / "data"))
FUNCTIONS = {"philox": philox, "threefry": threefry}


def block(name, rounds, counter, key):
    """One block of `philox4x32` and its like."""
    family, bits = name[:-4], int(name[-2:])
    kind = np.uint32 if bits == 32 else np.uint64
    made = FUNCTIONS[family](np.array(counter, kind)[:, None], np.array(key, kind), rounds)
    return [int(part) for part in made[:, 0]]


def stream(generator, seed, count, *, engines=1):
    return [int(word) for word in words(generator, seed, 0, engines, np.arange(count), 1)[:, 0]]


def take(count, numbers):
    return list(itertools.islice(numbers, count))


PI = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]


@pytest.mark.parametrize(
    ("name", "rounds", "counter", "key", "output"),
    [
        ("philox4x32", 10, [0] * 4, [0] * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("philox4x32", 10, [0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("philox4x32", 10, PI, [0xA4093822, 0x299F31D0], "d16cfe09 94fdcceb 5001e420 24126ea1"),
        ("philox2x32", 10, [0] * 2, [0], "ff1dae59 6cd10df2"),
        ("philox2x64", 10, [0] * 2, [0], "ca00a0459843d731 66c24222c9a845b5"),
        ("threefry2x32", 20, [0] * 2, [0] * 2, "6b200159 99ba4efe"),
        ("threefry4x32", 20, [0] * 4, [0] * 4, "9c6ca96a e17eae66 fc10ecd4 5256a7d8"),
    ],
)
def test_blocks_of_random123(name, rounds, counter, key, output):
    """Of its `tests/kat_vectors`."""
    assert block(name, rounds, counter, key) == [int(word, 16) for word in output.split()]


# Both families once more, one block with Python's whole numbers, after Salmon et al., Parallel Random Numbers: As Easy
# as 1, 2, 3 (SC 2011): every word size and number of words, with any counter and key.

MULTIPLIERS = {
    (2, 32): [0xD256D193],
    (4, 32): [0xD2511F53, 0xCD9E8D57],
    (2, 64): [0xD2B74407B1CE6E93],
    (4, 64): [0xD2E7470EE14C6C93, 0xCA5A826395121157],
}
WEYL = {32: [0x9E3779B9, 0xBB67AE85], 64: [0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B]}
"""The golden ratio and the square root of 3, less one."""
ROTATIONS = {
    (2, 32): [[13, 15, 26, 6, 17, 29, 16, 24]],
    (4, 32): [[10, 11, 13, 23, 6, 17, 25, 18], [26, 21, 27, 5, 20, 11, 10, 20]],
    (2, 64): [[16, 42, 12, 31, 16, 32, 24, 21]],
    (4, 64): [[14, 52, 23, 5, 25, 46, 58, 32], [16, 57, 40, 37, 33, 12, 22, 32]],
}
PARITY = {32: 0x1BD11BDA, 64: 0x1BD11BDAA9FC1A22}


def philox_once_more(bits, rounds, counter, key):
    words, mask = list(counter), 2**bits - 1
    for round_ in range(rounds):
        keys = [(word + round_ * weyl) & mask for word, weyl in zip(key, WEYL[bits], strict=False)]
        products = [m * words[2 * index] for index, m in enumerate(MULTIPLIERS[len(words), bits])]
        high, low = [product >> bits for product in products], [product & mask for product in products]
        if len(words) == 2:
            words = [high[0] ^ keys[0] ^ words[1], low[0]]
        else:
            words = [high[1] ^ words[1] ^ keys[0], low[1], high[0] ^ words[3] ^ keys[1], low[0]]
    return words


def threefry_once_more(bits, rounds, counter, key):
    count, mask = len(counter), 2**bits - 1
    keys = [*key, PARITY[bits]]
    for word in key:
        keys[-1] ^= word

    def injected(words, turn):
        new = [(word + keys[(turn + index) % (count + 1)]) & mask for index, word in enumerate(words)]
        return [*new[:-1], (new[-1] + turn) & mask]

    words = injected(list(counter), 0)
    for round_ in range(rounds):
        # Of four words, the odd ones change places from round to round.
        pairs = [(0, 1)] if count == 2 else [(0, 1), (2, 3)] if round_ % 2 == 0 else [(0, 3), (2, 1)]
        for (first, second), rotations in zip(pairs, ROTATIONS[count, bits], strict=True):
            by = rotations[round_ % 8]
            words[first] = (words[first] + words[second]) & mask
            words[second] = ((words[second] << by | words[second] >> (bits - by)) & mask) ^ words[first]
        if round_ % 4 == 3:
            words = injected(words, round_ // 4 + 1)
    return words


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize(("family", "rounds"), [("philox", 7), ("philox", 10), ("threefry", 13), ("threefry", 20)])
def test_blocks_of_any_counter_and_key_are_those_of_a_second_writing(family, rounds, count, bits):
    second, draw = {"philox": philox_once_more, "threefry": threefry_once_more}[family], np.random.default_rng(bits)
    edges = [0, 1, 2 ** (bits - 1), 2**bits - 1]
    for trial in range(40):
        numbers = [int(word) for word in draw.integers(0, 2**bits, 8, np.uint64 if bits == 64 else np.uint32)]
        numbers = [edges[trial]] * 8 if trial < len(edges) else numbers
        counter, key = numbers[:count], numbers[4:][: count // 2 if family == "philox" else count]
        assert block(f"{family}{count}x{bits}", rounds, counter, key) == second(bits, rounds, counter, key)


def test_all_known_answers_of_random123():
    file = DATA / "rocrand" / "rng_kat.json"
    if not file.is_file():
        pytest.skip(f"{file} is not here; TUNESMITH_DATA names its folder")
    vectors = json.loads(file.read_text(encoding="utf-8"))["vectors"]
    assert len(vectors) == 60

    def numbers(texts):
        return [int(text, 16) for text in texts]

    wrong = [
        v
        for v in vectors
        if block(v["generator"], v["rounds"], numbers(v["counter"]), numbers(v["key"])) != numbers(v["output"])
    ]
    assert wrong == []


def test_the_10000th_numbers_that_the_cpp_standard_names():
    """C++26 for the default seed 20111115: philox4x32 gives 1955073260, philox4x64 3409172418970261260."""
    assert stream("philox4_32_10", 20111115, 10000)[-1] == 1955073260
    # Number 9999 is the last component of block 2499.
    assert block("philox4x64", 10, [2499, 0, 0, 0], [20111115, 0])[3] == 3409172418970261260
    assert stream("mt19937", 5489, 10000, engines=8)[-1] == 4123659995


def test_mrg32k3a_starts_as_lecuyer_says():
    """All seeds 12345: the first numbers over m1 + 1 are 0.127011..., 0.318527..., 0.309186..."""
    state = np.full((6, 1), 12345, np.uint32)
    drawn = [int(MRG32K3A.draw(state)[0]) for _ in range(3)]
    assert [number / 4294967088 for number in drawn] == pytest.approx(
        [0.127011122046577, 0.318527565396794, 0.309186015583270], rel=1e-14
    )


def test_xorwow_starts_as_marsaglia_says():
    state = np.array([[123456789], [362436069], [521288629], [88675123], [5783321], [6615241]], np.uint32)
    drawn = [int(ENGINES["xorwow"].step(state)[0]) for _ in range(5)]
    assert drawn == [246875399, 3690007200, 1264581005, 3906711041, 1866187943]


@pytest.mark.parametrize(
    ("generator", "seed", "engine", "skipped", "expected"),
    [
        ("xorwow", 0, 0, 0, [1658062815, 633775184, 2811841078, 4174562784]),
        ("xorwow", 42, 131071, 123456789012, [2170044168, 3252502529, 838134294, 3534046568]),
        ("xorwow", 0xDEADBEEFCAFEF00D, 1000003, 77, [608954337, 3322525408, 1104434537, 870322002]),
        ("mrg32k3a", 42, 131071, 123456789012, [1928807888, 3693463953, 2454059502, 3451728043]),
        ("mrg32k3a", 0xDEADBEEFCAFEF00D, 1000003, 77, [322168291, 1747007478, 936760737, 1651973006]),
        ("lfsr113", 0, 0, 0, [1574944, 268744, 1109394980, 8552980]),
    ],
)
def test_engines_of_rocrand(generator, seed, engine, skipped, expected):
    """Numbers of the device engines of rocRAND 5.3.3 (`rocrand_init(seed, engine, skipped)`), compiled for a host;
    those of lfsr113 are of L'Ecuyer's program with seeds 2, 8, 16 and 128."""
    engines = 1 << 20
    vectors = engine + engines * np.arange(4)
    assert words(generator, seed, skipped * engines, engines, vectors, 1)[:, 0].tolist() == expected


@pytest.mark.parametrize(
    ("seed", "parameter_set", "expected"),
    [
        (42, 37, [1274729783, 4064179211, 413502755, 245732358, 2180165048, 1647153103]),
        (0xDEADBEEFCAFEF00D, 481, [495934625, 1666048725, 3350517011, 3281803604, 1050081482, 128433006]),
    ],
)
def test_parameter_sets_of_rocrand(seed, parameter_set, expected):
    """Lanes 0, 100 and 255 of two steps, from the tables and the seeding of rocRAND 5.3.3 compiled for a host."""
    engines = 512 * 256
    vectors = np.array([step * engines + parameter_set * 256 + lane for step in (0, 1) for lane in (0, 100, 255)])
    assert words("mtgp32", seed, 0, engines, vectors, 1)[:, 0].tolist() == expected


def test_jump_matrices_of_rocrand():
    """Of 2^63 steps: recurrence 0 of `rocrand_mrg32k3a_precomputed.h` and of `rocrand_mrg31k3p_precomputed.h`."""
    assert jump_matrices("mrg32k3a", "word", 64)[63, 0].tolist() == [
        [967330218, 3464884028, 3444447102],
        [580449578, 1343714307, 3464884028],
        [1775329096, 4027221761, 1343714307],
    ]
    assert jump_matrices("mrg31k3p", "word", 64)[63, 0].tolist() == [
        [1646003433, 516429741, 823438334],
        [1571216288, 1646003433, 916014143],
        [672987287, 1571216288, 1011349101],
    ]


@pytest.mark.parametrize("generator", sorted(SCALARS))
@pytest.mark.parametrize("seed", [0, 1, 12345, 0xFFFFFFFF, 0x123456789ABCDEF0])
def test_engine_zero_is_the_generator_itself(generator, seed):
    state = [int(word) for word in engine_states(generator, seed, 0, 1, np.array([0]))[0]]
    assert stream(generator, seed, 1000) == take(1000, SCALARS[generator](state))


@pytest.mark.parametrize(("engine", "scalar"), [(MRG32K3A, mrg32k3a), (MRG31K3P, mrg31k3p)])
def test_numbers_before_stretching_fill_their_range(engine, scalar):  # type: ignore[no-untyped-def]
    """From 1 to m1, the ends included: m1 takes the place of 0. The ends must become words 0 and 2^32 - 1."""
    m1 = engine.recurrences[0].modulus
    assert int((m1 - 1) * engine.stretch) == 0xFFFFFFFF
    states = np.array([[1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1], [m1 - 1, 0, 1, 5, 0, 9]], np.uint32).T
    first = engine.draw(states.copy())
    assert first.tolist() == [next(scalar([int(word) for word in state])) for state in states.T]
    assert first.min() >= 1


@pytest.mark.parametrize(
    ("seed", "number"), [(5489, 0), (0, 0), (0xFFFFFFFF, 0), (5489, 1), (0, 8191), (0x1_0000_0000, 0), (2**64 - 1, 3)]
)
def test_every_generator_of_mt19937_is_seeded_as_its_authors_do(seed, number):
    """Generator 0 by `init_genrand` if the seed is short, all others by `init_by_array`; NumPy's own as the witness."""
    engines = 8 * 8192
    vectors = (np.arange(250)[:, None] * engines + 8 * number + np.arange(8)).ravel()
    expected = mt19937(seed if seed < 1 << 32 and number == 0 else [seed & 0xFFFFFFFF, seed >> 32, number])
    assert words("mt19937", seed, 0, engines, vectors, 1)[:, 0].tolist() == take(2000, expected)


@pytest.mark.parametrize(("seed", "number"), [(0, 0), (77, 1), (2**40 + 5, 511)])
def test_every_parameter_set_follows_its_recursion(seed, number):
    known = mtgp32_parameters()
    assert (known.shift1, known.shift2, known.mask, len(known)) == (13, 4, 0xFFF80000, 512)
    state = engine_states("mtgp32", seed, 0, 512 * 256, np.array([number]))[0]
    tables = known.recursion[number].tolist(), known.tempering[number].tolist()
    expected = mtgp32(state.tolist(), int(known.position[number]), *tables)
    vectors = (np.arange(8)[:, None] * 512 * 256 + 256 * number + np.arange(256)).ravel()
    assert words("mtgp32", seed, 0, 512 * 256, vectors, 1)[:, 0].tolist() == take(2048, expected)


def test_parameter_sets_are_distinct_and_a_step_needs_nothing_of_itself():
    """256 lanes of 351 words: what a lane reads was made by an earlier step if position < 351 - 256."""
    known = mtgp32_parameters()
    assert known.position.min() > 2
    assert known.position.max() < 351 - 256
    rows = np.concatenate([known.position[:, None], known.recursion, known.tempering], axis=1)
    assert len(np.unique(rows, axis=0)) == 512
    assert not known.recursion[:, 0].any()
    assert not known.tempering[:, 0].any()


@pytest.mark.parametrize("generator", ["mrg32k3a", "mrg31k3p"])
def test_a_seed_that_would_start_from_zeros_does_not(generator):
    """A multiple of m1 gives the first recurrence three zeros, from which it never comes away; and seed 0 is 12345."""
    m1 = ENGINES[generator].recurrences[0].modulus  # type: ignore[attr-defined]
    state: NDArray[np.uint32] = engine_states(generator, m1, 0, 1, np.array([0]))[0]
    assert state[:3].tolist() == [12345] * 3
    assert stream(generator, 0, 4) == stream(generator, 12345, 4)


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        (0x79690975FBDE15B0, [1116322460, 886107689, 1116322460, 3953850849, 1896222311, 3953850849]),
        (0x071DD0913271687B, [719770666, 3443832312, 719770666, 1665518351, 1125878063, 1665518351]),
    ],
)
def test_long_seeds_of_mrg32k3a_lose_what_rocrand_loses(seed, expected):
    """States of rocRAND 5.3.3's engine, compiled for a host: its products wrap, its remainders are cut."""
    assert engine_states("mrg32k3a", seed, 0, 1, np.array([0]))[0].tolist() == expected


def test_long_seeds_of_mrg31k3p_lose_what_rocrand_loses():
    """Products modulo 2^64 before the remainder (`rocrand_mrg31k3p.h`)."""
    seed, m1, m2 = 0x79690975FBDE15B0, 2**31 - 1, 2**31 - 21069
    x, y = (0xFBDE15B0 ^ 0x55555555) * seed % 2**64, (0x79690975 ^ 0xAAAAAAAA) * seed % 2**64
    expected = [x % m1, y % m1, x % m1, y % m2, x % m2, y % m2]
    assert engine_states("mrg31k3p", seed, 0, 1, np.array([0]))[0].tolist() == expected


@pytest.mark.parametrize(
    ("generator", "key"),
    [
        ("philox4_32_10", [0x89ABCDEF, 0x01234567]),
        ("threefry2_32_20", [0x89ABCDEF, 0x01234567]),
        ("threefry4_32_20", [0x89ABCDEF, 0x456789AB, 0x01234567, 0x0123]),
        ("threefry2_64_20", [0x0123456789ABCDEF, 0x01234567]),
        ("threefry4_64_20", [0x0123456789ABCDEF, 0x0123456789AB, 0x01234567, 0x0123]),
    ],
)
def test_seeds_become_keys_as_in_rocrand(generator, key):
    family, components, bits, rounds = re.fullmatch(r"([a-z]+)(\d)_(\d+)_(\d+)", generator).groups()  # type: ignore[union-attr]
    counter = [5, *[0] * (int(components) - 1)]
    made = block(f"{family}{components}x{bits}", int(rounds), counter, key)
    halves = [part >> shift & 0xFFFFFFFF for part in made for shift in range(0, int(bits), 32)]
    assert words(generator, 0x0123456789ABCDEF, 0, 1, np.array([5]), len(halves))[0].tolist() == halves


def test_no_component_of_lfsr113_starts_dead():
    """L'Ecuyer's limits 2, 8, 16 and 128 hold for every seed, short ones too."""
    for seed in (0, 1, 7, 1 << 32, 0x0001_0001_0001_0001, 0x0064_0009_0003_0000, 2**64 - 1):
        state = engine_states("lfsr113", seed, 0, 1, np.array([0]))[0]
        assert (state >= [2, 8, 16, 128]).all()
    assert engine_states("lfsr113", 0, 0, 1, np.array([0]))[0].tolist() == [2, 8, 16, 128]
    mended = engine_states("lfsr113", 0x0064_0009_0000_0003, 0, 1, np.array([0]))[0]
    assert mended.tolist() == [3, 0x0009_0000, 0x0064_0009, 0x64 + 128]
