"""The grammar of sizes: what each form counts, in which order, and what is refused with which words."""

from __future__ import annotations

from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunesmith.problems import LIMIT, OPERATIONS, clamp_sizes, exact_sizes, range_sizes
from tunesmith.problems.gemm import gemm_type
from tunesmith.problems.sizes import Span
from tunesmith.records import Configuration, Problem, UserError, freeze

BATCHED = gemm_type(batched=True)
PLACE = "file.yaml:7"


def of_range(value, problem_type=BATCHED):
    return range_sizes([(freeze(entry), f"file.yaml:{8 + i}") for i, entry in enumerate(value)], problem_type, PLACE)


def of_exact(value, problem_type=BATCHED):
    return exact_sizes([(freeze(entry), PLACE) for entry in value], problem_type, OPERATIONS["GEMM"], PLACE)


@pytest.mark.parametrize(
    ("descriptor", "count"),
    [
        ([1968], 1),
        ([16, 1968], 123),
        ([16, 32, 1968], 62),
        ([64, 32, 16, 1968], 15),
        ([64, 32, 16, 1967], 14),
        ([64, 32, 16, 2000], 15),
        ([16, 16, 16, 5760], 27),
        ([64, 64, 64, 512], 4),
        ([5, 7], 1),
        ([64, 64], 1),
    ],
)
def test_a_descriptor_counts_as_tensile_counts_it(descriptor, count):
    assert len(of_range([descriptor, [1], [1], [1]])) == count


@pytest.mark.parametrize(
    ("value", "count"),
    [
        ([[16, 128], [16, 128], [1], [16, 128]], 512),
        ([[16, 128], 0, [1], 0], 8),
        ([[16, 16, 16, 5760], 0, [1], [1024, 1024, 4096]], 108),
        ([[64, 64, 64, 512], 0, [1], 0], 4),
        ([[2880], 0, [1], 0], 1),
    ],
)
def test_a_range_counts_as_tensile_counts_it(value, count):
    assert len(of_range(value)) == count


def test_a_growing_step_gives_the_sizes_that_the_wiki_lists():
    sizes = [m for m, *_ in of_range([[64, 32, 16, 1968], [1], [1], [1]])]
    assert sizes == [64, 96, 144, 208, 288, 384, 496, 624, 768, 928, 1104, 1296, 1504, 1728, 1968]


def test_the_first_index_varies_fastest():
    assert of_range([[1, 2], [1, 2], [5], [7]]) == [(1, 1, 5, 7), (2, 1, 5, 7), (1, 2, 5, 7), (2, 2, 5, 7)]


def test_a_reference_is_to_the_position_of_an_index_even_when_that_refers_itself():
    assert of_range([[16, 32], 0, [3], 1]) == [(16, 16, 3, 16), (32, 32, 3, 32)]
    assert of_range([[16], [7], [3], 2]) == [(16, 7, 3, 3)]
    assert of_range([[16], [1], [1], [64]]) == [(16, 1, 1, 64)]


@pytest.mark.parametrize(
    ("value", "location", "words"),
    [
        ([[100, 64], 0, [1], 0], "file.yaml:8", ["Range[0]", "100", "64", "smaller size first"]),
        ([[64, 0, 512], 0, [1], 0], "file.yaml:8", ["Range[0]: step 0 never reaches 512 in [64, 0, 512]", "[64]"]),
        ([[128, 0, 0, 1024], 0, [1], 0], "file.yaml:8", ["step 0", "positive step"]),
        ([[64, -8, 512], 0, [1], 0], "file.yaml:8", ["step -8", "positive step"]),
        ([[64, 32, -16, 512], 0, [1], 0], "file.yaml:8", ["shrink by 16", "[64, 32, 512]"]),
        ([[16], [], [1], [1]], "file.yaml:9", ["Range[1]", "0 numbers"]),
        ([[16], [1, 2, 3, 4, 5], [1], [1]], "file.yaml:9", ["Range[1]", "5 numbers"]),
        ([[16], [0, 16, 64], [1], [1]], "file.yaml:9", ["Range[1]", "0 is no size"]),
        ([[16], [-5], [1], [1]], "file.yaml:9", ["-5 is no size"]),
        ([[16], [10**12], [1], [1]], "file.yaml:9", ["is no size"]),
        ([[16], 2, [1], [1]], "file.yaml:9", ["Range[1]", "2 refers to no earlier index", "[2]"]),
        (
            [[16], 1, [1], [1]],
            "file.yaml:9",
            ["1 refers to no earlier index; give [1] for that size, or 0 for the size"],
        ),
        ([0, [16], [1], [1]], "file.yaml:8", ["0 refers to no earlier index (it is the first); give [size], [first"]),
        (
            [[16], -1, [1], [1]],
            "file.yaml:9",
            ["-1 refers to no earlier index; give [size], ", ", or 0 for the size of"],
        ),
        ([[16], [1], 10**12, [1]], "file.yaml:10", ["give [size], ", ", or an earlier index, 0 to 1"]),
        (
            ["M", 0, [1], [1]],
            "file.yaml:8",
            ["M is neither a list nor an earlier index (it is the first); give [size]"],
        ),
        ([[16], True, [1], [1]], "file.yaml:9", ["True is neither"]),
        ([[16], "N", [1], [1]], "file.yaml:9", ["N is neither"]),
        ([[16.0], 0, [1], [1]], "file.yaml:8", ["16.0", "whole"]),
        ([[2880]], PLACE, ["1 entries", "4 indices", "M, N, Batch, K"]),
        ([[16], 0, [1], 0, 0], PLACE, ["5 entries", "4 indices"]),
        ([[1, 100_000], [1, 100_000], [1], [1]], PLACE, ["more than 100,000"]),
        ([[1, 2**31 - 1]] * 4, PLACE, ["more than 100,000"]),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place_and_a_way_out(value, location, words):
    with pytest.raises(UserError) as caught:
        of_range(value)
    assert caught.value.location == location
    for word in words:
        assert word in str(caught.value)


def test_exactly_the_limit_is_allowed():
    assert len(of_range([[1, LIMIT // 10], [1, 10], [1], [1]])) == LIMIT


def test_an_exact_names_one_size_with_or_without_leading_dimensions():
    assert of_exact([64, 32, 1, 16]) == ((64, 32, 1, 16), ())
    assert of_exact([64, 32, 1, 16, 70, 64, 65, 40]) == ((64, 32, 1, 16), (70, 64, 65, 40))


def test_natural_leading_dimensions_are_the_same_problem_as_none():
    assert of_exact([64, 32, 1, 16, 64, 64, 64, 32]) == of_exact([64, 32, 1, 16])


@pytest.mark.parametrize(
    ("transposes", "too_small"),
    [
        ((False, False), {"LDA": 64, "LDB": 16}),
        ((False, True), {"LDA": 64, "LDB": 32}),
        ((True, False), {"LDA": 16, "LDB": 16}),
        ((True, True), {"LDA": 16, "LDB": 32}),
    ],
)
def test_a_leading_dimension_must_hold_its_matrix_as_it_is_stored(transposes, too_small):
    problem_type = gemm_type(transpose_a=transposes[0], transpose_b=transposes[1])
    least = {"LDD": 64, "LDC": 64, **too_small}
    for name, extent in least.items():
        numbers = [64, 32, 16, *({**dict.fromkeys(least, 99), name: extent - 1}).values()]
        with pytest.raises(UserError, match=f"{name} {extent - 1} is too small; give at least {extent}"):
            of_exact(numbers, problem_type)
        numbers[3 + list(least).index(name)] = extent
        assert of_exact(numbers, problem_type)[0] == (64, 32, 16)


@pytest.mark.parametrize(
    "value",
    [[], [64], [64, 32, 1], [64, 32, 1, 16, 64], [64, 32, 1, 16, 64, 64, 64, 64, 64], [64, 32, 1, 0], [64, [2], 1, 2]],
)
def test_an_exact_of_any_other_length_or_kind_is_refused(value):
    with pytest.raises(UserError, match="Exact"):
        of_exact(value)


def test_clamping_makes_problems_unique_and_keeps_their_order():
    scalars = Configuration({"alpha": 1.0})
    problems = [Problem(BATCHED, (m, 8, 1, 300), (), scalars) for m in (100, 300, 500, 700)]
    clamped = clamp_sizes([*problems, Problem(BATCHED, (8, 8, 1, 8), (9, 9, 9, 9), scalars)], 256)
    assert [p.sizes for p in clamped] == [(100, 8, 1, 256), (256, 8, 1, 256), (8, 8, 1, 8)]
    assert clamped[-1].leading == (9, 9, 9, 9)
    assert all(p.scalars == scalars for p in clamped)


def test_clamping_drops_leading_dimensions_of_what_it_cuts():
    assert clamp_sizes([Problem(BATCHED, (512, 8, 1, 8), (600, 512, 512, 8))], 256) == (
        Problem(BATCHED, (256, 8, 1, 8)),
    )


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 20), st.integers(1, 400))
def test_a_span_is_what_its_closed_form_says(first, step, growth, last):
    """Element i is first + i step + i (i - 1) / 2 growth, and none that is at most `last` is missing."""
    sizes = list(Span(first, step, growth, last))
    closed = [first + i * step + i * (i - 1) // 2 * growth for i in range(len(sizes) + 1)]
    assert sizes == closed[:-1]
    assert closed[-1] > last
    assert all(size <= last for size in sizes)


@given(st.integers(1, 2**31), st.integers(1, 10), st.integers(1, 2**31 - 1), st.integers(1, 50))
def test_counting_stops_at_its_limit(first, step, last, limit):
    span = Span(first, step, 0, last)
    assert span.count(limit) == len(list(islice(span, limit)))
