"""Narrow data types and epilogues: a correct kernel passes in each of them, and similar wrong kernels do not."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from cuda_runner import H200
from tunesmith.kernels import KERNELS
from tunesmith.problems import OPERATIONS
from tunesmith.problems.gemm import Gemm, gemm_type, strided
from tunesmith.problems.gemm.fields import DATA_TYPES, INPUTS
from tunesmith.records import Configuration, Problem

GEMM = OPERATIONS["GEMM"]
KS = (1, 3, 64, 1000)
SIDE = 24
PAIRS = [(letter, dest) for letter in INPUTS for dest in DATA_TYPES[letter].dest]


def erf(x):
    """The error function in single precision, as in a kernel."""
    return np.array([math.erf(number) for number in x.flat], np.float32).reshape(x.shape)


ACTIVATIONS = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: np.float32(0.5) * x * (1 + erf(x * np.float32(0.5**0.5))),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


class Honest:
    """Computes like a kernel: products and sums in the type of the sums, rounded to D's type at the end."""

    def terms(self, a, b):
        return a, b

    def scaled(self, sums, scales):
        return sums * math.prod(scales)

    def biased(self, x, bias):
        return x + bias[:, None]

    def activated(self, activation, x):
        return ACTIVATIONS[activation](x)

    def finished(self, x, c, activation):
        return self.activated(activation, x) + c

    def narrow(self, x, dest):
        return x.astype(dest)

    def __call__(self, problem, inputs):
        g = Gemm.of(problem)
        sums = np.dtype(g.sums)
        a, b = self.terms(inputs["A"].astype(sums), inputs["B"].astype(sums))
        x = sums.type(g.alpha) * (a @ b)
        if g.scaled:
            x = self.scaled(x, [inputs[name][0] for name in ("ScaleA", "ScaleB")])
        if g.bias:
            x = self.biased(x, inputs["Bias"].astype(sums))
        c = sums.type(g.beta) * inputs["C"].astype(sums) if g.beta else sums.type(0)
        return self.narrow(self.finished(x, c, g.activation), g.dest)


class LastTermSkipped(Honest):
    def terms(self, a, b):
        return a[:, :-1], b[:-1]


class IndexOffByOne(Honest):
    def terms(self, a, b):
        return np.roll(a, 1, axis=0), b


class ScaleForgotten(Honest):
    def scaled(self, sums, scales):
        return sums * scales[0]


class BiasForgotten(Honest):
    def biased(self, x, bias):
        return x


class BiasAlongColumns(Honest):
    def biased(self, x, bias):
        return x + bias[None, : x.shape[1]]


class ActivationForgotten(Honest):
    def activated(self, activation, x):
        return x


class ActivationLast(Honest):
    def finished(self, x, c, activation):
        return self.activated(activation, x + c)


class ResidualForgotten(Honest):
    def finished(self, x, c, activation):
        return self.activated(activation, x)


def right(kernel, problem, seed=0):
    """Whether the kernel's D is within the bound, element by element."""
    inputs = GEMM.inputs(problem, np.random.default_rng(seed))
    operands = {
        operand.name: strided(operand, inputs[operand.name])
        for operand in GEMM.operands(problem)
        if operand.name in inputs
    }
    expected = GEMM.reference(problem, inputs)["D"]
    got = kernel(problem, operands)
    if expected.value.dtype.kind == "i":
        assert not expected.bound.any()
        return got == expected.value
    return np.abs(got.astype(np.float64) - expected.value) <= expected.bound


def problems(kind, k):
    """A problem with its usual scalars, and the problem that the operation also checks."""
    return GEMM.checks(Problem(kind, (SIDE, SIDE, k), (), Configuration({"alpha": 1.0, "beta": 0.0})))


@pytest.mark.parametrize(("letter", "dest"), PAIRS)
@pytest.mark.parametrize("k", KS)
def test_an_honest_kernel_is_right_in_every_type(letter, dest, k):
    for asked in problems(gemm_type(letter, dest=dest, scaled=letter in ("f8", "b8")), k):
        assert right(Honest(), asked).all(), asked


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "silu"])
@pytest.mark.parametrize(("letter", "dest"), [("s", "s"), ("h", "h"), ("b", "b"), ("b", "s")])
def test_an_honest_epilogue_is_right(letter, dest, activation):
    for k in KS:
        for asked in problems(gemm_type(letter, dest=dest, bias=True, activation=activation), k):
            assert right(Honest(), asked).all(), asked


@pytest.mark.parametrize("mutant", [LastTermSkipped, IndexOffByOne])
@pytest.mark.parametrize(("letter", "dest"), PAIRS)
def test_a_wrong_sum_is_seen_in_every_type(letter, dest, mutant):
    for k in KS:
        for asked in problems(gemm_type(letter, dest=dest, scaled=letter in ("f8", "b8")), k):
            assert not right(mutant(), asked).all(), asked


@pytest.mark.parametrize(
    ("letter", "k"),
    [*product(["s", "h", "b"], [1, 64, 4096, 65536]), *product(["i8"], [1, 64, 4096])],
)
def test_a_wrong_epilogue_is_seen_at_every_k(letter, k):
    """The bounds of sums of reals grow with K. Sums of whole numbers are exact, so a larger K would add nothing."""
    kind = gemm_type(letter, bias=True, activation="relu")
    plain, with_c = problems(kind, k)
    for mutant in (BiasForgotten, BiasAlongColumns, ActivationForgotten):
        assert not right(mutant(), plain).all(), mutant
    for mutant in (ActivationLast, ResidualForgotten):
        assert not right(mutant(), with_c).all(), mutant


@pytest.mark.parametrize("swapped", [("gelu", "silu"), ("silu", "gelu"), ("gelu", "relu")])
def test_one_activation_does_not_pass_for_another(swapped):
    asked, _ = problems(gemm_type("b", activation=swapped[0]), 8)
    other = Honest()
    other.activated = lambda _, x: ACTIVATIONS[swapped[1]](x)
    assert not right(other, asked).all()


def test_a_forgotten_scale_is_seen():
    asked, _ = problems(gemm_type("f8", scaled=True), 64)
    assert not right(ScaleForgotten(), asked).any(axis=0).all()


@pytest.mark.parametrize("letter", ["f8", "b8"])
def test_sums_of_float8_products_are_exact_in_fourteen_bits(letter):
    """Every partial sum is a multiple of 1/4 below 2048, so it has 13 bits beside the sign."""
    asked, _ = problems(gemm_type(letter), 16384)
    inputs = GEMM.inputs(asked, np.random.default_rng(1))
    a, b = (strided(operand, inputs[operand.name]).astype(np.float64) for operand in GEMM.operands(asked)[:2])
    partial = np.cumsum(a[:, :, None] * b[None], axis=1)
    assert np.abs(partial).max() < 2048
    assert (partial * 4 == np.round(partial * 4)).all()


def test_tf32_products_are_exact_and_half_the_bits_are_not_enough():
    asked, _ = problems(gemm_type("s", tf32=True), 64)

    class InTf32(Honest):
        def terms(self, a, b):
            return tuple((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32) for x in (a, b))

    class InBfloat16(Honest):
        def terms(self, a, b):
            return tuple(x.astype("bfloat16").astype(np.float32) for x in (a, b))

    assert right(InTf32(), asked).all()
    assert not right(InBfloat16(), asked).all()
    strict, _ = problems(gemm_type("s"), 64)
    assert not right(InTf32(), strict).all()


def test_a_result_rounded_to_a_narrower_type_than_asked_is_seen():
    asked, _ = problems(gemm_type("b", dest="s"), 64)

    class Narrow(Honest):
        def narrow(self, x, dest):
            return x.astype("bfloat16").astype(dest)

    assert not right(Narrow(), asked).all()


def test_traffic_counts_what_is_read_and_written():
    m, n, k = SIDE, SIDE, 64
    plain, with_c = problems(gemm_type("f8", dest="s", bias=True, scaled=True), k)
    assert GEMM.bytes(plain) == m * k + k * n + 4 * m * n + 4 * m + 8
    assert GEMM.bytes(with_c) == GEMM.bytes(plain) + 4 * m * n


@pytest.mark.parametrize("family", sorted(name for name in KERNELS if KERNELS[name].operation == "GEMM"))
def test_a_family_computes_a_type_or_says_why_not(family):
    """No family fails on a type that it was not written for. A family without an epilogue rejects types with one."""
    kernel = KERNELS[family]
    kinds = [gemm_type(letter, dest=dest) for letter, dest in PAIRS]
    fused = [gemm_type("b", bias=True), gemm_type("b", activation="gelu"), gemm_type("f8", scaled=True)]
    for kind in (*kinds, *fused, gemm_type("s", tf32=True)):
        for config in (kernel.space(kind, H200).defaults, kernel.space(kind).defaults):
            refused = list(kernel.rejections(config, kind, H200))
            assert refused or all(module.text or module.language == "BLAS" for module in kernel.modules(config, kind))
    knows = {"CudaWgmmaGemm", "TritonGemm", "TritonGemv", "VendorBlas"}
    if family not in knows:
        for kind in fused:
            reasons = {rejection.reason for rejection in kernel.rejections(kernel.space(kind).defaults, kind, H200)}
            assert {"epilogue", "data type"} & reasons, (family, kind.name, reasons)
