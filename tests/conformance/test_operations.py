"""Every operation keeps what operations promise; what each computes is in `tests/problems`."""

from __future__ import annotations

from pathlib import Path

from tunesmith.problems import OPERATIONS
from tunesmith.problems.convolution import Direction, convolution_type
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.random import random_type, scalars_for
from tunesmith.records import Configuration, Problem
from tunesmith.testing import OperationSuite

EXAMPLES = Path(__file__).parents[2] / "examples"
SCALARS = Configuration({"alpha": 1.5, "beta": 0.5})


def described(name):
    return OPERATIONS["Custom"].type_of({"OperationType": "Custom", "Kernel": name}, str, EXAMPLES)


class TestGemm(OperationSuite):
    operation = OPERATIONS["GEMM"]
    problems = (
        *(Problem(gemm_type(letter), (7, 5, 11), (), SCALARS) for letter in ("s", "d", "h", "b", "i8")),
        Problem(gemm_type("s", transpose_a=True), (7, 5, 11), (9, 8, 13, 17), SCALARS),
        Problem(gemm_type("s", batched=True, interleaved=True), (7, 5, 3, 11), (), SCALARS),
        Problem(gemm_type("s", use_beta=False), (7, 5, 11), (), Configuration({"alpha": 1.0, "beta": 0.0})),
        Problem(gemm_type("b", bias=True, activation="gelu"), (7, 5, 11), (), SCALARS),
        Problem(gemm_type("f8", transpose_a=True, transpose_b=False, scaled=True), (16, 32, 48), (), SCALARS),
    )


class TestConvolution(OperationSuite):
    operation = OPERATIONS["Convolution"]
    problems = (
        *(Problem(convolution_type(direction=direction), (2, 3, 5, 6, 4, 3, 2)) for direction in Direction),
        Problem(convolution_type("h", dimensions=1, stride=2, padding=1), (2, 3, 11, 4, 3)),
        Problem(convolution_type("b", groups=2, dilation=2, padding=2), (2, 4, 7, 10, 6, 3, 3)),
    )


class TestRandom(OperationSuite):
    operation = OPERATIONS["Random"]
    problems = (
        Problem(random_type("philox4_32_10"), (1000,), (), scalars_for("uniform", seed=3)),
        Problem(random_type("xorwow", "normal", "double"), (1001,), (), scalars_for("normal", seed=3)),
        Problem(random_type("mrg32k3a", "uniform", "unsigned_int"), (1000,), (), scalars_for("uniform", seed=3)),
        Problem(random_type("sobol32"), (500, 3), (), scalars_for("uniform", seed=3)),
    )


class TestCustom(OperationSuite):
    operation = OPERATIONS["Custom"]
    folder = EXAMPLES
    problems = (
        Problem(described("custom_stencil.yaml"), (9, 13)),
        Problem(described("softmax_kernel.yaml"), (6, 16)),
    )

    def fields_of(self, problem_type):
        return {"OperationType": "Custom", "Kernel": Path(problem_type.fields.word("Kernel")).name}


def test_every_operation_is_among_them():
    looked_at = [suite.operation.name for suite in (TestGemm, TestConvolution, TestRandom, TestCustom)]
    assert list(OPERATIONS) == looked_at
