"""The random words of all generators in NumPy, which every kernel must reproduce, and the data that kernels start from.

`words` defines the words of pseudo-random generators, `quasi_words` the points of Sobol' generators. The module of each
generator says where the generator comes from and how a seed starts it. Seeds and offsets are natural numbers below
2^64. `reference.py` makes values of words.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from tunesmith.records import UserError

from .arrays import Int64, Words
from .counter import COUNTERS, counter_words
from .engines import ENGINES, engine_words, states_of
from .lanes import LaneGenerator, pick
from .mt19937 import Mt19937
from .mtgp32 import Mtgp32
from .mtgp32 import mtgp32_parameters as mtgp32_parameters
from .sobol import SOBOLS, Fractions, Sobol, most_dimensions

LANES: dict[str, LaneGenerator] = {"mt19937": Mt19937(), "mtgp32": Mtgp32()}


def words(generator: str, seed: int, offset: int, engines: int, vectors: Int64, width: int) -> Words:
    """The words (vectors, width), in uint32, that make the vectors with these numbers.

    `offset` words of the sequence are skipped; a vector takes `width` words. philox and threefry: word i of vector j is
    word offset + j width + i of one sequence, whatever `engines` is. All other generators have `engines` engines (T):
    engine e skips offset // T + (e < offset % T) words. Vector j comes from engine (offset + j) % T, and takes the
    words j // T * width ... of those that this engine has left. mt19937 and mtgp32 take no offset.

    A few thousand vectors are cheap at any position: xorwow, mrg and lfsr113 jump; mt19937 and mtgp32 are followed to
    the deepest word of each generator or parameter set that is touched. Raises UserError for arguments that the
    generator does not take.
    """
    _check(generator, seed, offset)
    if generator in SOBOLS:
        raise UserError(generator, "gives points, not a stream of words", "take a pseudo-random generator")
    if generator not in COUNTERS:
        _check_engines(generator, engines, offset)
    vectors = np.asarray(vectors, np.int64)
    if not len(vectors):
        return np.empty((0, width), np.uint32)
    if generator in COUNTERS:
        return counter_words(COUNTERS[generator], seed, offset, vectors, width)
    if generator in ENGINES:
        return engine_words(ENGINES[generator], seed, offset, engines, vectors, width)
    source = LANES[generator]
    row, lane = np.divmod(vectors % engines, source.lanes)
    step = (vectors // engines * width)[:, None] + np.arange(width)
    return pick(source, seed, row, step * source.lanes + lane[:, None])


def engine_states(generator: str, seed: int, offset: int, engines: int, numbers: Int64) -> Words:
    """The states (numbers, state words), in uint32, before vector 0, if all `engines` engines have skipped `offset`.

    xorwow (x0..x4, d), mrg32k3a and mrg31k3p (three words of each recurrence), lfsr113 (z1..z4): `numbers` are engines.
    mt19937 (624 words): `numbers` are generators, engine // 8. mtgp32 (351 words): `numbers` are parameter sets,
    engine // 256. The modules `xorwow`, `mrg`, `lfsr113`, `mt19937` and `mtgp32` say what each word means.
    """
    _check(generator, seed, offset)
    _check_engines(generator, engines, offset)
    numbers = np.asarray(numbers, np.int64)
    if generator in ENGINES:
        return states_of(ENGINES[generator], seed, offset, engines, numbers)
    if generator not in LANES:
        raise UserError(generator, "has no engines", f"take one of {', '.join([*ENGINES, *LANES])}")
    return np.ascontiguousarray(LANES[generator].initial_states(seed, numbers).T)


def jump_matrices(generator: str, unit: Literal["word", "subsequence"], count: int) -> Words:
    """The matrices that skip 2^k words, or 2^k subsequences (the distance of two engines), for k below `count`.

    xorwow (count, 160, 5) and lfsr113 (count, 128, 4): [k, i] is the image of the state with only bit i % 32 of word
    i // 32, so that a state's image is the xor over its bits. xorwow's d is not in the matrix: 2^k words add
    362437 * 2^k to d, and a subsequence adds nothing. mrg32k3a and mrg31k3p (count, 2, 3, 3): [k, c, r] are the
    coefficients of word r of recurrence c, modulo 2^32 - 209 and 2^32 - 22853, or 2^31 - 1 and 2^31 - 21069.
    """
    engine = ENGINES[generator]
    first = engine.subsequence_log2 if unit == "subsequence" else 0
    return np.stack([engine.matrix(first + k) for k in range(count)])


def quasi_words(generator: str, seed: int, offset: int, index: Int64, dimension: Int64) -> Fractions:
    """Points `offset + index` of dimensions `dimension` (from 0), in uint32, or uint64 for 64 bits.

    `index` and `dimension` have the same shape. Only scrambled generators use the seed. Points repeat after 2^bits.
    """
    dimension = np.asarray(dimension, np.int64)
    sobol = _sobol(generator, seed, offset, int(dimension.max(initial=0)) + 1)
    if not dimension.size:
        return np.empty(dimension.shape, sobol.dtype)
    return sobol.points(seed, offset, np.asarray(index, np.int64), dimension)


def sobol_directions(generator: str, seed: int, dimensions: int) -> Fractions:
    """The direction numbers (dimensions, bits) in uint32 or uint64.

    Point n is the xor of the direction numbers at the bits of n ^ (n >> 1), and of the shift.
    """
    return _sobol(generator, seed, 0, dimensions).directions(seed, np.arange(dimensions))


def sobol_shift(generator: str, seed: int, dimensions: int) -> Fractions:
    """The shift (dimensions,) in uint32 or uint64 that every point of a dimension is xored with; 0 if not scrambled."""
    return _sobol(generator, seed, 0, dimensions).shift(seed, np.arange(dimensions))


def _sobol(generator: str, seed: int, offset: int, dimensions: int) -> Sobol:
    _check(generator, seed, offset)
    if generator not in SOBOLS:
        raise UserError(generator, "gives a stream of words, not points", f"points come from {', '.join(SOBOLS)}")
    if not 0 < dimensions <= most_dimensions():
        what = f"{dimensions} dimensions asked for, {most_dimensions()} are known"
        raise UserError(generator, what, f"take 1 to {most_dimensions()}")
    return SOBOLS[generator]


def _check(generator: str, seed: int, offset: int) -> None:
    names = [*COUNTERS, *ENGINES, *LANES, *SOBOLS]
    if generator not in names:
        raise UserError(generator, "is no generator", f"take one of {', '.join(names)}")
    for what, value in (("seed", seed), ("offset", offset)):
        if not 0 <= value < 1 << 64:
            raise UserError(generator, f"{what} {value} is not in 0 .. 2^64 - 1", f"give a {what} of 64 bits")


def _check_engines(generator: str, engines: int, offset: int) -> None:
    if generator in LANES:
        lanes = LANES[generator].lanes
        if engines < lanes or engines % lanes:
            raise UserError(generator, f"{engines} engines are no multiple of {lanes}", f"take a multiple of {lanes}")
        if offset:
            raise UserError(generator, f"cannot skip {offset} words", "set offset to 0, or take another generator")
    if generator == "mtgp32" and engines > (most := 256 * len(mtgp32_parameters())):
        raise UserError(generator, f"{engines} engines need more parameter sets than there are", f"take {most} at most")
    if generator == "lfsr113" and engines & engines - 1:
        raise UserError(generator, f"{engines} engines are no power of two", "take a power of two")
    if engines < 1:
        raise UserError(generator, f"{engines} engines", "take one at least")
