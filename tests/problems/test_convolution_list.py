"""Lists of convolutions as CSV: what they mean, what is wrong with them, and that published ones agree with us."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.problems import OPERATIONS
from tunesmith.problems.convolution import (
    Convolution,
    Direction,
    ListedConvolution,
    convolution_type,
    read_convolution_list,
)
from tunesmith.records import UserError

ROOT = Path(__file__).parents[2]
SHAPES = Path(os.environ.get("TUNESMITH_DATA", ROOT.parent / "shared" / "data")) / "shapes"

LIST = """\
op,direction_F,spatial_dim,n,c,in_d,h,w,k,fil_d,r,s,pad_h,pad_w,stride_h,dil_w,groups,in_layout,family,out_w
convbfp16,1,2,8,6,1,9,10,4,1,3,2,1,0,2,3,2,NCHW,some,7
convfp16,4,3,1,3,4,5,6,7,2,2,2,0,0,1,1,1,NDHWC,others,5
"""

Read = Callable[[str], tuple[ListedConvolution, ...]]


@pytest.fixture
def listed(tmp_path):
    def read(text):
        path = tmp_path / "convolutions.csv"
        path.write_text(text)
        return read_convolution_list(path)

    return read


def test_a_row_names_its_type_and_sizes(listed):
    first, second = listed(LIST)
    assert first.type == convolution_type(
        "b", stride=(2, 1), padding=(1, 0), dilation=(1, 3), groups=2, layouts=("NCHW", None, None)
    )
    assert first.sizes == (8, 6, 9, 10, 4, 3, 2)
    assert (first.family, first.weight) == ("some", 1.0)
    assert second.type == convolution_type("h", direction=Direction.BACKWARD_WEIGHTS, dimensions=3)
    assert second.sizes == (1, 3, 4, 5, 6, 7, 2, 2, 2)


def test_without_the_word_for_it_a_header_tells_the_dimensions(listed):
    (row,) = listed("n,c,w,k,s\n2,3,9,4,3\n")
    assert row.problem.type == convolution_type(dimensions=1)
    (row,) = listed("set,n,c,h,w,k,r,s\ntrain,2,3,9,9,4,3,3\n")
    assert (row.problem.type, row.family) == (convolution_type(), "train")
    (row,) = listed("n,c,in_d,h,w,k,fil_d,r,s\n2,3,9,9,9,4,3,3,3\n")
    assert row.problem.type == convolution_type(dimensions=3)


@pytest.mark.parametrize(
    ("change", "location", "what"),
    [
        (("convbfp16", "convolve"), ":2", "op cannot be convolve"),
        ((",9,10,4", ",9,0,4"), ":2", "w cannot be 0"),
        (("some,7", "some,8"), ":2", "out_w is 8, the sizes make it 7"),
        (("8,6,1,9", "8,5,1,9"), ":2", "C 5 is no multiple of 2 groups"),
        (("NDHWC", "NHWC"), ":3", "NHWC is no layout of 3 spatial dimensions"),
        (("8,6,1,9", "8,6,2,9"), ":2", "in_d is 2, with 2 spatial dimensions"),
        (("7,2,2,2", "7,2,2,9"), ":3", "the filter reaches over 9 pixels of W"),
        (("dil_w", "dilation"), ":1", "no dilation"),
        (("in_layout", "op"), ":1", "the column op is there twice"),
        ((",c,", ",pad_d,"), ":1", "there is no column c"),
        (("others,5", "others"), ":3", "19 cells under 20 columns"),
    ],
)
def test_a_mistake_is_told_with_its_line(listed, change, location, what):
    assert change[0] in LIST
    with pytest.raises(UserError) as caught:
        listed(LIST.replace(*change, 1))
    assert caught.value.location.endswith(f"convolutions.csv{location}")
    assert what in caught.value.what


@pytest.mark.parametrize(
    ("header", "cells", "what"),
    [
        ("pad_d", "5", "pad_d is 5, with 2 spatial dimensions"),
        ("stride_d", "4", "stride_d is 4, with 2 spatial dimensions"),
        ("dil_d", "3", "dil_d is 3, with 2 spatial dimensions"),
        ("out_d", "7", "out_d is 7, with 2 spatial dimensions"),
        ("spatial_dim,pad_h", "1,1", "h is 9, with 1 spatial dimension"),
    ],
)
def test_columns_of_an_axis_that_is_not_there_must_say_so(listed, header, cells, what):
    with pytest.raises(UserError) as caught:
        listed(f"n,c,h,w,k,r,s,{header}\n2,3,9,9,4,3,3,{cells}\n")
    assert caught.value.location.endswith("convolutions.csv:2")
    assert caught.value.what == what


def test_what_a_driver_prints_of_an_axis_that_is_not_there_is_read(listed):
    (row,) = listed("n,c,in_d,h,w,k,fil_d,r,s,spatial_dim,pad_d,stride_d,dil_d,out_d\n2,3,1,9,9,4,1,3,3,2,0,1,1,1\n")
    assert row.type == convolution_type()


def test_a_dimension_that_the_header_lacks_is_asked_for(listed):
    with pytest.raises(UserError, match="3 spatial dimensions need a column in_d"):
        listed("spatial_dim,n,c,h,w,k,r,s\n3,2,3,9,9,4,3,3\n")


def test_as_a_list_of_a_tuning_file_rows_of_other_types_have_no_sizes(tmp_path):
    path = tmp_path / "convolutions.csv"
    path.write_text(LIST)
    kind = convolution_type("h", direction=Direction.BACKWARD_WEIGHTS, dimensions=3)
    other, fitting = OPERATIONS["Convolution"].listed(kind, path, "here")
    assert (other.sizes, fitting.sizes) == ((), (1, 3, 4, 5, 6, 7, 2, 2, 2))
    assert "NCHW" in other.layout


@given(st.integers(0, len(LIST)), st.integers(0, 12), st.text('0123456789,-.xNCHWDé\n"', max_size=6))
def test_a_mutated_list_is_read_or_gets_our_error(begin, removed, put):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "convolutions.csv"
        path.write_text(LIST[:begin] + put + LIST[begin + removed :], encoding="utf-8")
        with suppress(UserError):
            assert all(OPERATIONS["Convolution"].flops(row.problem) > 0 for row in read_convolution_list(path))


@pytest.mark.parametrize("name", ["conv_deepbench_dev.csv", "conv_production_dev.csv"])
def test_published_lists_give_their_own_outputs_and_implicit_products(name):
    """Each row's columns out_d ... igemm_k are compared when it is read."""
    path = SHAPES / name
    if not path.is_file():
        pytest.skip(f"needs {path}; set TUNESMITH_DATA")
    rows = read_convolution_list(path)
    assert len(rows) == len(path.read_text().splitlines()) - 1
    assert {"igemm_m", "igemm_n", "igemm_k", "out_h"} <= set(path.read_text().split("\n")[0].split(","))
    assert all(Convolution.of(row.problem).implicit_gemm.m for row in rows)
