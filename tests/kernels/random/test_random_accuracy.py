"""How far a device's distributions are from the exact ones, over words that are hard for them and many others.

A kernel of the test's own takes its words from a buffer, so that it sees those that no generator gives before long.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np
import pytest

from cuda_runner import cuda_device, toolchain
from opencl_runner import opencl_device
from tunesmith.kernels.random.family import DISTRIBUTION_KINDS, VALUE_KINDS
from tunesmith.kernels.random.programs import HEADERS
from tunesmith.problems.random import DTYPES, GENERATORS, WIDTHS, scalars_for, width_of
from tunesmith.problems.random.distributions import quasi_values_of, values_of
from tunesmith.records import Launch, Module, OperandArgument, Plan, ScalarArgument
from tunesmith.toolchains import TOOLCHAINS

COUNTS = [1 << 18, pytest.param(1 << 20, marks=pytest.mark.thorough)]
"""Vectors: each of the 13,000 hard words is at each place of one twice, at least."""

PROBE = """
KERNEL probe(GLOBAL VALUE *out, GLOBAL const u32 *given DISTRIBUTION_ARGUMENTS)
{
    u32 words[IN];
    VALUE made[OUT];
    for (int i = 0; i < IN; ++i) words[i] = given[GLOBAL_ID * IN + i];
    values(words, made, DISTRIBUTION);
    for (int i = 0; i < OUT; ++i) out[GLOBAL_ID * OUT + i] = made[i];
}
"""


@pytest.fixture(
    scope="module",
    params=[pytest.param("OpenCL", marks=pytest.mark.opencl), pytest.param("CUDA", marks=pytest.mark.gpu)],
)
def device(request):
    if request.param == "OpenCL":
        return opencl_device()
    toolchain("CUDA")
    return cuda_device()


def made(  # type: ignore[no-untyped-def]
    device,
    distribution,
    value_type,
    words,
    scalars,
    bits=0,
    double_words=2,
):
    """Values of words (vectors, words of a vector), as float64; of points of so many `bits` if these are not 0."""
    values = 1 if bits else WIDTHS[distribution][value_type].values
    block, dtype, language = 64, np.dtype(DTYPES[value_type]), device.target.api
    folder = files("tunesmith.kernels.random") / "source"
    source = "\n".join((folder / name).read_text() for name in HEADERS) + PROBE
    macros = {
        "BLOCK_SIZE": block,
        "DISTRIBUTION_KIND": DISTRIBUTION_KINDS[distribution],
        "VALUE_KIND": VALUE_KINDS[value_type],
    }
    macros["DOUBLE_WORDS"] = bits // 32 or double_words
    macros |= {"QUASI": 1, "WORD_BITS": bits} if bits else {}
    module = Module(language, source, ("probe",), tuple(f"-D{name}={value}" for name, value in macros.items()))
    program = device.load(TOOLCHAINS[language].compile(module, device.target))
    real = "float64" if value_type == "double" else "float32"
    moments = tuple(ScalarArgument(float(scalars[name]), real) for name in ("mean", "stddev"))  # type: ignore[arg-type]
    arguments = (OperandArgument("Out"), OperandArgument("Words"), *moments)
    launch = Launch(0, "probe", (len(words) // block, 1, 1), (block, 1, 1), arguments)
    sizes = {"Words": words.nbytes, "Out": len(words) * values * dtype.itemsize}
    buffers = {name: device.allocate(size) for name, size in sizes.items()}
    device.write(buffers["Words"], np.ascontiguousarray(words).view(np.uint8).ravel())
    device.prepare(Plan((launch,)), [program], buffers, None).enqueue()
    found = device.read(buffers["Out"], sizes["Out"]).view(dtype).astype(np.float64)
    device.release(*buffers.values())
    return found.reshape(len(words), values)


@cache
def hard_words():
    """All about 0, the powers of two, their sums of two, the eighths of the range; and where a logarithm is near 0."""
    powers = 1 << np.arange(33)
    corners = np.concatenate([powers, (powers[:, None] + powers).ravel(), np.arange(9) << 29, [3 << 30]])
    near = corners[:, None] + np.concatenate([np.arange(-9, 10), 1 << np.arange(4, 12), -(1 << np.arange(4, 12))])
    return np.unique(near % 2**32).astype(np.uint32)


@cache
def words_of(count, width):
    """(count, width): hard ones with hard and with usual ones in the other places, and usual ones."""
    random = np.random.default_rng(20240229)
    words = random.integers(0, 1 << 32, (count, width), np.uint32)
    hard = hard_words()
    for index in range(width):
        rows = slice(index * count // 8, (index + 1) * count // 8)
        words[rows, index] = np.resize(hard, count // 8)
    rows = slice(count // 2, count // 4 * 3)
    words[rows] = random.choice(hard, (count // 4, width))
    return words


def worst(found, expected):
    """The largest error in units of the bound, and where."""
    error = np.abs(found - expected.value)
    ratio = np.divide(error, expected.bound, out=np.where(error == 0, 0.0, np.inf), where=expected.bound > 0)
    index = np.unravel_index(int(np.argmax(ratio)), ratio.shape)
    assert not np.isnan(ratio).any()
    return float(
        ratio[index]
    ), f"{found[index]:.17g}, exactly {expected.value[index]:.17g}, {ratio[index]:.3f} bounds off"


FORMS = [
    ("normal", "float", 0.0, 1.0),
    ("normal", "double", 0.0, 1.0),
    ("normal", "half", 0.0, 1.0),
    ("normal", "float", 100.0, 0.25),
    ("log_normal", "float", 0.0, 1.0),
    ("log_normal", "double", 0.0, 1.0),
    ("log_normal", "half", 0.25, 0.5),
]


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize(
    ("distribution", "value_type", "mean", "deviation", "double_words"),
    [(*form, 2) for form in FORMS] + [(*form, 1) for form in FORMS if form[1] == "double"],
)
def test_normal_numbers_are_within_their_bound(device, distribution, value_type, mean, deviation, double_words, count):  # type: ignore[no-untyped-def]
    """Those of Box and Muller. In float64 they are as good as exact, unless a double's own errors are in question."""
    generator = replace(GENERATORS["xorwow"], double_words=double_words)
    words = words_of(count, width_of(generator, distribution, value_type).words)
    scalars = scalars_for(distribution, mean=mean, stddev=deviation)
    found = made(device, distribution, value_type, words, scalars, double_words=double_words)
    ratio, where = worst(found, values_of(distribution, value_type, words, scalars))
    assert ratio < 1, where


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("distribution", "value_type", "mean", "deviation"), FORMS)
def test_quantiles_are_within_their_bound(device, distribution, value_type, mean, deviation, bits, count):  # type: ignore[no-untyped-def]
    words = words_of(count, bits // 32)
    scalars = scalars_for(distribution, mean=mean, stddev=deviation)
    found = made(device, distribution, value_type, words, scalars, bits)
    ratio, where = worst(found, quasi_values_of(distribution, value_type, words.view(f"u{bits // 8}"), scalars))
    assert ratio < 1, where
