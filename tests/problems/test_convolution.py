"""Convolution as an operation: its reference beside direct loops, its implicit product, its layouts, its mistakes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from convolution_loops import direct, terms
from tunesmith.problems import OPERATIONS, strided
from tunesmith.problems.convolution import (
    Convolution,
    ConvolutionTypeError,
    Direction,
    convolution_type,
)
from tunesmith.problems.convolution import reference as reference
from tunesmith.records import Problem, ProblemType, UserError
from tunesmith.session.tuning_file.file import read

CONVOLUTION = OPERATIONS["Convolution"]
DIRECTIONS = tuple(Direction)

CASES = {
    "1-D": ({"dimensions": 1, "stride": 2, "padding": 1}, (2, 3, 11, 4, 3)),
    "1-D dilated": ({"dimensions": 1, "dilation": 3, "padding": 4, "layouts": ("NCW", "NWC", "NCW")}, (1, 2, 13, 3, 4)),
    "2-D": ({}, (2, 3, 5, 6, 4, 3, 2)),
    "2-D one tap": ({"stride": 2}, (2, 5, 7, 6, 3, 1, 1)),
    "2-D all at once": (
        {"stride": (2, 3), "padding": (2, 1), "dilation": (1, 2), "groups": 2, "layouts": ("NCHW", "NHWC", "NCHW")},
        (2, 4, 7, 10, 6, 3, 3),
    ),
    "2-D depthwise": ({"padding": 1, "groups": 4}, (1, 4, 5, 5, 4, 3, 3)),
    "2-D stride beyond the filter": ({"stride": 4}, (1, 2, 11, 9, 3, 2, 2)),
    "2-D only padding in some windows": ({"padding": 3}, (1, 2, 2, 3, 2, 2, 2)),
    "3-D": ({"dimensions": 3, "stride": (1, 2, 1), "padding": (1, 0, 1), "groups": 3}, (1, 3, 3, 5, 4, 6, 2, 2, 3)),
    "3-D channels first": ({"dimensions": 3, "layouts": ("NCDHW",) * 3}, (2, 2, 3, 3, 4, 3, 2, 3, 2)),
}
"""Fields and sizes (N, C, the input's pixels, K, the filter's taps)."""


def problem_of(case, direction, data_type="d"):
    fields, sizes = CASES[case]
    return Problem(convolution_type(data_type, direction=direction, **fields), sizes)


def drawn(problem, seed=0):
    """Storage as the bench would have it, and the logical arrays in it."""
    inputs = CONVOLUTION.inputs(problem, np.random.default_rng(seed))
    logical = {x.name: strided(x, inputs[x.name]) for x in CONVOLUTION.operands(problem) if x.name in inputs}
    return inputs, logical


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("case", CASES)
def test_the_reference_is_what_direct_loops_give(case, direction):
    """In float64 both commit at most as many roundings as the bound allows for one of them."""
    problem = problem_of(case, direction)
    inputs, logical = drawn(problem)
    ((name, expected),) = CONVOLUTION.reference(problem, inputs).items()
    (written,) = (operand for operand in CONVOLUTION.operands(problem) if operand.role == "out")
    assert name == written.name
    by_loops = direct(Convolution.of(problem), logical)
    assert by_loops.shape == written.shape
    assert expected.value.size == by_loops.size, "all of a small problem is looked at"
    assert (np.abs(by_loops[expected.where] - expected.value) <= 2 * expected.bound).all()
    covered = np.zeros(by_loops.shape, int)
    covered[expected.where] += 1
    assert (covered == 1).all()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("data_type", ["s", "h", "b", "f8", "i8"])
def test_sums_in_the_types_of_a_gemm_stay_within_the_bound_and_a_missing_term_does_not(data_type, direction):
    problem = problem_of("2-D all at once", direction, data_type)
    inputs, logical = drawn(problem)
    convolution = Convolution.of(problem)
    ((_, expected),) = CONVOLUTION.reference(problem, inputs).items()
    right = direct(convolution, logical)
    out = right.astype(convolution.dest).astype(np.float64)
    assert (np.abs(out[expected.where] - expected.value) <= expected.bound).all()
    missing = dict(logical)
    name = "Filter" if direction is not Direction.BACKWARD_WEIGHTS else "Output"
    missing[name] = logical[name].copy()
    missing[name][(0,) * missing[name].ndim] = 0
    out = direct(convolution, missing).astype(convolution.dest).astype(np.float64)
    assert (np.abs(out[expected.where] - expected.value) > expected.bound).any()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_of_a_big_problem_first_last_and_scattered_elements_are_right(direction, monkeypatch):
    monkeypatch.setattr(reference, "MOST_GATHERED", 900)
    problem = problem_of("2-D all at once", direction)
    inputs, logical = drawn(problem)
    ((_, expected),) = CONVOLUTION.reference(problem, inputs).items()
    by_loops = direct(Convolution.of(problem), logical)
    assert 4 <= expected.value.size < by_loops.size
    assert (np.abs(by_loops[expected.where] - expected.value) <= 2 * expected.bound).all()
    looked_at = np.zeros(by_loops.shape, bool)
    looked_at[expected.where] = True
    assert looked_at.ravel()[[0, -1]].all()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("case", CASES)
def test_the_implicit_product_has_all_terms_of_the_sum_and_flops_count_the_outputs_windows(case, direction):
    problem = problem_of(case, direction)
    c = Convolution.of(problem)
    product = c.implicit_gemm
    written = next(operand for operand in CONVOLUTION.operands(problem) if operand.role == "out")
    assert product.m * product.n * product.groups == math.prod(written.shape)
    windows = c.images * math.prod(c.output) * c.filters * (c.channels // c.groups) * math.prod(c.taps)
    assert CONVOLUTION.flops(problem) == 2 * windows
    multiplied = product.m * product.n * product.k * product.groups
    assert multiplied >= sum(1 for _ in terms(c)), "zeros are counted, so no term is left out"
    if direction is not Direction.BACKWARD_DATA:
        assert multiplied == windows


def test_layouts_put_the_same_numbers_elsewhere():
    """Channels last: neighbours in memory are channels; channels first: pixels. Arrays are dense in both."""
    for layout, fastest in (("NHWC", 1), ("NCHW", 3)):
        kind = convolution_type(layouts=(layout,) * 3)
        for operand in CONVOLUTION.operands(Problem(kind, (2, 3, 5, 7, 4, 2, 3))):
            assert operand.strides[fastest] == 1
            assert operand.storage_elements == math.prod(operand.shape)
    assert CONVOLUTION.bytes(Problem(kind, (2, 3, 5, 7, 4, 2, 3))) == 4 * (2 * 3 * 35 + 4 * 3 * 6 + 2 * 4 * 4 * 5)


def test_names_tell_types_apart_and_a_type_comes_back_from_its_fields():
    kinds = [
        convolution_type("b", direction=direction, **fields) for direction in DIRECTIONS for fields, _ in CASES.values()
    ]
    assert len({kind.name for kind in kinds}) == len(set(kinds)) == 3 * len({str(f) for f, _ in CASES.values()})
    for kind in kinds:
        assert CONVOLUTION.type_of(kind.fields, str, Path()) == kind
        assert ProblemType.from_json(kind.to_json()) == kind
        CONVOLUTION.validate(kind)
    assert convolution_type().name == "Convolution_Forward_NHWC_S"
    assert (
        convolution_type("h", stride=2, groups=3, layouts=("NCHW",) * 3).name
        == "Convolution_Forward_NCHW_NCHW_NCHW_H_Stride2x2_Groups3"
    )


def test_what_is_launched_to_try_a_program_is_small_and_of_the_same_type():
    problem = Problem(convolution_type("b", stride=2, padding=3, groups=4), (128, 256, 224, 224, 512, 7, 7))
    small = CONVOLUTION.small(problem)
    assert small.type == problem.type
    assert Convolution.of(small).output == (4, 4)
    assert CONVOLUTION.flops(small) < 1e8
    for case in CASES:
        tiny = problem_of(case, Direction.FORWARD)
        assert all(x <= y for x, y in zip(CONVOLUTION.small(tiny).sizes, tiny.sizes, strict=True))


def test_sizes_are_read_off_the_arrays_that_a_caller_gives():
    kind = convolution_type(stride=2, groups=2)
    problem = Problem(kind, (2, 4, 9, 11, 6, 3, 2))
    shapes = {operand.name: operand.shape for operand in CONVOLUTION.operands(problem) if operand.role == "in"}
    assert CONVOLUTION.sizes_from(kind, shapes, {}) == problem.sizes


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"data_type": "q"}, "DataType"),
        ({"dimensions": 4}, "SpatialDimensions"),
        ({"groups": 0}, "Groups"),
        ({"stride": (1, 2, 3)}, "Stride"),
        ({"stride": 0}, "Stride"),
        ({"padding": -1}, "Padding"),
        ({"dimensions": 3, "layouts": ("NHWC", None, None)}, "InputLayout"),
        ({"layouts": (None, "KRSC", None)}, "FilterLayout"),
    ],
)
def test_a_type_that_makes_no_sense_is_refused_at_its_key(fields, key):
    with pytest.raises(ConvolutionTypeError) as refused:
        convolution_type(**fields)
    assert refused.value.key == key


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ((1, 3, 8, 8, 4, 3, 3), "C 3 is no multiple of 2 groups"),
        ((1, 4, 8, 8, 5, 3, 3), "K 5 is no multiple of 2 groups"),
        ((1, 4, 8, 3, 4, 3, 4), "the filter reaches over 7 pixels of W, which has 5 with its padding"),
    ],
)
def test_sizes_that_no_convolution_has_are_refused(sizes, why):
    kind = convolution_type(groups=2, padding=1, dilation=2)
    assert CONVOLUTION.wrong_sizes(kind, sizes) == why
    with pytest.raises(ValueError, match=why.split(",")[0]):
        Convolution.of(Problem(kind, sizes))


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("Strides: 2", "Strides"),
        ("Stride: [1, two]", "Stride"),
        ("Padding: [1]", "Padding"),
        ("Dilation: [0, 1]", "Dilation"),
        ("Direction: Sideways", "Direction"),
        ("InputLayout: NDHWC", "InputLayout"),
        ("DataType: q", "DataType"),
    ],
)
def test_a_tuning_file_is_told_the_line_of_a_wrong_field(tmp_path, field, what):
    with pytest.raises(UserError) as caught:
        read_file(tmp_path, f"OperationType: Convolution\n      {field}")
    (mistake,) = (error for error in caught.value.errors if error.location.endswith("tuning.yaml:4"))
    assert what in mistake.what


def read_file(folder, fields, sizes="Exact: [1, 4, 8, 8, 4, 3, 3]"):
    path = folder / "tuning.yaml"
    text = f"BenchmarkProblems:\n  -\n    - {fields}\n    - BenchmarkFinalParameters:\n      - ProblemSizes:\n"
    path.write_text(f"{text}        - {sizes}\n")
    read(path, None, None)


def test_a_tuning_file_is_told_that_there_is_no_kernel_yet(tmp_path):
    with pytest.raises(UserError, match="no kernel computes Convolution yet") as caught:
        read_file(tmp_path, "OperationType: Convolution")
    assert caught.value.location.endswith("tuning.yaml:3")
