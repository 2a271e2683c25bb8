"""Which word belongs to which vector: definitions against loops, jumps against steps, samples against the whole."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from random_scalars import SCALARS
from tunesmith.problems.random.counter import COUNTERS
from tunesmith.problems.random.engines import DENSE, ENGINES
from tunesmith.problems.random.streams import LANES, engine_states, jump_matrices, words
from tunesmith.problems.random.xorwow import WEYL
from tunesmith.records import UserError

Words = NDArray[np.uint32]

FEWEST = {"mt19937": 16, "mtgp32": 512} | dict.fromkeys([*COUNTERS, *ENGINES], 16)
"""Engines: a few, but more than one generator or parameter set of those that share one."""

SEED = 0x0123456789ABCDEF
PSEUDO = sorted(FEWEST)


@lru_cache(maxsize=32)
def whole(generator, count, width=1, *, offset=0, engines=None):
    return words(generator, SEED, offset, engines or FEWEST[generator], np.arange(count), width)


@pytest.mark.parametrize("generator", sorted(ENGINES))
@pytest.mark.parametrize(("offset", "width"), [(0, 1), (1, 2), (16, 4), (37, 3)])
def test_vectors_are_dealt_to_engines_in_turn(generator, offset, width):
    """Engine e skips offset // T + (e < offset % T) words; vector j takes `width` more of engine (offset + j) % T."""
    engines, count = 16, 100
    states = engine_states(generator, SEED, 0, engines, np.arange(engines))
    streams = [SCALARS[generator]([int(word) for word in state]) for state in states]
    for engine, stream in enumerate(streams):
        for _ in range(offset // engines + (engine < offset % engines)):
            next(stream)
    expected = [list(itertools.islice(streams[(offset + j) % engines], width)) for j in range(count)]
    assert whole(generator, count, width, offset=offset).tolist() == expected


@pytest.mark.parametrize("generator", sorted(LANES))
@pytest.mark.parametrize("width", [1, 3])
def test_vectors_are_dealt_to_lanes_in_turn(generator, width):
    """Lane l of L takes words l, l + L, ... of its generator or set: with one row, width 1 gives its words in order."""
    lanes, engines = LANES[generator].lanes, FEWEST[generator]
    rounds = 900 // engines + 2
    dealt = whole(generator, engines * rounds, width).reshape(rounds, engines // lanes, lanes, width)
    first = words(generator, SEED, 0, lanes, np.arange(rounds * width * lanes), 1)
    # (round, lane, place in the vector) to (round, place, lane): the order in which the row makes them.
    assert np.array_equal(dealt[:, 0].transpose(0, 2, 1).ravel(), first[:, 0])
    assert len(np.unique(dealt.reshape(rounds, -1, lanes * width)[0], axis=0)) == engines // lanes


@pytest.mark.parametrize("generator", sorted(COUNTERS))
@pytest.mark.parametrize("offset", [0, 1, 5, 1000, 2**34 - 3, 2**63 + 1])
def test_counters_give_one_sequence_whatever_the_engines(generator, offset):
    """Word offset + j width + i: as from the sequence one by one, and for any number of engines."""
    together = whole(generator, 50, 4, offset=offset)
    assert np.array_equal(together.ravel(), whole(generator, 200, offset=offset)[:, 0])
    assert np.array_equal(together, whole(generator, 50, 4, offset=offset, engines=7))
    assert np.array_equal(together.ravel()[9:], whole(generator, 191, offset=offset + 9)[:, 0])


def test_a_counter_beyond_32_bits_carries():
    """Philox block 2^32 is counter (0, 1, 0, 0): another one than block 0, and the next after counter (2^32 - 1, 0)."""
    last, first = whole("philox4_32_10", 2, 4, offset=4 * (2**32 - 1))
    assert not np.array_equal(first, whole("philox4_32_10", 1, 4)[0])
    assert np.array_equal(first, whole("philox4_32_10", 1, 4, offset=2**34)[0])
    assert not np.array_equal(last, first)


@pytest.mark.parametrize("generator", ["threefry2_64_20", "threefry4_64_20"])
def test_a_number_of_64_bits_gives_its_low_half_first(generator):
    blocks = COUNTERS[generator].blocks(SEED, 0, np.arange(3))
    components = COUNTERS[generator].components
    assert blocks.shape == (3, 2 * components)
    assert np.array_equal(whole(generator, 6 * components)[:, 0], blocks.ravel())


@pytest.mark.parametrize("generator", PSEUDO)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_sample_is_the_whole_at_its_places(generator, data):
    """Any vectors, in any order, repeated or not, give the rows of the whole: jumps, steps and groups agree."""
    width, count = data.draw(st.integers(1, 4)), 2000
    offset = 0 if generator in LANES else data.draw(st.sampled_from([0, 3, 16, 12345, 2**40 + 7, 2**64 - 5]))
    vectors = np.array(data.draw(st.lists(st.integers(0, count - 1), max_size=12)), np.int64)
    sampled = words(generator, SEED, offset, FEWEST[generator], vectors, width)
    assert sampled.dtype == np.uint32
    assert np.array_equal(sampled, whole(generator, count, width, offset=offset)[vectors])


@pytest.mark.parametrize("generator", sorted(LANES))
def test_rows_of_unlike_depth_are_followed_in_groups(generator):
    """More rows than a group holds, deepest ones anywhere: a vector is the same whoever else is asked for."""
    source = LANES[generator]
    engines = source.lanes * (source.group + 9)
    vectors = np.arange(0, 12 * engines, source.lanes * 3 + 1)
    picked = [0, 5, len(vectors) // 2, len(vectors) - 1]
    alone = [words(generator, SEED, 0, engines, vectors[[i]], 2)[0].tolist() for i in picked]
    assert len(np.unique(vectors % engines // source.lanes)) > source.group
    assert words(generator, SEED, 0, engines, vectors, 2)[picked].tolist() == alone


@pytest.mark.parametrize("generator", sorted(ENGINES))
def test_few_deep_vectors_and_all_of_a_stream_take_different_ways(generator):
    """The sample is sparse enough to jump, the whole is stepped through; both give the same."""
    engines, depth = 64, 700
    vectors = np.arange(0, engines * depth, 9973)
    assert depth * len(vectors) > DENSE * len(vectors) * 2
    everything = whole(generator, engines * depth, 2, engines=engines)
    assert np.array_equal(words(generator, SEED, 0, engines, vectors, 2), everything[vectors])


@pytest.mark.parametrize("generator", sorted(ENGINES))
def test_a_jump_is_so_many_steps(generator):
    engine = ENGINES[generator]
    numbers = np.array([0, 1, 2, 5, 1000])
    states = np.ascontiguousarray(engine_states(generator, SEED, 0, 1024, numbers).T)
    for log2 in range(11):
        walked = states.copy()
        for _ in range(1 << log2):
            engine.step(walked)
        assert np.array_equal(engine.jump(states, log2), walked)


@pytest.mark.parametrize(("generator", "words_of_state"), [("xorwow", 5), ("lfsr113", 4)])
def test_each_matrix_over_two_elements_is_the_square_of_the_one_before(generator, words_of_state):
    """Up to the engines' distance and beyond, by matrix products of ones and zeros in floating point, modulo 2."""
    top = ENGINES[generator].subsequence_log2
    matrices = np.concatenate([jump_matrices(generator, "word", top), jump_matrices(generator, "subsequence", 21)])
    assert matrices.shape == (top + 21, 32 * words_of_state, words_of_state)
    bits = np.unpackbits(matrices.astype("<u4").view(np.uint8), axis=2, bitorder="little").astype(np.float32)
    assert np.array_equal(bits[1:], bits[:-1] @ bits[:-1] % 2)


@pytest.mark.parametrize("generator", ["mrg32k3a", "mrg31k3p"])
def test_each_matrix_of_residues_is_the_square_of_the_one_before(generator):
    top = ENGINES[generator].subsequence_log2
    matrices = np.concatenate([jump_matrices(generator, "word", top), jump_matrices(generator, "subsequence", 21)])
    assert matrices.shape == (top + 21, 2, 3, 3)
    for index, recurrence in enumerate(ENGINES[generator].recurrences):  # type: ignore[attr-defined]
        exact = matrices[:, index].astype(object)
        for half, full in itertools.pairwise(exact):
            assert np.array_equal(half @ half % recurrence.modulus, full)


@pytest.mark.parametrize("generator", sorted(ENGINES))
def test_matrices_take_a_device_from_engine_to_engine(generator):
    """As their documentation says: the state of engine 5, skipped ahead by 3 words, from that of engine 0."""

    def advanced(state, matrix):
        if generator.startswith("mrg"):
            moduli = [recurrence.modulus for recurrence in ENGINES[generator].recurrences]  # type: ignore[attr-defined]
            halves = zip(matrix.tolist(), (state[:3], state[3:]), moduli, strict=True)
            return [sum(a * x for a, x in zip(row, half, strict=True)) % m for rows, half, m in halves for row in rows]
        images = [row for i, row in enumerate(matrix) if state[i // 32] >> i % 32 & 1]
        return [int(word) for word in np.bitwise_xor.reduce(images)] + state[matrix.shape[1] :]

    state = [int(word) for word in engine_states(generator, SEED, 0, 8, np.array([0]))[0]]
    for unit, powers in (("subsequence", (0, 2)), ("word", (0, 1))):
        for power in powers:
            state = advanced(state, jump_matrices(generator, unit, 3)[power])  # type: ignore[arg-type]
    if generator == "xorwow":
        state[5] = (state[5] + 3 * WEYL) % 2**32
    assert engine_states(generator, SEED, 3 * 8, 8, np.array([5]))[0].tolist() == state


@pytest.mark.parametrize("generator", sorted(ENGINES))
def test_states_are_where_the_words_start(generator):
    """An engine's state after `offset` words gives the words of its first vectors; repeated numbers do no harm."""
    engines, offset = 1 << 21, 2**63 + 12345
    numbers = np.array([0, 7, 12344, 12345, engines - 1, 7])
    states = engine_states(generator, SEED, offset, engines, numbers)
    assert states.shape == (6, len(ENGINES[generator].seeded(SEED)))
    vectors = (numbers - offset % engines) % engines
    expected = [next(SCALARS[generator]([int(word) for word in state])) for state in states]
    assert words(generator, SEED, offset, engines, vectors, 1)[:, 0].tolist() == expected
    assert np.array_equal(
        engine_states(generator, SEED, 5, 64, np.arange(64))[[3, 9]],
        engine_states(generator, SEED, 5, 64, np.array([3, 9])),
    )


@pytest.mark.parametrize("generator", PSEUDO)
def test_every_bit_of_the_seed_counts(generator):
    """As far as rocRAND's seeding lets it: lfsr113 never looks at the lowest two, mtgp32 folds the halves together."""
    bits = {"lfsr113": range(2, 64), "mtgp32": range(32)}.get(generator, range(64))
    engines = FEWEST[generator]
    first_words = {words(generator, 1 << bit, 0, engines, np.arange(64), 1).tobytes() for bit in bits}
    assert len(first_words) == len(bits)


@pytest.mark.parametrize("generator", PSEUDO)
def test_bits_are_even_and_engines_unlike(generator):
    """Of 2^15 words each bit is one in half, within 5 standard deviations of a fair coin, and hardly two are equal.

    Stretching the 2^31 - 1 numbers of mrg31k3p, 2 x + floor(3 x / 2^31), makes the lowest bit one in a third of them.
    A bit that is one in 51.4 % is found; test_random_quality looks at more words.
    """
    count = 1 << 15
    made = whole(generator, count)[:, 0]
    ones = np.array([np.count_nonzero(made >> np.uint32(bit) & np.uint32(1)) for bit in range(32)])
    expected = np.full(32, 1 / 2)
    expected[0] = 1 / 3 if generator == "mrg31k3p" else 1 / 2
    assert (np.abs(ones - count * expected) < 5 * np.sqrt(count * expected * (1 - expected))).all()
    # Of 2^29 pairs each is equal with probability 2^-32, or 2^-31: hardly one is, engines alike would give 2^11.
    assert count - len(np.unique(made)) < 20


@pytest.mark.parametrize(
    ("generator", "seed", "offset", "engines", "complaint"),
    [
        ("xorwov", 0, 0, 8, "is no generator"),
        ("xorwow", -1, 0, 8, "seed -1"),
        ("xorwow", 1 << 64, 0, 8, "64 bits"),
        ("philox4_32_10", 0, 1 << 64, 8, "offset"),
        ("xorwow", 0, 0, 0, "0 engines"),
        ("lfsr113", 0, 0, 600 * 256, "power of two"),
        ("mt19937", 0, 0, 12, "multiple of 8"),
        ("mt19937", 0, 1, 16, "cannot skip 1 words"),
        ("mtgp32", 0, 0, 128, "multiple of 256"),
        ("mtgp32", 0, 7, 256, "cannot skip 7 words"),
        ("mtgp32", 0, 0, 513 * 256, "take 131072 at most"),
        ("sobol32", 0, 0, 8, "gives points"),
    ],
)
def test_what_a_generator_cannot_do_is_said(generator, seed, offset, engines, complaint):
    with pytest.raises(UserError, match=complaint) as caught:
        words(generator, seed, offset, engines, np.arange(4), 1)
    assert caught.value.location == generator


def test_counters_have_no_engines_to_start():
    with pytest.raises(UserError, match="has no engines"):
        engine_states("philox4_32_10", 0, 0, 8, np.arange(8))
