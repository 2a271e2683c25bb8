"""The sources of the engine and quasi kinds by themselves, with stand-ins for distributions that only copy words.

So every word is seen, whatever a vector is made of, and calls follow one another at any place of a turn of the engines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import islice

import numpy as np
import pytest

from cuda_runner import H200
from opencl_runner import UNWRITTEN_BYTE, Guarded, opencl_device
from tunesmith.kernels.random.jumps import jumps
from tunesmith.kernels.random.programs import HEADERS, PROGRAMS
from tunesmith.problems.random import GENERATORS
from tunesmith.problems.random.streams import engine_states, quasi_words, sobol_directions, sobol_shift, words
from tunesmith.records import Argument, Launch, Module, OperandArgument, Plan, ScalarArgument
from tunesmith.toolchains.nvrtc import NvrtcToolchain
from tunesmith.toolchains.opencl import OpenCLToolchain

pytestmark = pytest.mark.opencl

SOURCES = files("tunesmith.kernels.random") / "source"
SEED = 0x123456789ABCDEF
ENGINES = [name for name, made in PROGRAMS.items() if "initialise" in made.entries]


@dataclass(frozen=True)
class StandIn:
    """A distribution whose OUT values of type VALUE are the bits of IN words, at `by` elements behind the address."""

    words: int
    values: int
    type: str
    body: str
    bits: int

    @property
    def text(self):
        return f"""
            #define IN {self.words}
            #define OUT {self.values}
            typedef {self.type} VALUE;
            typedef struct {{ u32 nothing; }} Distribution;
            #define DISTRIBUTION_ARGUMENTS , u32 by
            #define DISTRIBUTION moved(&out, by)
            INLINE Distribution moved(GLOBAL VALUE **out, u32 by)
            {{
                Distribution distribution;
                distribution.nothing = 0;
                *out += by;
                return distribution;
            }}
            INLINE void values(const u32 *words, VALUE *out, Distribution distribution) {{ {self.body} }}
            """

    @property
    def size(self):
        return self.bits // 8


JOINED = "out[{0}] = {1}(words[2 * {0}] | (u64)words[2 * {0} + 1] << 32);"
WORD = StandIn(1, 1, "u32", "out[0] = words[0];", 32)
BYTES = StandIn(1, 4, "u8", "for (int i = 0; i < 4; ++i) out[i] = (u8)(words[0] >> 8 * i);", 8)
PAIR = StandIn(2, 2, "u32", "out[0] = words[0]; out[1] = words[1];", 32)
LONG = StandIn(2, 1, "u64", JOINED.format(0, ""), 64)
DOUBLES = StandIn(4, 2, "double", JOINED.format(0, "as_double") + JOINED.format(1, "as_double"), 64)
STAND_INS = {"word": WORD, "bytes": BYTES, "pair": PAIR, "long": LONG, "doubles": DOUBLES}

BLOCKS = {"mtgp32": (256,) * 5, "mt19937": (8, 24, 64, 128, 40), "lfsr113": (64, 32, 256, 128, 16)}
"""Of work-items, for one stand-in after the other."""


def text_of(sources, stand_in):
    parts = [(SOURCES / name).read_text(encoding="utf-8") for name in ("dialect.h", *sources)]
    return "\n".join([parts[0], stand_in.text, *parts[1:]])


@cache
def program(sources, stand_in, entries, *options):
    device = opencl_device()
    module = Module("OpenCL", text_of(sources, stand_in), entries, options)
    return device.load(OpenCLToolchain().compile(module, device.target))


def launch(loaded, entry, grid, block, arguments, **bound):
    step = Launch(0, entry, (*grid, 1), (block, 1, 1), tuple(arguments))
    device = opencl_device()
    views = {name: buffer.view for name, buffer in bound.items()}
    device.prepare(Plan((step,)), [loaded], views, None).enqueue()
    device.synchronize()


def filled(size):
    return Guarded(np.full(max(size, 1), UNWRITTEN_BYTE, np.uint8))


class Engines:
    """The engines of a launch on the device, at the beginning of their sequence less `offset` words."""

    def __init__(self, generator, block, groups, seed=SEED, offset=0, optimised=False):
        self.generator, self.block, self.groups = generator, block, groups
        self.options = () if optimised else ("-cl-opt-disable",)
        self.state = filled(PROGRAMS[generator].state_bytes(self.count))
        arguments = [OperandArgument("state"), OperandArgument("jumps")]
        arguments += [ScalarArgument(seed, "uint64"), ScalarArgument(offset, "uint64")]
        self._launch("initialise", WORD, arguments, state=self.state, jumps=Guarded(jumps(generator)))
        self.start = offset % self.count

    @property
    def count(self):
        return self.block * self.groups

    def _launch(self, entry, stand_in, arguments, **bound):
        sources, options = PROGRAMS[self.generator].sources, (f"-DBLOCK_SIZE={self.block}", *self.options)
        loaded = program(sources, stand_in, ("initialise", "generate"), *options)
        launch(loaded, entry, (self.groups, 1), self.block, arguments, **bound)

    def give(self, stand_in, count, by=0):
        """The bytes of the next `count` values, which go to an address `by` values behind an aligned one."""
        out = filled((by + count) * stand_in.size)
        arguments = [OperandArgument("out"), ScalarArgument(count, "uint64"), OperandArgument("state")]
        arguments += [ScalarArgument(self.start, "uint32"), ScalarArgument(by, "uint32")]
        self._launch("generate", stand_in, arguments, out=out, state=self.state)
        self.state.read()
        self.start = (self.start + -(-count // stand_in.values)) % self.count
        bytes_ = out.read()[: (by + count) * stand_in.size]
        assert (bytes_[: by * stand_in.size] == UNWRITTEN_BYTE).all(), "written in front of the output"
        return bytes_[by * stand_in.size :]

    def words(self, count):
        return self.give(WORD, count).view(np.uint32)


def expected(engines, stand_in, first, count, offset=0):
    """The bytes of `count` values from vector `first` on."""
    vectors = first + np.arange(-(-count // stand_in.values))
    stream = words(engines.generator, SEED, offset, engines.count, vectors, stand_in.words)
    return stream.astype("<u4").ravel().view(np.uint8)[: count * stand_in.size]


@pytest.mark.parametrize("generator", ENGINES)
@pytest.mark.parametrize(
    ("name", "turn"),
    [
        pytest.param(name, turn, marks=() if name in ("bytes", "doubles") else pytest.mark.thorough)
        for turn, name in enumerate(STAND_INS)
    ],
)
def test_calls_follow_one_another_at_any_place_of_a_turn(generator, name, turn):
    """Of several turns and of part of one, with cut vectors, to aligned addresses and others."""
    stand_in, block = STAND_INS[name], BLOCKS.get(generator, (64, 32, 256, 96, 16))[turn]
    engines = Engines(generator, block, 4)
    whole = engines.count * stand_in.values
    vectors = 0
    for by, count in enumerate(
        [1, whole - stand_in.values, 3, 5 * whole + 7, 85 * whole - 1, whole, 2 * whole + 5, 0, 9]
    ):
        drawn = engines.give(stand_in, count, by % 3)
        assert drawn.tobytes() == expected(engines, stand_in, vectors, count).tobytes(), f"call {by}"
        vectors += -(-count // stand_in.values)


@pytest.mark.parametrize("generator", ["xorwow", "lfsr113", "mrg32k3a", "mrg31k3p"])
@pytest.mark.parametrize("offset", [1, 255, 256, 1000, 2**32 + 5, 2**63 + 12345])
def test_engines_stand_where_words_were_left_out(generator, offset):
    engines = Engines(generator, 64, 4, offset=offset, optimised=True)
    states = engines.state.read().view(np.uint32).reshape(-1, engines.count)
    where = engine_states(generator, SEED, offset, engines.count, np.arange(engines.count))
    assert np.array_equal(states.T, where)
    assert engines.give(PAIR, 2000).tobytes() == expected(engines, PAIR, 0, 2000, offset).tobytes()


@pytest.mark.parametrize("generator", ["mt19937", "mtgp32"])
@pytest.mark.parametrize(("former", "latter"), [(WORD, PAIR), (DOUBLES, WORD), (PAIR, DOUBLES)])
def test_vectors_of_another_size_begin_with_a_new_row(generator, former, latter):
    """Where a call begins at engine 0 after one that cut a row, all engines have used that row up."""
    engines = Engines(generator, BLOCKS[generator][2], 2)
    engines.give(former, (37 * engines.count + 11) * former.values)
    engines.start = 0
    used = 38 * former.words
    drawn = engines.give(latter, 40 * engines.count * latter.values).view(np.uint32)
    stream = words(generator, SEED, 0, engines.count, np.arange((used + 40 * latter.words) * engines.count), 1)
    rows = stream.reshape(-1, engines.count)[used:].reshape(40, latter.words, engines.count)
    assert np.array_equal(drawn, rows.transpose(0, 2, 1).ravel())


@pytest.mark.parametrize("seed", [5489, 0, 2**32 - 1, 2**32, SEED])
def test_mt19937_gives_numpys_numbers(seed):
    """By its two seedings; lane l of generator g gives words l, l + 8, ... of it."""
    engines = Engines("mt19937", 64, 2, seed)
    drawn = engines.words(1300 // 8 * engines.count).reshape(-1, engines.count // 8, 8)
    for number in (0, 1, 15):
        key = seed if number == 0 and seed < 1 << 32 else [seed & 0xFFFFFFFF, seed >> 32, number]
        stream = np.frombuffer(np.random.RandomState(key).bytes(4 * 8 * len(drawn)), "<u4")
        assert np.array_equal(drawn[:, number].ravel(), stream)


def test_mt19937_gives_the_cpp_standards_10000th_number():
    assert Engines("mt19937", 8, 1, 5489).words(10000)[-1] == 4123659995


def scalar_xorwow(x, y, z, w, v, d):
    """As printed in Marsaglia's article (J. Stat. Softw. 8 (2003), no. 14), with its names."""
    while True:
        t = x ^ x >> 2
        x, y, z, w = y, z, w, v
        v = (v ^ v << 4 ^ t ^ t << 1) & 0xFFFFFFFF
        d = (d + 362437) & 0xFFFFFFFF
        yield (d + v) & 0xFFFFFFFF


def test_xorwow_gives_marsaglias_numbers():
    """The seed that the disturbance of his state turns into nothing."""
    drawn = Engines("xorwow", 1, 1, 0xA03697CB2C7F967F).words(1000)
    assert drawn[:5].tolist() == [246875399, 3690007200, 1264581005, 3906711041, 1866187943]
    scalar = scalar_xorwow(123456789, 362436069, 521288629, 88675123, 5783321, 6615241)
    assert drawn.tolist() == list(islice(scalar, 1000))


def test_mrg32k3a_gives_lecuyers_numbers():
    """From 12345 six times, 0.127011122046577 is the first; then by his recurrences in Python's integers."""
    m1, m2 = 4294967087, 4294944443
    engines = Engines("mrg32k3a", 1, 1)
    engines.state = Guarded(np.full(6, 12345, np.uint32))
    drawn = engines.words(1000)
    x, y, stretched, numbers = [12345] * 3, [12345] * 3, [], []
    for _ in drawn:
        x = [*x[1:], (1403580 * x[1] - 810728 * x[0]) % m1]
        y = [*y[1:], (527612 * y[2] - 1370589 * y[0]) % m2]
        numbers.append((x[2] - y[2]) % m1 or m1)
        stretched.append(int((numbers[-1] - 1) * 1.000000048661607))
    assert numbers[0] / (m1 + 1) == pytest.approx(0.127011122046577, abs=1e-15)
    assert drawn.tolist() == stretched


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", ["bytes", "word", "long"])
def test_sobol_points_come_at_any_place_and_count(bits, name):
    """In three dimensions, so that most rows begin at odd addresses; across the middle of 64-bit numbers too."""
    types = {"bytes": ("u8", 8), "word": ("u32", 32), "long": ("u64", 64)}
    value, size = types[name]
    top = f"words[0] >> {32 - size}" if bits == 32 and size <= 32 else "words[0]"
    if bits == 64:
        top = f"(words[0] | (u64)words[1] << 32) >> {64 - size}"
    stand_in = StandIn(bits // 32, 1, value, f"out[0] = ({value})({top});", size)
    generator, dimensions, block, groups = f"scrambled_sobol{bits}", 3, 48, 3
    loaded = program(("sobol.h",), stand_in, ("generate",), f"-DBLOCK_SIZE={block}", f"-DWORD_BITS={bits}")
    tables = {
        "directions": Guarded(sobol_directions(generator, SEED, dimensions).ravel()),
        "shift": Guarded(sobol_shift(generator, SEED, dimensions)),
    }
    for count, offset, by in [(0, 0, 0), (1, 7, 1), (15, 2, 0), (4000, 0, 0), (4003, 5, 3), (4096, 2**32 - 2048, 2)]:
        out = filled((by + dimensions * count) * stand_in.size)
        arguments: list[Argument] = [OperandArgument("out"), ScalarArgument(count, "uint64")]
        arguments += [OperandArgument("directions"), OperandArgument("shift")]
        arguments += [ScalarArgument(offset, "uint64"), ScalarArgument(by, "uint32")]
        launch(loaded, "generate", (groups, dimensions), block, arguments, out=out, **tables)
        index, dimension = (grid.ravel() for grid in np.meshgrid(np.arange(count), np.arange(dimensions)))
        points = quasi_words(generator, SEED, offset, index, dimension)
        shown = (points >> points.dtype.type(max(bits - size, 0))).astype(f"<u{size // 8}")
        written = out.read()[: (by + dimensions * count) * stand_in.size]
        assert (written[: by * stand_in.size] == UNWRITTEN_BYTE).all()
        assert written[by * stand_in.size :].tobytes() == shown.tobytes(), (count, offset, by)


def test_there_are_matrices_for_all_engines_and_offsets():
    sizes = {"xorwow": 801, "lfsr113": 128, "mrg32k3a": 18, "mrg31k3p": 18}
    assert {name: len(jumps(name)) for name in sizes} == {name: 88 * size for name, size in sizes.items()}
    assert len(jumps("mtgp32")) == 512 * 36


HEAVIEST, LIGHTER = ("LOG_NORMAL", "DOUBLE"), (("UNIFORM", "FLOAT"), ("POISSON", "U32"))


@pytest.mark.parametrize(
    ("kind", "value", "generator"),
    [
        *((*HEAVIEST, generator) for generator in ENGINES),
        *(
            pytest.param(*form, generator, marks=() if generator == "xorwow" else pytest.mark.thorough)
            for form in LIGHTER
            for generator in ENGINES
        ),
    ],
)
def test_engines_stay_in_an_h200s_registers_and_local_memory(generator, kind, value):
    """No spills; local memory as `EngineSource` says; registers for 640 work-items on a multiprocessor at the least.

    Each generator with the values that need the most registers, and one with others. The thorough run adds the rest.
    """
    toolchain = NvrtcToolchain()
    if reason := toolchain.unavailable():
        pytest.skip(reason)
    source, block = PROGRAMS[generator], BLOCKS[generator][0] if generator == "mtgp32" else 128
    parts = (*HEADERS, *source.sources)
    text = "\n".join((SOURCES / name).read_text(encoding="utf-8") for name in parts)
    macros = {"BLOCK_SIZE": block, "DISTRIBUTION_KIND": kind, "VALUE_KIND": value}
    macros["DOUBLE_WORDS"] = GENERATORS[generator].double_words
    options = tuple(f"-D{name}={word}" for name, word in macros.items())
    _, generate = toolchain.compile(Module("CUDA", text, ("initialise", "generate"), options), H200).facts
    assert generate.spill_bytes == 0
    assert generate.local_bytes == source.local_bytes(block)
    assert generate.registers
    assert generate.registers <= 65536 // 640
