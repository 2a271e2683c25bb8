"""What a call of `matmul` asks for: its beta, its data types, the types of problems that serve it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tunesmith.library.gemm._checked_call import CheckedCall
from tunesmith.library.gemm._request import GemmRequest, data_types, effective_beta
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.random import random_type

C, RESIDUAL = object(), object()


def test_beta_is_the_callers_and_1_for_a_residual():
    assert effective_beta(None, None, 0.0) == 0.0
    assert [effective_beta(C, None, beta) for beta in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]
    assert effective_beta(None, RESIDUAL, 0.0) == 1.0


@pytest.mark.parametrize(
    ("c", "residual", "beta", "says"),
    [
        (C, RESIDUAL, 0.0, "give one or the other"),
        (None, RESIDUAL, 0.5, "give one or the other"),
        (None, None, 0.5, "c must be given"),
    ],
)
def test_a_residual_stands_alone_and_beta_needs_a_c(c, residual, beta, says):
    with pytest.raises(ValueError, match=says):
        effective_beta(c, residual, beta)


def test_the_whole_is_tried_first_then_the_product_with_scales_then_the_product():
    whole = GemmRequest("f8", "s", beta=True, bias=True, activation="relu", scaled=True)
    assert list(whole.attempts) == [whole, GemmRequest("f8", "s", scaled=True), GemmRequest("f8", "s")]
    assert whole.epilogue == "scales and bias and relu and c"
    plain = GemmRequest("s", "s", tf32=True)
    assert list(plain.attempts) == [plain], "TF32 stays allowed"
    assert plain.epilogue == ""


@pytest.mark.parametrize(
    ("part", "kept"),
    [
        ({}, set()),
        ({"bias": True}, {"Bias"}),
        ({"scaled": True}, {"ScaleA", "ScaleB"}),
        ({"bias": True, "scaled": True}, {"Bias", "ScaleA", "ScaleB"}),
    ],
)
def test_a_part_of_a_call_has_the_operands_of_that_part_alone(part, kept):
    extra = dict.fromkeys(("Bias", "ScaleA", "ScaleB"))
    whole = GemmRequest("f8", "s", beta=True, bias=True, scaled=True)
    call = CheckedCall(None, None, None, 1.0, 0.5, whole, (3, 4), c="c", extra=extra)
    only = call.only(replace(whole, beta=False, **{"bias": False, "scaled": False, **part}))
    assert set(only.extra) == kept
    assert (only.c, only.beta) == (None, 0.0)
    assert (call.only(whole).c, call.only(whole).beta) == ("c", 0.5)


@pytest.mark.parametrize(
    ("request_", "type_", "is_served"),
    [
        ({}, {}, True),
        ({}, {"use_beta": False}, True),
        ({"beta": True}, {}, True),
        ({"beta": True}, {"use_beta": False}, False),
        ({"bias": True}, {"bias": True}, True),
        ({"bias": True}, {}, False),
        ({}, {"bias": True}, False),
        ({"activation": "relu"}, {"activation": "silu"}, False),
        ({"tf32": True}, {}, True),
        ({"tf32": True}, {"tf32": True}, True),
        ({}, {"tf32": True}, False),
    ],
)
def test_a_type_serves_a_request_with_its_epilogue_and_in_its_precision(request_, type_, is_served):
    """A beta that the call does not need is 0; TF32 may be left unused, not the other way round."""
    request = GemmRequest("s", "s", **request_)
    assert request.served_by(gemm_type(**type_)) is is_served
    made = request.type_of(True, False, tf32=request.tf32, batched=True)
    assert request.served_by(made)
    assert not GemmRequest("d", "d").served_by(made)


def test_random_numbers_serve_no_product():
    assert not GemmRequest("s", "s").served_by(random_type("philox4_32_10", "uniform", "float"))


def test_the_type_to_tune_has_the_layout_of_a_type_that_is_there():
    request = GemmRequest("s", "s", bias=True)
    there = gemm_type(transpose_a=True, transpose_b=False)
    assert request.type_like(there) == gemm_type(transpose_a=True, transpose_b=False, bias=True)
    assert request.type_like(there, batched=True) == gemm_type(
        transpose_a=True, transpose_b=False, batched=True, bias=True
    )
    bare = gemm_type(use_beta=False)
    assert request.type_like(bare) == gemm_type(use_beta=False, bias=True)
    assert GemmRequest("s", "s", beta=True).type_like(bare) == gemm_type()


@pytest.mark.parametrize(
    ("others", "out_dtype", "letters"),
    [
        ((), "", ("h", "h")),
        ((), "float32", ("h", "s")),
        ((("out", "float32"),), "", ("h", "s")),
        ((("out", "float32"),), "float32", ("h", "s")),
        ((("bias", "float16"), ("out", "float16")), "", ("h", "h")),
    ],
)
def test_the_results_type_is_that_of_the_call_or_the_operands_own(others, out_dtype, letters):
    operands = (("a", "float16"), ("b", "float16"))
    assert data_types((*operands, *others), out_dtype) == letters


@pytest.mark.parametrize(
    ("arguments", "out_dtype", "says"),
    [
        ((("a", "float16"), ("b", "float32")), "", "a and b must have the same data type: a is float16, b is float32"),
        ((("a", "complex64"), ("b", "complex64")), "", "the arrays are complex64; there are kernels for .*float32"),
        (
            (("a", "float32"), ("b", "float32"), ("bias", "float64")),
            "",
            "of float32 operands the result, with all that is added to it, is float32: .*bias is float64$",
        ),
        ((("a", "float16"), ("b", "float16"), ("out", "float16")), "float32", "out is float16, out_dtype is float32$"),
        ((("a", "float16"), ("b", "float16"), ("c", "float16"), ("out", "float32")), "", "float16 or float32"),
    ],
)
def test_types_that_do_not_go_together_are_named(arguments, out_dtype, says):
    with pytest.raises(TypeError, match=says):
        data_types(arguments, out_dtype)
